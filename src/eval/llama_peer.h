// LlamaPeer: llama.cpp's own computation of a model over one of its own cache types, fed chunk by
// chunk: what ours is compared with.
// Thread-safety: one thread at a time for a peer; peers of one model in turn.
#ifndef SHORTHAND_EVAL_LLAMA_PEER_H_
#define SHORTHAND_EVAL_LLAMA_PEER_H_

#include <llama-cpp.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "model/vocab.h"
#include "shorthand/status.h"

namespace shorthand {

// How llama.cpp stores keys and values.
struct LlamaCacheType {
  ggml_type k = GGML_TYPE_F16;
  ggml_type v = GGML_TYPE_F16;
};
// "q8_0", or "q8_0/q4_0" for keys and values apart. Errors: kInvalidArgument with the types that
// llama.cpp has.
Result<LlamaCacheType> ParseLlamaCacheType(std::string_view text);
std::string ToString(const LlamaCacheType& type);

// Writes a copy of a model with every weight in f32, as llama.cpp expands it. `path` holds the
// whole copy or nothing. Errors: kResourceExhausted if llama.cpp cannot write it, for which the
// disk's space is the likeliest reason.
Status WriteF32Copy(const std::string& model_path, const std::string& path, int threads);

using LlamaWeights = std::shared_ptr<llama_model>;
// Errors: kDataLoss if llama.cpp does not load the model.
Result<LlamaWeights> LoadLlamaWeights(const std::string& path);
int VocabularyOf(const LlamaWeights& weights);

struct LlamaPeerOptions {
  LlamaCacheType type = {};
  int threads = 0;
  int context_tokens = 0;
  int chunk_tokens = 0;  // the most that Feed is given
};

// Flash attention is on: quantized values need it.
class LlamaPeer {
 public:
  // Errors: kUnimplemented if llama.cpp makes no such context for this model, for want of memory or
  // because the type does not fit its heads.
  static Result<std::unique_ptr<LlamaPeer>> Open(LlamaWeights weights,
                                                 const LlamaPeerOptions& options);

  int vocabulary() const { return VocabularyOf(weights_); }
  void Clear() { llama_memory_clear(llama_get_memory(context_.get()), true); }

  // Appends `tokens` and returns the logits after the last `outputs` of them,
  // [outputs][vocabulary], valid until the next call. Errors: kInternal if llama.cpp fails.
  Result<std::span<const float>> Feed(std::span<const Token> tokens, size_t outputs);

 private:
  LlamaPeer(LlamaWeights weights, llama_context_ptr context)
      : weights_(std::move(weights)), context_(std::move(context)) {}
  LlamaWeights weights_;
  llama_context_ptr context_;
};

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_LLAMA_PEER_H_
