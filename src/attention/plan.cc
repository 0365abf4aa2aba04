#include <fmt/format.h>

#include <algorithm>

#include "attention/block_attention.h"
#include "attention/plan_impl.h"
#include "shorthand/attention.h"

namespace shorthand {
namespace {

// Tokens of one item that share the unpacking of a page.
constexpr int kBlockTokens = 32;
// Up to this many tokens a block is worked on split by split.
constexpr int kDecodeTokens = 8;

const HeadTables& AnyHead(const std::vector<HeadTables>& tables) {
  static const HeadTables none;
  return tables.empty() ? none : tables.front();
}

}  // namespace

LayerPaths::LayerPaths(const LayerFormat& format)
    : k(format.k, AnyHead(format.k_tables)), v(format.v, AnyHead(format.v_tables)) {
  if (!format.k.planes()) return;
  for (const HeadTables& tables : format.k_tables) planes.push_back(PlanesOf(tables));
}

AttentionPlanImpl::AttentionPlanImpl(BatchImpl* batch, const KernelTable* kernels)
    : batch_(batch), kernels_(kernels), progress_(batch->cache().shape().layers.size()) {
  const CacheImpl& cache = batch->cache();
  const Shape& shape = cache.shape();
  const LayerFormat none;
  for (size_t l = 0; l < shape.layers.size(); ++l) {
    const LayerPlace& place = cache.place(l);
    const LayerFormat& format = place.group < 0 ? none : cache.format(place);
    paths_.emplace_back(format);
  }
  size_t partial_floats = 0;
  for (size_t g = 0; g < cache.stores().size(); ++g) {
    const LayerGroup& group = cache.stores()[g].group();
    GroupPlan plan;
    for (size_t i = 0; i < batch->items().size(); ++i) AddBlocks(group, i, &plan);
    for (size_t l = 0; l < shape.layers.size(); ++l) {
      if (cache.place(l).group != static_cast<int>(g)) continue;
      const LayerShape& layer = shape.layers[l];
      const int rows = plan.partial_tokens * layer.query_heads / layer.kv_heads;
      plan.max_kv_heads = std::max(plan.max_kv_heads, layer.kv_heads);
      plan.partial_floats =
          std::max(plan.partial_floats,
                   SoftmaxStates::Floats(rows, cache.format(cache.place(l)).v.padded_dim));
      const size_t counters = plan.blocks.size() * layer.kv_heads;
      progress_[l].finished = std::make_unique<std::atomic<int>[]>(counters);
    }
    partial_floats =
        std::max(partial_floats, plan.partials * plan.max_kv_heads * plan.partial_floats);
    groups_.push_back(std::move(plan));
  }
  partials_ = MakeAlignedArray<float>(partial_floats);
}

void AttentionPlanImpl::AddBlocks(const LayerGroup& group, int item_index, GroupPlan* plan) {
  const BatchImpl::Item& item = batch_->items()[item_index];
  const int block_tokens = item.tokens <= kDecodeTokens ? kDecodeTokens : kBlockTokens;
  for (int token = 0; token < item.tokens; token += block_tokens) {
    RowBlock block;
    block.item = item_index;
    block.first_row = item.first_row + token;
    block.tokens = std::min(block_tokens, item.tokens - token);
    int first_entry = 0;
    if (group.window > 0) {
      const int64_t oldest = item.first_position + token - group.window + 1;
      const std::vector<Entry>& entries = item.next.entries;
      first_entry =
          static_cast<int>(std::partition_point(entries.begin(), entries.end(),
                                                [&](const Entry& e) { return e.end() <= oldest; }) -
                           entries.begin());
    }
    const int last_entry = batch_->rows()[block.first_row + block.tokens - 1].entry;
    block.first_split = first_entry / kSplitEntries;
    block.end_split = last_entry / kSplitEntries + 1;
    block.by_split = item.tokens <= kDecodeTokens && block.end_split - block.first_split > 1;
    block.first_unit = static_cast<int>(plan->unit_blocks.size());
    block.first_partial = plan->partials;
    plan->unit_blocks.insert(plan->unit_blocks.end(), block.units(),
                             static_cast<int>(plan->blocks.size()));
    if (block.by_split) {
      plan->partials += block.units();
      plan->partial_tokens = std::max(plan->partial_tokens, block.tokens);
    }
    plan->blocks.push_back(block);
  }
}

Unit AttentionPlanImpl::UnitAt(const GroupPlan& plan, int heads, int i) {
  const int index = plan.unit_blocks[i / heads];
  const RowBlock& block = plan.blocks[index];
  const int place = i - block.first_unit * heads;
  const int split = block.by_split ? block.first_split + place % block.units() : kAllSplits;
  return {index, place / block.units(), split};
}

// The first page of the i-th unit of a layer; empty behind the last.
PageBytes AttentionPlanImpl::FirstPage(int layer, int i) const {
  const LayerPlace& place = batch_->cache().place(layer);
  const GroupPlan& plan = groups_[place.group];
  const int heads = batch_->cache().shape().layers[layer].kv_heads;
  if (i >= static_cast<int>(plan.unit_blocks.size()) * heads) return {};
  const Unit unit = UnitAt(plan, heads, i);
  const RowBlock& block = plan.blocks[unit.block];
  const int split = unit.split == kAllSplits ? block.first_split : unit.split;
  return PageAt(*batch_, place, block.item, unit.head, split * kSplitEntries);
}

void AttentionPlanImpl::Run(const AttentionArgs& args, int worker, int workers) {
  thread_local AttentionScratch scratch;
  const CacheImpl& cache = batch_->cache();
  const LayerPlace& place = cache.place(args.layer);
  const GroupPlan& plan = groups_[place.group];
  const LayerShape& shape = cache.shape().layers[args.layer];
  const int v_dim = cache.format(place).v.padded_dim;
  Progress& progress = progress_[args.layer];
  const int heads = shape.kv_heads;
  const int total = static_cast<int>(plan.unit_blocks.size()) * heads;
  int gathered_block = -1, gathered_head = -1;  // whose queries the scratch has
  for (int i; (i = progress.next.fetch_add(1, std::memory_order_relaxed)) < total;) {
    const Unit unit = UnitAt(plan, heads, i);
    const RowBlock& row_block = plan.blocks[unit.block];
    const int head = unit.head;
    BlockAttention attention(*batch_, *kernels_, args, paths_[args.layer], row_block, head,
                             &scratch);
    // Workers keep about the same pace, so the next unit of this one is likely `workers` ahead.
    const PageBytes following = FirstPage(args.layer, i + workers);
    auto expect_finite = [&](bool finite, const char* what) {
      if (finite) return;
      batch_->Fail(InvalidArgument(fmt::format(
          "{} of layer {} in rows {} to {} is not finite; nothing of the batch was kept", what,
          args.layer, row_block.first_row, row_block.first_row + row_block.tokens - 1)));
    };
    if (unit.block != gathered_block || head != gathered_head) {
      expect_finite(attention.GatherQueries(), "a query");
      gathered_block = unit.block;
      gathered_head = head;
    }
    const size_t floats = SoftmaxStates::Floats(attention.rows(), v_dim);
    scratch.joined.resize(floats);
    SoftmaxStates joined(scratch.joined.data(), attention.rows(), v_dim);
    if (unit.split == kAllSplits) {
      scratch.split.resize(floats);
      SoftmaxStates split(scratch.split.data(), attention.rows(), v_dim);
      joined.Clear();
      for (int s = row_block.first_split; s < row_block.end_split; ++s) {
        const PageBytes next = s + 1 == row_block.end_split ? following
                                                            : PageAt(*batch_, place, row_block.item,
                                                                     head, (s + 1) * kSplitEntries);
        attention.RunSplit(s, next, split);
        joined.Join(*kernels_, split);
      }
      expect_finite(attention.Finish(joined), "an attention score");
      continue;
    }
    auto partial = [&](int s) {
      const size_t at =
          (row_block.first_partial + s - row_block.first_split) * plan.max_kv_heads + head;
      return SoftmaxStates(partials_.get() + at * plan.partial_floats, attention.rows(), v_dim);
    };
    attention.RunSplit(unit.split, following, partial(unit.split));
    std::atomic<int>& finished = progress.finished[unit.block * heads + head];
    if (finished.fetch_add(1, std::memory_order_acq_rel) + 1 < row_block.units()) continue;
    joined.Clear();
    for (int s = row_block.first_split; s < row_block.end_split; ++s) {
      joined.Join(*kernels_, partial(s));
    }
    expect_finite(attention.Finish(joined), "an attention score");
  }
}

// The public face.

AttentionPlan::AttentionPlan(std::unique_ptr<AttentionPlanImpl> impl) : impl_(std::move(impl)) {}
AttentionPlan::~AttentionPlan() = default;

Result<std::unique_ptr<AttentionPlan>> AttentionPlan::Create(const Batch& batch) {
  const KernelTable* kernels = ActiveKernels();
  if (kernels == nullptr) return InvalidArgument(ActiveKernelsReason());
  return std::unique_ptr<AttentionPlan>(
      new AttentionPlan(std::make_unique<AttentionPlanImpl>(batch.impl(), kernels)));
}

void AttentionPlan::Run(const AttentionArgs& args, int worker, int workers) {
  impl_->Run(args, worker, workers);
}

Result<TargetInfo> ActiveTarget() {
  const KernelTable* kernels = ActiveKernels();
  if (kernels == nullptr) return InvalidArgument(ActiveKernelsReason());
  return TargetInfo{kernels->name, ActiveKernelsReason()};
}

}  // namespace shorthand
