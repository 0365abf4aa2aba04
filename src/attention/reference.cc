#include "attention/reference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "cache/cache_impl.h"
#include "cache/exact_rows.h"
#include "cache/view.h"

namespace shorthand {
namespace {

struct PageRows {
  std::vector<float> k;  // [128][D of K]
  std::vector<float> v;  // [128][D of V]
};

// Reads the pages of one KV head of one layer.
class Reader {
 public:
  Reader(const CacheImpl& cache, int layer)
      : place_(cache.place(layer)),
        store_(cache.stores()[place_.group]),
        format_(cache.format(place_)),
        exact_(format_) {}

  PageRows Exact(const Block& block, int head) const {
    PageRows rows = Empty();
    const uint8_t* page = store_.exact().Page(place_.index, head, block.exact);
    exact_.ReadKeys(page, kPageTokens, rows.k.data());
    exact_.ReadValues(page + exact_.ValueOffset(kPageTokens), kPageTokens, rows.v.data());
    return rows;
  }

  // Sinks take the place of the slots that are masked in the sealed page.
  PageRows Sealed(const Block& block, int head) const {
    PageRows rows = Empty();
    const uint8_t* page = store_.sealed().Page(place_.index, head, block.sealed);
    const PageDescriptor& descriptor =
        *store_.sealed().Descriptor(place_.index, head, block.sealed);
    const PageLayout& layout = format_.sealed;
    if (format_.k.exact) {
      exact_.ReadKeys(page + layout.k.codes_offset, kPageTokens, rows.k.data());
    } else {
      UnsealSide(format_.k, format_.k_tables[head], layout.k, page, descriptor, rows.k.data());
    }
    if (format_.v.exact) {
      exact_.ReadValues(page + layout.v.codes_offset, kPageTokens, rows.v.data());
    } else {
      UnsealSide(format_.v, format_.v_tables[head], layout.v, page, descriptor, rows.v.data());
    }
    if (block.sinks != kNoSlot) {
      const uint8_t* sinks = store_.sinks().Page(place_.index, head, block.sinks);
      const int count = store_.group().sink_tokens;
      exact_.ReadKeys(sinks, count, rows.k.data());
      exact_.ReadValues(sinks + exact_.ValueOffset((count + 15) / 16 * 16), count, rows.v.data());
    }
    return rows;
  }

 private:
  PageRows Empty() const {
    return {std::vector<float>(static_cast<size_t>(kPageTokens) * format_.k.dim),
            std::vector<float>(static_cast<size_t>(kPageTokens) * format_.v.dim)};
  }

  LayerPlace place_;
  const GroupStore& store_;
  const LayerFormat& format_;
  ExactRows exact_;
};

// The keys and values that one row sees, in order, and the softmax over them.
class RowSoftmax {
 public:
  explicit RowSoftmax(int v_dim) : sum_(v_dim) {}

  void Add(double score, const float* v) {
    scores_.push_back(score);
    values_.push_back(v);
  }
  void Finish(double sink_logit, double* out) {
    double max = sink_logit;
    for (double s : scores_) max = std::max(max, s);
    double total = std::exp(sink_logit - max);
    for (size_t t = 0; t < scores_.size(); ++t) {
      const double weight = std::exp(scores_[t] - max);
      total += weight;
      for (size_t c = 0; c < sum_.size(); ++c) sum_[c] += weight * values_[t][c];
    }
    for (size_t c = 0; c < sum_.size(); ++c) out[c] = scores_.empty() ? 0 : sum_[c] / total;
  }

 private:
  std::vector<double> scores_;
  std::vector<const float*> values_;
  std::vector<double> sum_;
};

}  // namespace

void ReferenceAttention(const Batch& public_batch, const AttentionArgs& args, double* out) {
  const BatchImpl& batch = *public_batch.impl();
  const CacheImpl& cache = batch.cache();
  const LayerShape& shape = cache.shape().layers[args.layer];
  const LayerPlace& place = cache.place(args.layer);
  const GroupStore& store = cache.stores()[place.group];
  const int group_heads = shape.query_heads / shape.kv_heads;
  const double scale = shape.scale != 0 ? shape.scale : 1 / std::sqrt(double(shape.k_dim));
  const Reader reader(cache, args.layer);
  std::map<std::pair<BlockId, std::pair<int, View>>, PageRows> pages;

  for (size_t r = 0; r < batch.rows().size(); ++r) {
    const BatchImpl::Row& row = batch.rows()[r];
    const Sequence& sequence = batch.items()[row.item].next;
    const int64_t position = batch.Position(row);
    for (int head = 0; head < shape.query_heads; ++head) {
      const int kv_head = head / group_heads;
      const float* q = args.q + (r * shape.query_heads + head) * shape.k_dim;
      RowSoftmax softmax(shape.v_dim);
      for (int e = 0; e <= row.entry; ++e) {
        const GroupEntry& entry = sequence.groups[place.group].entries[e];
        if (entry.block == kNoBlock) continue;
        const bool exact = entry.holds_exact && ViewOf(store.group(), e, row.entry) == View::kExact;
        const View view = exact ? View::kExact : View::kSealed;
        auto [it, fresh] = pages.try_emplace({entry.block, {kv_head, view}});
        if (fresh) {
          const Block& block = store.block(entry.block);
          it->second = exact ? reader.Exact(block, kv_head) : reader.Sealed(block, kv_head);
        }
        for (int slot = 0; slot < sequence.entries[e].count; ++slot) {
          const int64_t key_position = sequence.entries[e].start + slot;
          const bool in_window = shape.window == 0 || position - key_position < shape.window;
          if (key_position > position || !in_window) continue;
          double score = 0;
          for (int c = 0; c < shape.k_dim; ++c) {
            score += double(q[c]) * it->second.k[static_cast<size_t>(slot) * shape.k_dim + c];
          }
          score *= scale;
          if (shape.softcap > 0) score = shape.softcap * std::tanh(score / shape.softcap);
          softmax.Add(score, it->second.v.data() + static_cast<size_t>(slot) * shape.v_dim);
        }
      }
      const double sink = args.sink_logits != nullptr ? args.sink_logits[head] : -INFINITY;
      softmax.Finish(sink, out + (r * shape.query_heads + head) * shape.v_dim);
    }
  }
}

}  // namespace shorthand
