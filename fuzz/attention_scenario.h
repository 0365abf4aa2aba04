// AttentionScenario: what one input of attention_fuzz asks for, decoded from its bytes.
//
// A shape, a recipe, how keys, values and queries are filled, and a list of steps. Rows depend on
// the number of their token alone, so the same tokens can be fed to any number of caches.
// Thread-safety: values and pure functions.
#ifndef SHORTHAND_FUZZ_ATTENTION_SCENARIO_H_
#define SHORTHAND_FUZZ_ATTENTION_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz_input.h"
#include "shorthand/shape.h"

namespace shorthand {

enum class Filling : uint8_t {
  kNoise,         // about normal
  kLoudChannels,  // noise and two channels around 6, as keys of real models
  kMean,          // 1 + noise / 8
  kConstant,
  kZero,       // of both signs
  kTiny,       // around 2^-20: subnormal as f16
  kSubnormal,  // around 2^-140
  kLoud,       // noise times 2 to the 13: near the end of f16
  kSpikes,     // noise / 16, one in 61 times 1024
  kExtremes,   // of f16, and ones
  kHuge,       // around 2^100
};

struct Rows {
  Filling filling = Filling::kNoise;
  uint64_t seed = 0;
  // Appends the row of a token: [heads][dim].
  void Append(int64_t token, int heads, int dim, std::vector<float>* to) const;
};

struct Step {
  enum Kind : uint8_t {
    kAppend,  // `tokens` to one sequence, `chunk` at a time; the second cache `other_chunk`
    kQuery,   // `tokens` to every sequence, in one batch, with attention
    kCrop,    // one sequence to `tokens` of it, counted modulo its length + 1
    kFork,    // one sequence
    kRelease,
  };
  Kind kind;
  int sequence;  // counted modulo the number of sequences
  int tokens;
  int chunk, other_chunk;
};

struct AttentionScenario {
  explicit AttentionScenario(FuzzInput input);

  Shape shape;
  std::string recipe;
  Rows k, v, q;
  int aimed_score = 0;             // of the token that each query is made for; 0: `q` is taken
  std::vector<float> sink_logits;  // [query_heads], or empty
  std::vector<Step> steps;

  // One line, for people.
  std::string Describe() const;
};

}  // namespace shorthand

#endif  // SHORTHAND_FUZZ_ATTENTION_SCENARIO_H_
