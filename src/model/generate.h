// Session and Generate: text from a model over a cache of one sequence.
//
// A session holds the model, one cache and one sequence in it; prompts are fed in chunks, each
// committed on its own, and never past the context limit.
// Thread-safety: one thread at a time.
#ifndef SHORTHAND_MODEL_GENERATE_H_
#define SHORTHAND_MODEL_GENERATE_H_

#include <llama-cpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "model/model.h"
#include "shorthand/cache.h"
#include "shorthand/recipe.h"
#include "shorthand/status.h"

namespace shorthand {

inline constexpr int kPromptChunkTokens = 512;

struct SessionOptions {
  int64_t context_tokens = 0;  // 0: what the model was made for
  int chunk_tokens = kPromptChunkTokens;
  CacheOptions cache = {};
};

class Session {
 public:
  // Errors: kOutOfRange for a context beyond the model's; kInvalidArgument for other options; those
  // of Cache::Open.
  static Result<std::unique_ptr<Session>> Open(Model& model, const Recipe& recipe,
                                               const SessionOptions& options = {});

  // Appends `tokens` and returns the logits after the last one, [vocabulary], valid until the next
  // call. Errors: kInvalidArgument if there are none; kOutOfRange beyond the context, nothing being
  // appended; those of Cache::Begin and Model::Forward, whole chunks before the failure being kept.
  Result<std::span<const float>> Feed(std::span<const Token> tokens);

  // Forgets all tokens; what the cache allocated stays with it.
  Status Clear();

  const Model& model() const { return model_; }
  const Cache& cache() const { return *cache_; }
  int64_t context_tokens() const { return context_tokens_; }
  int64_t tokens() const { return tokens_; }

 private:
  Session(Model& model, std::unique_ptr<Cache> cache, int64_t context_tokens, int chunk_tokens);
  Result<std::span<const float>> FeedChunk(std::span<const Token> tokens,
                                           std::span<const int32_t> output_rows);

  Model& model_;
  std::unique_ptr<Cache> cache_;
  SequenceId sequence_;
  int64_t context_tokens_;
  int chunk_tokens_;
  int64_t tokens_ = 0;
};

// llama.cpp's samplers in its own order: top-k, top-p, min-p, temperature, draw.
struct SamplingOptions {
  float temperature = 0.8f;            // 0: always the likeliest token
  int top_k = 40;                      // 0: all
  float top_p = 0.95f;                 // 1: all
  float min_p = 0.05f;                 // 0: all
  uint32_t seed = LLAMA_DEFAULT_SEED;  // the default draws a seed
};

class Sampler {
 public:
  // Errors: kInvalidArgument with the option and what it accepts.
  static Result<std::unique_ptr<Sampler>> Create(const SamplingOptions& options);
  // Errors: kDataLoss if a logit is not a number.
  Result<Token> Sample(std::span<const float> logits);

 private:
  explicit Sampler(llama_sampler_ptr chain) : chain_(std::move(chain)) {}
  llama_sampler_ptr chain_;  // null: the likeliest token
  std::vector<llama_token_data> candidates_;
};

enum class StopReason { kEndOfText, kMaxTokens, kContextFull, kCaller };

struct GenerateOptions {
  int64_t max_tokens = 0;  // 0: up to the context's end
  // Called with whole UTF-8 characters as they come; false stops. May be empty.
  std::function<bool(std::string_view)> on_text = {};
};

struct Generation {
  std::string text;
  int64_t prompt_tokens = 0;
  int64_t tokens = 0;            // generated, the end token included
  size_t cached_text_bytes = 0;  // of `text`, what the cache holds: the last token is not fed
  double prompt_seconds = 0;
  double decode_seconds = 0;  // of all tokens but the first, which the prompt's last step yields
  StopReason stop = StopReason::kMaxTokens;
  double prompt_tokens_per_second() const;
  double decode_tokens_per_second() const;
};

// Feeds `prompt` and generates. Errors: those of Session::Feed and Sampler::Sample.
Result<Generation> Generate(Session& session, Sampler& sampler, std::span<const Token> prompt,
                            const GenerateOptions& options = {});

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_GENERATE_H_
