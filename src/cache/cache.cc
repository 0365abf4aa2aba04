#include "shorthand/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cache/cache_impl.h"
#include "kernels/kernels.h"

namespace shorthand {
namespace {

Status NoSuchSequence(SequenceId id) { return NotFound(fmt::format("no sequence {}", id)); }

std::string Mib(uint64_t bytes) { return fmt::format("{:.1f} MiB", bytes / 1048576.0); }

// Keys can be stored before RoPE only where RoPE can be taken back.
Status CheckRope(const std::vector<LayerGroup>& groups) {
  for (const LayerGroup& group : groups) {
    for (const LayerFormat& layer : group.layers) {
      if (!layer.k.pre || !layer.k.rope.frequencies.empty()) continue;
      return FailedPrecondition(
          fmt::format("keys of layer {}: 'pre' takes RoPE back, but how the model rotates its keys "
                      "is not known; recipes without 'pre' need no RoPE",
                      layer.layer));
    }
  }
  return OkStatus();
}

Status BatchIsOpen(const char* what) {
  return FailedPrecondition(
      fmt::format("{} while a batch is open; commit or abort the batch first", what));
}

}  // namespace

CacheImpl::CacheImpl(Shape shape, Recipe recipe, CacheOptions options,
                     std::vector<LayerGroup> groups)
    : shape_(std::move(shape)),
      recipe_(std::move(recipe)),
      options_(options),
      groups_(std::move(groups)) {
  places_.resize(shape_.layers.size());
  stores_.reserve(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    stores_.emplace_back(groups_[g], &arena_);
    for (size_t l = 0; l < groups_[g].layers.size(); ++l) {
      places_[groups_[g].layers[l].layer] = {static_cast<int>(g), static_cast<int>(l), true};
    }
  }
  for (size_t i = 0; i < shape_.layers.size(); ++i) {
    const int owner = shape_.layers[i].kv_owner;
    if (owner < 0) continue;
    places_[i] = places_[owner];
    places_[i].owner = false;
  }
}

SequenceId CacheImpl::Create() {
  Sequence sequence;
  sequence.groups.resize(stores_.size());
  sequences_.emplace(next_id_, std::move(sequence));
  return next_id_++;
}

Result<const Sequence*> CacheImpl::Find(SequenceId id) const {
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return NoSuchSequence(id);
  return &it->second;
}

Result<SequenceId> CacheImpl::Fork(SequenceId id) {
  if (batch_open_) return BatchIsOpen("Fork");
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return NoSuchSequence(id);
  Sequence copy = it->second;
  for (size_t g = 0; g < stores_.size(); ++g) {
    for (const GroupEntry& entry : copy.groups[g].entries) stores_[g].Share(entry);
  }
  sequences_.emplace(next_id_, std::move(copy));
  return next_id_++;
}

// Drops the entries from `first_entry` on.
void CacheImpl::Forget(Sequence& sequence, size_t first_entry) {
  for (size_t g = 0; g < stores_.size(); ++g) {
    GroupTable& table = sequence.groups[g];
    for (size_t e = first_entry; e < table.entries.size(); ++e) {
      stores_[g].ReleaseBlock(table.entries[e]);
    }
    table.entries.resize(first_entry);
    table.first_exact = std::min<int>(table.first_exact, first_entry);
    table.first_held = std::min<int>(table.first_held, first_entry);
  }
  sequence.entries.resize(first_entry);
}

Status CacheImpl::Release(SequenceId id) {
  if (batch_open_) return BatchIsOpen("Release");
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return NoSuchSequence(id);
  Forget(it->second, 0);
  sequences_.erase(it);
  return OkStatus();
}

// Can the last entry be written on? Its rows must be at hand exactly in every group.
bool CacheImpl::Openable(const Sequence& sequence) const {
  if (sequence.entries.empty() || sequence.entries.back().count == kPageTokens) return false;
  const int count = sequence.entries.back().count;
  for (size_t g = 0; g < stores_.size(); ++g) {
    const GroupEntry& entry = sequence.groups[g].entries.back();
    if (entry.holds_exact) continue;
    const bool in_sinks = sequence.entries.size() == 1 && entry.block != kNoBlock &&
                          stores_[g].block(entry.block).sinks != kNoSlot &&
                          count <= stores_[g].group().sink_tokens;
    if (!in_sinks) return false;
  }
  return true;
}

// The query at `tokens` must not look back at entries that have left the window for good.
Status CacheImpl::CheckWindow(const Sequence& sequence, int64_t tokens) const {
  for (size_t g = 0; g < stores_.size(); ++g) {
    const int window = stores_[g].group().window;
    const int first_held = sequence.groups[g].first_held;
    if (window == 0 || first_held == 0) continue;
    const int64_t last_dropped = sequence.entries[first_held - 1].end() - 1;
    if (tokens - last_dropped < window) {
      return OutOfRange(fmt::format(
          "cannot crop to {} tokens: a window of {} tokens has dropped keys that the next token "
          "would see; 0 or any length from {} on works",
          tokens, window, last_dropped + window));
    }
  }
  return OkStatus();
}

Status CacheImpl::Crop(SequenceId id, int64_t tokens) {
  if (batch_open_) return BatchIsOpen("Crop");
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return NoSuchSequence(id);
  Sequence& sequence = it->second;
  if (tokens < 0 || tokens > sequence.tokens()) {
    return OutOfRange(
        fmt::format("cannot crop to {} tokens: sequence {} has {}", tokens, id, sequence.tokens()));
  }
  if (tokens == sequence.tokens()) return OkStatus();
  if (tokens > 0) {
    if (Status status = CheckWindow(sequence, tokens); !status.ok()) return status;
  }
  const auto cut = std::partition_point(sequence.entries.begin(), sequence.entries.end(),
                                        [&](const Entry& e) { return e.start < tokens; });
  Forget(sequence, cut - sequence.entries.begin());
  if (sequence.entries.empty()) return OkStatus();
  sequence.entries.back().count = static_cast<int>(tokens - sequence.entries.back().start);
  if (!Openable(sequence)) return OkStatus();
  for (size_t g = 0; g < stores_.size(); ++g) {
    const GroupEntry& entry = sequence.groups[g].entries.back();
    if (entry.holds_exact && stores_[g].block(entry.block).references == 1) {
      stores_[g].FreeSealed(entry.block);
    }
  }
  return OkStatus();
}

Status CacheImpl::CheckItems(std::span<const BatchItem> items) const {
  if (batch_open_) return BatchIsOpen("Begin");
  if (items.empty()) return InvalidArgument("a batch needs at least one item");
  std::set<SequenceId> seen;
  for (const BatchItem& item : items) {
    if (!sequences_.contains(item.sequence)) return NoSuchSequence(item.sequence);
    if (item.tokens < 1) {
      return InvalidArgument(fmt::format("sequence {}: {} tokens to append; at least 1 is needed",
                                         item.sequence, item.tokens));
    }
    if (!seen.insert(item.sequence).second) {
      return InvalidArgument(fmt::format("sequence {} is twice in the batch", item.sequence));
    }
  }
  return OkStatus();
}

// Counts the pages that the batch takes, checks them against the budget and makes room for them.
Status CacheImpl::ReserveFor(std::span<const BatchItem> items) {
  struct Need {
    int64_t exact = 0, sealed = 0, sinks = 0;
  };
  std::vector<Need> needs(stores_.size());
  for (const BatchItem& item : items) {
    const Sequence& sequence = sequences_.at(item.sequence);
    const bool open = Openable(sequence);
    const int filled = open ? sequence.entries.back().count : 0;
    const int64_t total = filled + item.tokens;
    const int64_t touched = (total + kPageTokens - 1) / kPageTokens;
    const int64_t completed = total / kPageTokens;
    const bool with_first = sequence.entries.size() <= (open ? 1 : 0) && completed > 0;
    for (size_t g = 0; g < stores_.size(); ++g) {
      const GroupStore& store = stores_[g];
      needs[g].exact += touched;
      if (open) {
        const GroupEntry& last = sequence.groups[g].entries.back();
        if (last.holds_exact && store.block(last.block).references == 1) --needs[g].exact;
      }
      if (!store.has_sealed()) continue;
      const bool all_sinks = store.group().sink_tokens == kPageTokens;
      needs[g].sealed += completed - (with_first && all_sinks ? 1 : 0);
      if (store.has_sinks() && with_first) ++needs[g].sinks;
    }
  }
  uint64_t bytes = 0;
  for (size_t g = 0; g < stores_.size(); ++g) {
    bytes += stores_[g].exact().BytesForMore(needs[g].exact);
    if (stores_[g].has_sealed()) bytes += stores_[g].sealed().BytesForMore(needs[g].sealed);
    if (stores_[g].has_sinks()) bytes += stores_[g].sinks().BytesForMore(needs[g].sinks);
  }
  const uint64_t taken = arena_.taken_bytes();
  if (options_.budget_bytes > 0 && taken + bytes > options_.budget_bytes) {
    return ResourceExhausted(fmt::format(
        "the batch needs {} more, but {} of the budget of {} are taken; release or crop "
        "sequences, or raise the budget",
        Mib(bytes), Mib(taken), Mib(options_.budget_bytes)));
  }
  for (size_t g = 0; g < stores_.size(); ++g) {
    GroupStore& store = stores_[g];
    if (!store.exact().Reserve(needs[g].exact) ||
        (store.has_sealed() && !store.sealed().Reserve(needs[g].sealed)) ||
        (store.has_sinks() && !store.sinks().Reserve(needs[g].sinks))) {
      return ResourceExhausted(fmt::format("the system has no memory for {} more", Mib(bytes)));
    }
  }
  return OkStatus();
}

Result<std::unique_ptr<BatchImpl>> CacheImpl::Begin(std::span<const BatchItem> items) {
  if (Status status = CheckItems(items); !status.ok()) return status;
  if (Status status = ReserveFor(items); !status.ok()) return status;
  batch_open_ = true;
  return std::make_unique<BatchImpl>(this, items);
}

CacheStats CacheImpl::Stats() const {
  CacheStats stats;
  stats.sequences = static_cast<int64_t>(sequences_.size());
  for (const auto& [id, sequence] : sequences_) {
    stats.tokens += sequence.tokens();
    stats.logical_bytes += LogicalBytes(groups_, sequence.tokens());
    stats.f16_bytes += F16Bytes(groups_, sequence.tokens());
  }
  for (const GroupStore& store : stores_) stats.stored_bytes += store.stored_bytes();
  stats.allocated_bytes = arena_.taken_bytes();
  return stats;
}

// The public face.

Cache::Cache(std::unique_ptr<CacheImpl> impl) : impl_(std::move(impl)) {}
Cache::~Cache() = default;

Result<std::unique_ptr<Cache>> Cache::Open(const Shape& shape, const Recipe& recipe,
                                           const CacheOptions& options) {
  for (size_t i = 0; i < shape.layers.size(); ++i) {
    const LayerShape& layer = shape.layers[i];
    if (layer.kv_heads == 0) continue;
    if (layer.v_dim == 0) {
      return Unimplemented(fmt::format(
          "layer {} keeps V inside K (a latent of {} values); such layers can be planned, not run",
          i, layer.k_dim));
    }
    if (layer.query_heads < 1 || layer.query_heads % layer.kv_heads != 0) {
      return InvalidArgument(fmt::format("layer {}: {} query heads cannot share {} KV heads evenly",
                                         i, layer.query_heads, layer.kv_heads));
    }
    const int owner = layer.kv_owner;
    if (owner >= static_cast<int>(i) || (owner >= 0 && shape.layers[owner].kv_owner >= 0)) {
      return InvalidArgument(fmt::format(
          "layer {} reads the keys of layer {}, which is no earlier layer with its own", i, owner));
    }
  }
  if (ActiveKernels() == nullptr) return InvalidArgument(ActiveKernelsReason());
  auto groups = ResolveGroups(shape, recipe);
  if (!groups.ok()) return groups.status();
  if (Status status = CheckRope(*groups); !status.ok()) return status;
  Recipe named = recipe;
  if (Status status = UseCalibration(shape, options.calibration, &named, &*groups); !status.ok()) {
    return status;
  }
  return std::unique_ptr<Cache>(
      new Cache(std::make_unique<CacheImpl>(shape, std::move(named), options, *std::move(groups))));
}

const Shape& Cache::shape() const { return impl_->shape(); }
const Recipe& Cache::recipe() const { return impl_->recipe(); }
SequenceId Cache::Create() { return impl_->Create(); }
Result<SequenceId> Cache::Fork(SequenceId sequence) { return impl_->Fork(sequence); }
Status Cache::Crop(SequenceId sequence, int64_t tokens) { return impl_->Crop(sequence, tokens); }
Status Cache::Release(SequenceId sequence) { return impl_->Release(sequence); }
CacheStats Cache::Stats() const { return impl_->Stats(); }

Result<int64_t> Cache::Tokens(SequenceId sequence) const {
  auto found = impl_->Find(sequence);
  if (!found.ok()) return found.status();
  return (*found)->tokens();
}

Result<std::unique_ptr<Batch>> Cache::Begin(std::span<const BatchItem> items) {
  auto impl = impl_->Begin(items);
  if (!impl.ok()) return impl.status();
  return std::unique_ptr<Batch>(new Batch(*std::move(impl)));
}

}  // namespace shorthand
