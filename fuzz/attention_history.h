// AttentionHistory: the rows that a sequence was given, and attention over them in double precision
// straight from its definition: what a cache that loses nothing would compute.
//
// Needs no cache, so it is also a check of what a cache keeps.
// Thread-safety: one thread.
#ifndef SHORTHAND_FUZZ_ATTENTION_HISTORY_H_
#define SHORTHAND_FUZZ_ATTENTION_HISTORY_H_

#include <cstdint>
#include <vector>

#include "attention_scenario.h"

namespace shorthand {

class AttentionHistory {
 public:
  explicit AttentionHistory(const AttentionScenario& scenario)
      : scenario_(&scenario), layers_(scenario.shape.layers.size()) {}

  // Rows of one more token. The number makes its rows.
  void Append(int64_t token);
  void Crop(int tokens);
  int tokens() const { return tokens_; }

  // Appends the rows of `tokens` tokens from `first` on: [tokens][kv_heads][dim] each.
  void AppendRows(int layer, int first, int tokens, std::vector<float>* k,
                  std::vector<float>* v) const;

  // Query q [query_heads][k_dim] for ordinal `position`, made so that one visible token's score, a
  // different one for each head, is about `score`: keys of noise leave the others near 0.
  void Aim(int layer, int position, double score, uint64_t seed, float* q) const;

  // The output of query q [query_heads][k_dim] at ordinal `position`, out [query_heads][v_dim];
  // returns the largest magnitude of a score before the soft-cap.
  double Attend(int layer, int position, const float* q, double* out) const;

 private:
  struct Layer {
    std::vector<float> k, v;  // [token][kv_heads][dim]
  };
  const float* KeyOf(int layer, int token, int query_head) const;

  const AttentionScenario* scenario_;
  std::vector<Layer> layers_;
  int tokens_ = 0;
};

}  // namespace shorthand

#endif  // SHORTHAND_FUZZ_ATTENTION_HISTORY_H_
