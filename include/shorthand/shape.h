// The shape of a model as the cache sees it: per layer the heads, their dimensions and how far a
// query looks back. Sizes, tables and plans follow from it; weights do not matter here.
// Thread-safety: values.
#ifndef SHORTHAND_SHAPE_H_
#define SHORTHAND_SHAPE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace shorthand {

// Which channels RoPE rotates with each other.
enum class RopePairs : uint8_t {
  kNone,
  kAdjacent,  // 0 and 1, 2 and 3, ...
  kHalves,    // i and i + dims / 2
};

// How a layer rotates keys, as far as it can be taken back. A factor that RoPE multiplies keys by
// does not matter.
struct Rope {
  RopePairs pairs = RopePairs::kNone;
  std::vector<float> frequencies;  // of the pairs, radians a position; empty: not known
  friend bool operator==(const Rope&, const Rope&) = default;
};

struct LayerShape {
  int query_heads = 0;
  int kv_heads = 0;   // 0: the layer keeps no keys and values (linear attention, Mamba)
  int k_dim = 0;      // head dim of K
  int v_dim = 0;      // head dim of V; 0: V is a part of K and stored once (MLA latent)
  int window = 0;     // a query at i sees j iff i - j < window; 0: everything before it
  int kv_owner = -1;  // the layer whose keys and values this one reads; -1: its own
  float scale = 0;    // of q.k before the soft-cap; 0: 1 / sqrt(k_dim)
  float softcap = 0;  // s <- softcap * tanh(s / softcap); 0: none
  Rope rope = {};     // what recipes with `pre` ask for
  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};

struct Shape {
  std::string name;
  std::vector<LayerShape> layers;
  int64_t max_context_tokens = 0;  // what the model was made for; 0: unknown
  int64_t parameters = 0;          // number of weights; 0: unknown
};

}  // namespace shorthand

#endif  // SHORTHAND_SHAPE_H_
