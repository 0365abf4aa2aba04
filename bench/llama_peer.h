// LlamaPeer: llama.cpp's own computation of a model over its f16 cache, fed chunk by chunk, and the
// f32 copy of a model on which it is compared with ours.
// Thread-safety: one thread at a time.
#ifndef SHORTHAND_BENCH_LLAMA_PEER_H_
#define SHORTHAND_BENCH_LLAMA_PEER_H_

#include <llama-cpp.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/vocab.h"
#include "shorthand/status.h"

namespace shorthand {

// A GGUF file with every weight in f32, as llama.cpp expands it; in the temporary folder for as
// long as the object lives.
class F32Copy {
 public:
  // Errors: kResourceExhausted if llama.cpp cannot write it, for which the disk's space is the
  // likeliest reason.
  static Result<std::unique_ptr<F32Copy>> Make(const std::string& model_path, int threads);
  ~F32Copy();
  F32Copy(const F32Copy&) = delete;
  F32Copy& operator=(const F32Copy&) = delete;

  std::string path() const { return path_.string(); }

 private:
  explicit F32Copy(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

struct LlamaPeerOptions {
  int threads = 0;
  int context_tokens = 0;
  int chunk_tokens = 0;  // the most that Feed is given
};

// f16 keys and values, flash attention.
class LlamaPeer {
 public:
  // Errors: kDataLoss if llama.cpp does not load the model; kResourceExhausted.
  static Result<std::unique_ptr<LlamaPeer>> Open(const std::string& path,
                                                 const LlamaPeerOptions& options);

  int vocabulary() const;
  void Clear() { llama_memory_clear(llama_get_memory(context_.get()), true); }

  // Appends `tokens` and returns the logits after the last `outputs` of them,
  // [outputs][vocabulary], valid until the next call. Errors: kInternal if llama.cpp fails.
  Result<std::span<const float>> Feed(std::span<const Token> tokens, size_t outputs);

 private:
  LlamaPeer(llama_model_ptr model, llama_context_ptr context)
      : model_(std::move(model)), context_(std::move(context)) {}
  llama_model_ptr model_;
  llama_context_ptr context_;
};

}  // namespace shorthand

#endif  // SHORTHAND_BENCH_LLAMA_PEER_H_
