#include "llama_peer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace shorthand {
namespace {

void Discard(ggml_log_level level, const char* text, void* user_data) {}

}  // namespace

Result<std::unique_ptr<F32Copy>> F32Copy::Make(const std::string& model_path, int threads) {
  std::unique_ptr<F32Copy> copy(new F32Copy(std::filesystem::temp_directory_path() /
                                            fmt::format("shorthand-f32-{}.gguf", getpid())));
  llama_log_set(Discard, nullptr);  // it would list every tensor
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = threads;
  params.ftype = LLAMA_FTYPE_ALL_F32;
  params.allow_requantize = true;
  if (llama_model_quantize(model_path.c_str(), copy->path().c_str(), &params) != 0) {
    return ResourceExhausted(
        fmt::format("llama.cpp could not write an f32 copy of {} to {}; is "
                    "there space for it?",
                    model_path, copy->path()));
  }
  return copy;
}

F32Copy::~F32Copy() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

Result<std::unique_ptr<LlamaPeer>> LlamaPeer::Open(const std::string& path,
                                                   const LlamaPeerOptions& options) {
  llama_model_ptr model(llama_model_load_from_file(path.c_str(), llama_model_default_params()));
  if (model == nullptr) return DataLoss(fmt::format("llama.cpp does not load {}", path));
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(options.context_tokens);
  params.n_batch = params.n_ubatch = static_cast<uint32_t>(options.chunk_tokens);
  params.n_threads = params.n_threads_batch = options.threads;
  params.type_k = params.type_v = GGML_TYPE_F16;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  llama_context_ptr context(llama_init_from_model(model.get(), params));
  if (context == nullptr) {
    return ResourceExhausted(
        fmt::format("llama.cpp has no memory for a context of {} tokens", options.context_tokens));
  }
  return std::unique_ptr<LlamaPeer>(new LlamaPeer(std::move(model), std::move(context)));
}

int LlamaPeer::vocabulary() const {
  return llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
}

Result<std::span<const float>> LlamaPeer::Feed(std::span<const Token> tokens, size_t outputs) {
  std::vector<Token> copy(tokens.begin(), tokens.end());
  std::vector<int8_t> is_output(tokens.size(), 0);
  std::fill(is_output.end() - static_cast<std::ptrdiff_t>(outputs), is_output.end(), 1);
  llama_batch batch = llama_batch_get_one(copy.data(), static_cast<int32_t>(copy.size()));
  batch.logits = is_output.data();
  if (const int code = llama_decode(context_.get(), batch); code != 0) {
    return Internal(fmt::format("llama.cpp cannot decode {} tokens (code {})", copy.size(), code));
  }
  if (outputs == 0) return std::span<const float>();
  return std::span<const float>(llama_get_logits(context_.get()),
                                outputs * static_cast<size_t>(vocabulary()));
}

}  // namespace shorthand
