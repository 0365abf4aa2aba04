#include "page_checks.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "cache/exact_rows.h"
#include "cache/page_sealer.h"
#include "fuzz_input.h"
#include "kernels/dispatch.h"
#include "quant/page.h"

namespace shorthand {
namespace {

struct Lines {
  explicit Lines(size_t size)
      : bytes((size + kLineBytes - 1) / kLineBytes * kLineBytes),
        data(static_cast<uint8_t*>(std::aligned_alloc(kLineBytes, bytes))) {
    std::memset(data, 0x55, bytes);
  }
  ~Lines() { std::free(data); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  size_t bytes;
  uint8_t* data;
};

// A page of one layer and KV head in both representations.
struct SealedPage {
  const LayerFormat& layer;
  int kv_head;
  const uint8_t* exact;
  const uint8_t* sealed;
  const PageDescriptor& descriptor;
};

void CheckSide(const SidePart& part, const SealedPage& page, const uint8_t* again,
               const PageDescriptor& descriptor, const std::string& what) {
  const bool same =
      std::memcmp(again + part.meta_offset, page.sealed + part.meta_offset, part.meta_bytes) == 0 &&
      std::memcmp(again + part.codes_offset, page.sealed + part.codes_offset, part.codes_bytes) ==
          0;
  Require(same, what + " seals other bytes");
  Require(std::memcmp(&descriptor, &page.descriptor, sizeof descriptor) == 0,
          what + " makes another descriptor");
}

void CheckSealer(const SealedPage& page, const KernelTable& kernels, const std::string& what) {
  const Lines again(page.layer.sealed.bytes);
  PageDescriptor descriptor;
  PageSealer(page.layer, kernels)
      .Seal(page.exact, page.kv_head, page.descriptor.first_position,
            static_cast<int>(page.descriptor.first_token), again.data, &descriptor);
  CheckSide(page.layer.sealed.k, page, again.data, descriptor, what + " (keys)");
  CheckSide(page.layer.sealed.v, page, again.data, descriptor, what + " (values)");
}

void SealByCodec(const SideFormat& format, const HeadTables& tables, const SidePart& part,
                 const std::vector<float>& rows, int first_token, uint8_t* page,
                 PageDescriptor* descriptor) {
  if (format.exact) return;
  const Lines scratch(SealScratchBytes(format));
  SealSide(format, tables, rows.data(), first_token, part, page, descriptor, scratch.data);
}

void CheckCodec(const SealedPage& page, const std::string& what) {
  const Lines again(page.layer.sealed.bytes);
  const PageLayout& layout = page.layer.sealed;
  const ExactRows exact(page.layer);
  PageDescriptor descriptor;
  descriptor.first_token = page.descriptor.first_token;
  descriptor.first_position = page.descriptor.first_position;
  const int first = static_cast<int>(descriptor.first_token);
  std::vector<float> k(static_cast<size_t>(kPageTokens) * page.layer.k.dim);
  std::vector<float> v(static_cast<size_t>(kPageTokens) * page.layer.v.dim);
  exact.ReadKeys(page.exact, kPageTokens, k.data());
  exact.ReadValues(page.exact + exact.ValueOffset(kPageTokens), kPageTokens, v.data());
  SealByCodec(page.layer.k, page.layer.k_tables[page.kv_head], layout.k, k, first, again.data,
              &descriptor);
  SealByCodec(page.layer.v, page.layer.v_tables[page.kv_head], layout.v, v, first, again.data,
              &descriptor);
  if (!page.layer.k.exact) CheckSide(layout.k, page, again.data, descriptor, what + " (keys)");
  if (!page.layer.v.exact) CheckSide(layout.v, page, again.data, descriptor, what + " (values)");
}

void CheckBlock(const GroupStore& store, const Block& block, const std::string& what) {
  for (size_t l = 0; l < store.group().layers.size(); ++l) {
    const LayerFormat& layer = store.group().layers[l];
    const int place = static_cast<int>(l);
    for (int head = 0; head < layer.kv_heads; ++head) {
      const SealedPage page{layer, head, store.exact().Page(place, head, block.exact),
                            store.sealed().Page(place, head, block.sealed),
                            *store.sealed().Descriptor(place, head, block.sealed)};
      CheckCodec(page, "the codec, " + what);
      for (const KernelTable* kernels : RunnableTargets()) {
        CheckSealer(page, *kernels, fmt::format("{}, {}", kernels->name, what));
      }
    }
  }
}

// Rows [first, end) of a batch that lie in one page.
struct RowRun {
  int first, end;
};

std::vector<RowRun> RunsOf(const BatchImpl& batch) {
  std::vector<RowRun> runs;
  const std::vector<BatchImpl::Row>& rows = batch.rows();
  for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
    const bool goes_on =
        r > 0 && rows[r].item == rows[r - 1].item && rows[r].entry == rows[r - 1].entry;
    if (!goes_on) runs.push_back({r, r});
    runs.back().end = r + 1;
  }
  return runs;
}

}  // namespace

void CheckSealedPages(const BatchImpl& batch, const std::string& what) {
  for (const BatchImpl::Item& item : batch.items()) {
    for (size_t g = 0; g < item.next.groups.size(); ++g) {
      const GroupStore& store = batch.cache().stores()[g];
      for (const GroupEntry& entry : item.next.groups[g].entries) {
        if (entry.block == kNoBlock) continue;
        const Block& block = store.block(entry.block);
        if (block.exact != kNoSlot && block.sealed != kNoSlot) CheckBlock(store, block, what);
      }
    }
  }
}

// Written again by another target, the rows change no byte of the page.
void CheckWrittenRows(const BatchImpl& batch, int layer, const float* k, const float* v,
                      const std::string& what) {
  const LayerPlace& place = batch.cache().place(layer);
  const GroupStore& store = batch.cache().stores()[place.group];
  const LayerFormat& format = batch.cache().format(place);
  const size_t value_offset = ExactRows(format).ValueOffset(kPageTokens);
  const size_t k_stride = static_cast<size_t>(format.kv_heads) * format.k.dim;
  const size_t v_stride = static_cast<size_t>(format.kv_heads) * format.v.dim;
  const Lines again(format.exact.bytes);
  for (const RowRun run : RunsOf(batch)) {
    const BatchImpl::Row& row = batch.rows()[run.first];
    const Sequence& sequence = batch.items()[row.item].next;
    const Block& block = store.block(sequence.groups[place.group].entries[row.entry].block);
    for (int head = 0; head < format.kv_heads; ++head) {
      const uint8_t* page = store.exact().Page(place.index, head, block.exact);
      for (const KernelTable* kernels : RunnableTargets()) {
        std::memcpy(again.data, page, format.exact.bytes);
        const bool finite =
            kernels->write_keys(ElementOf(format.exact_k),
                                k + run.first * k_stride + head * format.k.dim, k_stride,
                                run.end - run.first, format.k.dim, row.slot, again.data) &&
            kernels->write_values(
                ElementOf(format.exact_v), v + run.first * v_stride + head * format.v.dim, v_stride,
                run.end - run.first, format.v.dim, row.slot, again.data + value_offset);
        Require(finite, fmt::format("{} refuses rows that were accepted, {}", kernels->name, what));
        Require(std::memcmp(again.data, page, format.exact.bytes) == 0,
                fmt::format("{} writes other bytes, {}", kernels->name, what));
      }
    }
  }
}

}  // namespace shorthand
