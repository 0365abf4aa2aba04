// Engines of `shorthand bench model`: ours with a recipe, llama.cpp with a cache type, both brought
// to a depth of context without computing it.
// Thread-safety: one thread drives an engine.
#ifndef SHORTHAND_TOOLS_BENCH_ENGINES_H_
#define SHORTHAND_TOOLS_BENCH_ENGINES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "model/model.h"
#include "shorthand/recipe.h"
#include "shorthand/status.h"

namespace shorthand {

// Tokens that an engine keeps free beyond the depth, for what is measured there.
struct EngineRoom {
  int64_t max_depth = 0;
  int prompt_tokens = 0;
  int decode_tokens = 0;  // without the one that warms up

  int64_t total() const { return max_depth + prompt_tokens + decode_tokens + 1; }
};

struct Engine {
  std::string name;     // "shorthand", "llama.cpp"
  std::string recipe;   // of ours; of llama.cpp its cache type
  std::string filling;  // how a depth is reached, in words
  // Grows the context to `depth` tokens; depths only grow.
  std::function<Status(int64_t depth)> reach;
  // Seconds of one token / of the prompt at that depth, which is kept as it was.
  std::function<Result<double>()> decode;
  std::function<Result<double>()> prefill;
};

// `model` outlives the engine. Errors: those of Cache::Open.
// `calibration`: for recipes that need one, else null.
Result<Engine> OurEngine(Model& model, const std::string& recipe_text, const Recipe& recipe,
                         const Calibration* calibration, const EngineRoom& room);

class LlamaModel;
// Errors: kDataLoss if llama.cpp cannot load it.
Result<std::shared_ptr<LlamaModel>> LoadLlamaModel(const std::string& path);
// `cache_type` is "f16", "q8_0" or "q4_0". Errors: kUnimplemented if llama.cpp has no such context
// for this model.
Result<Engine> LlamaEngine(std::shared_ptr<LlamaModel> model, const std::string& cache_type,
                           int threads, const EngineRoom& room);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_BENCH_ENGINES_H_
