#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cache/cache_impl.h"
#include "cache/exact_rows.h"
#include "cache/page_sealer.h"
#include "shorthand/cache.h"

namespace shorthand {

BatchImpl::BatchImpl(CacheImpl* cache, std::span<const BatchItem> items)
    : cache_(cache),
      seal_jobs_(cache->stores_.size()),
      new_blocks_(cache->stores_.size()),
      newly_sealed_old_blocks_(cache->stores_.size()) {
  items_.reserve(items.size());
  for (const BatchItem& item : items) {
    const Sequence& sequence = cache_->sequences_.at(item.sequence);
    items_.push_back(
        {item.sequence, sequence, sequence.tokens(), static_cast<int>(rows_.size()), item.tokens});
    Extend(items_.back());
  }
}

BatchImpl::~BatchImpl() { Abort(); }

// Gives the item's sequence places for its new tokens and lists the pages that become complete.
void BatchImpl::Extend(Item& item) {
  bool open = cache_->Openable(item.next);
  if (open) OpenLastEntry(item);
  for (int left = item.tokens; left > 0;) {
    if (!open) AddEntry(item);
    const int entry = static_cast<int>(item.next.entries.size()) - 1;
    Entry& last = item.next.entries.back();
    const int taken = std::min(left, kPageTokens - last.count);
    for (int i = 0; i < taken; ++i) {
      rows_.push_back({static_cast<int>(&item - items_.data()), entry, last.count + i});
    }
    last.count += taken;
    left -= taken;
    open = last.count < kPageTokens;
    if (!open) CompleteEntry(item, entry);
  }
}

// Makes the last entry's blocks our own, with exact rows: shared ones are copied. One that was
// cropped while it was shared may still have its sealed form.
void BatchImpl::OpenLastEntry(Item& item) {
  const int count = item.next.entries.back().count;
  for (size_t g = 0; g < cache_->stores_.size(); ++g) {
    GroupStore& store = cache_->stores_[g];
    GroupTable& table = item.next.groups[g];
    GroupEntry& entry = table.entries.back();
    table.first_exact = std::min(table.first_exact, static_cast<int>(table.entries.size()) - 1);
    if (entry.holds_exact && store.block(entry.block).references == 1) {
      store.FreeSealed(entry.block);
      continue;
    }
    const BlockId copy = store.TakeBlock();
    store.CopyExactRows(entry.block, copy, count);
    new_blocks_[g].push_back(copy);
    entry = {copy, true};
  }
}

void BatchImpl::AddEntry(Item& item) {
  item.next.entries.push_back({item.next.tokens(), 0});
  for (size_t g = 0; g < cache_->stores_.size(); ++g) {
    const BlockId block = cache_->stores_[g].TakeBlock();
    new_blocks_[g].push_back(block);
    item.next.groups[g].entries.push_back({block, true});
  }
}

void BatchImpl::CompleteEntry(const Item& item, int entry) {
  for (size_t g = 0; g < cache_->stores_.size(); ++g) {
    GroupStore& store = cache_->stores_[g];
    const int sinks = entry == 0 ? store.group().sink_tokens : 0;
    if (!store.has_sealed() || sinks == kPageTokens) continue;
    const BlockId block = item.next.groups[g].entries[entry].block;
    store.TakeSealed(block, entry == 0);
    seal_jobs_[g].push_back({block, item.next.entries[entry].start, sinks});
    if (std::find(new_blocks_[g].begin(), new_blocks_[g].end(), block) == new_blocks_[g].end()) {
      newly_sealed_old_blocks_[g].push_back(block);
    }
  }
}

// Rows from `first` on, before `end`, that stand in one page one after the other.
int BatchImpl::RunOfRows(int first, int end) const {
  const Row& row = rows_[first];
  int count = 1;
  while (first + count < end && rows_[first + count].item == row.item &&
         rows_[first + count].entry == row.entry) {
    ++count;
  }
  return count;
}

void BatchImpl::Write(int layer, const float* k, const float* v, int worker, int workers) {
  const LayerPlace& place = cache_->place(layer);
  if (place.group < 0 || !place.owner) {
    Fail(InvalidArgument(fmt::format("layer {} keeps no keys and values of its own", layer)));
    return;
  }
  const GroupStore& store = cache_->stores_[place.group];
  const LayerFormat& format = store.group().layers[place.index];
  const ExactRows exact(format);
  const int heads = format.kv_heads;
  const size_t k_stride = static_cast<size_t>(heads) * format.k.dim;
  const size_t v_stride = static_cast<size_t>(heads) * format.v.dim;
  const int first = static_cast<int>(rows_.size() * worker / workers);
  const int end = static_cast<int>(rows_.size() * (worker + 1) / workers);
  for (int r = first, count; r < end; r += count) {
    count = RunOfRows(r, end);
    const Row& row = rows_[r];
    const GroupEntry& entry = items_[row.item].next.groups[place.group].entries[row.entry];
    const int slot = store.block(entry.block).exact;
    for (int head = 0; head < heads; ++head) {
      uint8_t* keys = store.exact().Page(place.index, head, slot);
      uint8_t* values = keys + exact.ValueOffset(kPageTokens);
      const float* key = k + r * k_stride + static_cast<size_t>(head) * format.k.dim;
      const float* value = v + r * v_stride + static_cast<size_t>(head) * format.v.dim;
      const bool keys_fit = exact.WriteKeys(keys, row.slot, count, key, k_stride);
      if (keys_fit && exact.WriteValues(values, row.slot, count, value, v_stride)) continue;
      const auto fits = [&](int i) {
        return keys_fit ? exact.WriteValues(values, row.slot + i, 1, value + i * v_stride, 0)
                        : exact.WriteKeys(keys, row.slot + i, 1, key + i * k_stride, 0);
      };
      int misfit = 0;
      while (fits(misfit)) ++misfit;
      Fail(InvalidArgument(fmt::format(
          "the {} of layer {}, position {}, KV head {} is not finite or beyond the range of its "
          "exact form; nothing of the batch was kept",
          keys_fit ? "value" : "key", layer, Position(rows_[r + misfit]), head)));
    }
  }
}

void BatchImpl::Seal(int layer, int worker, int workers) {
  const LayerPlace& place = cache_->place(layer);
  if (place.group < 0 || !place.owner || seal_jobs_[place.group].empty()) return;
  if (!status().ok()) return;  // rows that cannot be coded
  const GroupStore& store = cache_->stores_[place.group];
  const LayerFormat& format = store.group().layers[place.index];
  PageSealer sealer(format, *ActiveKernels());
  const std::vector<SealJob>& jobs = seal_jobs_[place.group];
  const int total = static_cast<int>(jobs.size()) * format.kv_heads;
  for (int i = worker; i < total; i += workers) {
    const SealJob& job = jobs[i / format.kv_heads];
    const int head = i % format.kv_heads;
    const Block& block = store.block(job.block);
    const uint8_t* from = store.exact().Page(place.index, head, block.exact);
    uint8_t* to = store.sealed().Page(place.index, head, block.sealed);
    PageDescriptor* descriptor = store.sealed().Descriptor(place.index, head, block.sealed);
    sealer.Seal(from, head, job.first_position, job.first_token, to, descriptor);
    if (job.first_token > 0) {
      const int sink_rows = (job.first_token + 15) / 16 * 16;
      ExactRows(format).Copy(from, kPageTokens, store.sinks().Page(place.index, head, block.sinks),
                             sink_rows, job.first_token);
    }
  }
}

Status BatchImpl::status() const {
  std::lock_guard lock(mutex_);
  return status_;
}

void BatchImpl::Fail(Status status) {
  std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = std::move(status);
}

// Lets go of exact rows and blocks that no later query can see.
void BatchImpl::DropUnneeded(Sequence& sequence) {
  const int64_t tokens = sequence.tokens();
  const int entries = static_cast<int>(sequence.entries.size());
  for (size_t g = 0; g < cache_->stores_.size(); ++g) {
    GroupStore& store = cache_->stores_[g];
    const LayerGroup& group = store.group();
    GroupTable& table = sequence.groups[g];
    const int first_droppable = group.sink_tokens == kPageTokens ? 1 : 0;
    table.first_exact = std::max(table.first_exact, first_droppable);
    while (table.first_exact < entries &&
           !ExactStillNeeded(group, sequence.entries[table.first_exact].end(), tokens)) {
      store.ReleaseExact(table.entries[table.first_exact++]);
    }
    while (table.first_held < entries &&
           !StillInWindow(group, sequence.entries[table.first_held].end(), tokens)) {
      store.ReleaseBlock(table.entries[table.first_held++]);
    }
  }
}

Status BatchImpl::Commit() {
  if (!open_) return FailedPrecondition("the batch is already committed or aborted");
  if (Status failure = status(); !failure.ok()) {
    Abort();
    return failure;
  }
  for (Item& item : items_) {
    Sequence& old = cache_->sequences_.at(item.id);
    for (size_t g = 0; g < cache_->stores_.size(); ++g) {
      std::vector<GroupEntry>& entries = old.groups[g].entries;
      if (entries.empty()) continue;
      GroupEntry& last = entries.back();
      const GroupEntry& kept = item.next.groups[g].entries[entries.size() - 1];
      if (last.block != kept.block) cache_->stores_[g].ReleaseBlock(last);
    }
    old = std::move(item.next);
    DropUnneeded(old);
  }
  open_ = false;
  cache_->batch_open_ = false;
  return OkStatus();
}

void BatchImpl::Abort() {
  if (!open_) return;
  open_ = false;
  for (size_t g = 0; g < cache_->stores_.size(); ++g) {
    GroupStore& store = cache_->stores_[g];
    for (BlockId block : newly_sealed_old_blocks_[g]) store.FreeSealed(block);
    for (BlockId block : new_blocks_[g]) {
      GroupEntry entry{block, true};
      store.ReleaseBlock(entry);
    }
  }
  cache_->batch_open_ = false;
}

// The public face.

Batch::Batch(std::unique_ptr<BatchImpl> impl) : impl_(std::move(impl)) {}
Batch::~Batch() = default;
int Batch::rows() const { return static_cast<int>(impl_->rows().size()); }
int64_t Batch::Position(int row) const { return impl_->Position(impl_->rows()[row]); }
void Batch::Write(int layer, const float* k, const float* v, int worker, int workers) {
  impl_->Write(layer, k, v, worker, workers);
}
void Batch::Seal(int layer, int worker, int workers) { impl_->Seal(layer, worker, workers); }
Status Batch::status() const { return impl_->status(); }
Status Batch::Commit() { return impl_->Commit(); }
void Batch::Abort() { impl_->Abort(); }

}  // namespace shorthand
