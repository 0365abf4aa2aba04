// Stand-in for a model in tests: rows of keys, values and queries that depend only on what the
// token is, where it stands and which layer asks, so that any two ways to feed the same text must
// give the same pages and outputs.
// Thread-safety: one thread at a time.
#ifndef SHORTHAND_CACHE_TESTING_H_
#define SHORTHAND_CACHE_TESTING_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quant/head_tables.h"
#include "shorthand/attention.h"
#include "shorthand/cache.h"

namespace shorthand {

inline Shape TestShape(int layers, int kv_heads, int group_heads, int dim, int window = 0) {
  Shape shape;
  shape.name = "test";
  for (int i = 0; i < layers; ++i) {
    LayerShape layer;
    layer.query_heads = kv_heads * group_heads;
    layer.kv_heads = kv_heads;
    layer.k_dim = dim;
    layer.v_dim = dim;
    layer.window = window;
    layer.rope.pairs = i % 2 == 0 ? RopePairs::kHalves : RopePairs::kAdjacent;
    for (int c = 0; c < dim / 2; ++c) layer.rope.frequencies.push_back(std::exp2(-c / 4.0f));
    shape.layers.push_back(layer);
  }
  return shape;
}

// `calibration`: null for the neutral one.
inline std::unique_ptr<Cache> OpenCache(const Shape& shape, const std::string& recipe,
                                        uint64_t budget_bytes = 0,
                                        const Calibration* calibration = nullptr) {
  auto parsed = Recipe::Parse(recipe);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  const Calibration neutral = NeutralCalibration(shape);
  if (calibration == nullptr) calibration = &neutral;
  auto cache = Cache::Open(shape, *parsed, {budget_bytes, calibration});
  EXPECT_TRUE(cache.ok()) << recipe << ": " << cache.status().message();
  return cache.ok() ? *std::move(cache) : nullptr;
}

// Bits of a counter, well mixed (SplitMix64).
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// About normal, variance 1.
inline float Noise(uint64_t seed) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<float>(Mix(seed * 4 + i) >> 40) / (1 << 24);
  return (sum - 2) * 1.7320508f;
}

class TestModel {
 public:
  explicit TestModel(Shape shape) : shape_(std::move(shape)) {}

  // Rows of one token, appended to `to`.
  enum Kind { kKey, kValue, kQuery };
  void AppendRow(Kind kind, int layer, int64_t position, int token, std::vector<float>* to) const {
    const LayerShape& l = shape_.layers[layer];
    const int heads = kind == kQuery ? l.query_heads : l.kv_heads;
    const int dim = kind == kValue ? l.v_dim : l.k_dim;
    for (int h = 0; h < heads; ++h) {
      for (int c = 0; c < dim; ++c) {
        uint64_t seed = ((kind * 64 + layer) * 1024 + h) * 1024 + c;
        seed = Mix(seed) ^ Mix(static_cast<uint64_t>(position) * 65536 + token);
        float x = Noise(seed);
        // Keys with two loud channels, as real ones have.
        if (kind == kKey && (c == 1 || c == dim / 2)) x = 6 + 2 * x;
        to->push_back(x);
      }
    }
  }

  // Appends tokens to sequences in one batch and returns the outputs of all layers, [layer][row]...
  // Workers run one after another: their number must not matter.
  struct Item {
    SequenceId sequence;
    std::vector<int> tokens;
  };
  std::vector<float> Forward(Cache& cache, const std::vector<Item>& items, int workers = 1) const {
    std::vector<float> outputs;
    auto batch = BeginBatch(cache, items);
    if (batch == nullptr) return outputs;
    auto plan = AttentionPlan::Create(*batch);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    for (size_t layer = 0; layer < shape_.layers.size(); ++layer) {
      const LayerShape& l = shape_.layers[layer];
      WriteLayer(*batch, items, layer, workers);
      const std::vector<float> q = Rows(kQuery, *batch, items, layer);
      const size_t at = outputs.size();
      outputs.resize(at + static_cast<size_t>(batch->rows()) * l.query_heads * l.v_dim);
      for (int w = 0; w < workers; ++w) {
        (*plan)->Run({static_cast<int>(layer), q.data(), outputs.data() + at, nullptr}, w, workers);
      }
    }
    const Status status = batch->Commit();
    EXPECT_TRUE(status.ok()) << status.message();
    return outputs;
  }

  std::unique_ptr<Batch> BeginBatch(Cache& cache, const std::vector<Item>& items) const {
    std::vector<BatchItem> sizes;
    for (const Item& item : items) {
      sizes.push_back({item.sequence, static_cast<int>(item.tokens.size())});
    }
    auto batch = cache.Begin(sizes);
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    return batch.ok() ? *std::move(batch) : nullptr;
  }

  void WriteLayer(Batch& batch, const std::vector<Item>& items, int layer, int workers) const {
    const std::vector<float> k = Rows(kKey, batch, items, layer);
    const std::vector<float> v = Rows(kValue, batch, items, layer);
    for (int w = 0; w < workers; ++w) batch.Write(layer, k.data(), v.data(), w, workers);
    for (int w = 0; w < workers; ++w) batch.Seal(layer, w, workers);
  }

  std::vector<float> Rows(Kind kind, const Batch& batch, const std::vector<Item>& items,
                          int layer) const {
    std::vector<float> rows;
    int row = 0;
    for (const Item& item : items) {
      for (int token : item.tokens) AppendRow(kind, layer, batch.Position(row++), token, &rows);
    }
    return rows;
  }

  // Feeds `tokens` in chunks of `chunk`; outputs per token: [token][layer]...
  std::vector<std::vector<float>> Feed(Cache& cache, SequenceId sequence,
                                       const std::vector<int>& tokens, int chunk,
                                       int workers = 1) const {
    std::vector<std::vector<float>> outputs(tokens.size());
    for (size_t at = 0; at < tokens.size(); at += chunk) {
      const size_t end = std::min(tokens.size(), at + chunk);
      const std::vector<int> part(tokens.begin() + at, tokens.begin() + end);
      const std::vector<float> all = Forward(cache, {{sequence, part}}, workers);
      size_t from = 0;
      for (const LayerShape& l : shape_.layers) {
        const size_t row_floats = static_cast<size_t>(l.query_heads) * l.v_dim;
        for (size_t t = at; t < end; ++t, from += row_floats) {
          outputs[t].insert(outputs[t].end(), all.begin() + from, all.begin() + from + row_floats);
        }
      }
    }
    return outputs;
  }

  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
};

inline std::vector<int> Text(int tokens, int seed = 0) {
  std::vector<int> text;
  for (int i = 0; i < tokens; ++i) text.push_back(static_cast<int>(Mix(seed * 100003 + i) % 50000));
  return text;
}

}  // namespace shorthand

#endif  // SHORTHAND_CACHE_TESTING_H_
