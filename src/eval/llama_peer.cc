#include "eval/llama_peer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

namespace shorthand {
namespace {

namespace fs = std::filesystem;

// Bounds the logits that llama.cpp reserves room for.
constexpr uint32_t kStepTokens = 128;

// The cache types of llama.cpp's own programs.
constexpr std::array kTypes = {GGML_TYPE_F32,  GGML_TYPE_F16,    GGML_TYPE_BF16,
                               GGML_TYPE_Q8_0, GGML_TYPE_Q5_1,   GGML_TYPE_Q5_0,
                               GGML_TYPE_Q4_1, GGML_TYPE_IQ4_NL, GGML_TYPE_Q4_0};

void Discard(ggml_log_level level, const char* text, void* user_data) {}

std::optional<ggml_type> TypeNamed(std::string_view name) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [name](ggml_type type) { return name == ggml_type_name(type); });
  if (found == kTypes.end()) return std::nullopt;
  return *found;
}

}  // namespace

Result<LlamaCacheType> ParseLlamaCacheType(std::string_view text) {
  const size_t slash = text.find('/');
  const auto k = TypeNamed(text.substr(0, slash));
  const auto v = slash == std::string_view::npos ? k : TypeNamed(text.substr(slash + 1));
  if (k && v) return LlamaCacheType{*k, *v};
  std::vector<std::string> names;
  for (const ggml_type type : kTypes) names.push_back(ggml_type_name(type));
  return InvalidArgument(
      fmt::format("\"{}\" is no cache type of llama.cpp; accepted are {}, and two of them for keys "
                  "and values, such as q8_0/q4_0",
                  text, fmt::join(names, ", ")));
}

std::string ToString(const LlamaCacheType& type) {
  if (type.k == type.v) return ggml_type_name(type.k);
  return fmt::format("{}/{}", ggml_type_name(type.k), ggml_type_name(type.v));
}

Status WriteF32Copy(const std::string& model_path, const std::string& path, int threads) {
  llama_log_set(Discard, nullptr);  // it would list every tensor
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.nthread = threads;
  params.ftype = LLAMA_FTYPE_ALL_F32;
  params.allow_requantize = true;
  const std::string unfinished = path + ".new";
  std::error_code error;
  if (llama_model_quantize(model_path.c_str(), unfinished.c_str(), &params) == 0) {
    fs::rename(unfinished, path, error);
    if (!error) return OkStatus();
  }
  fs::remove(unfinished, error);
  return ResourceExhausted(
      fmt::format("llama.cpp could not write an f32 copy of {} to {}; is there space for it?",
                  model_path, path));
}

Result<LlamaWeights> LoadLlamaWeights(const std::string& path) {
  LlamaWeights weights(llama_model_load_from_file(path.c_str(), llama_model_default_params()),
                       llama_model_free);
  if (weights == nullptr) return DataLoss(fmt::format("llama.cpp does not load {}", path));
  return weights;
}

int VocabularyOf(const LlamaWeights& weights) {
  return llama_vocab_n_tokens(llama_model_get_vocab(weights.get()));
}

Result<std::unique_ptr<LlamaPeer>> LlamaPeer::Open(LlamaWeights weights,
                                                   const LlamaPeerOptions& options) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(options.context_tokens);
  params.n_batch = static_cast<uint32_t>(options.chunk_tokens);
  params.n_ubatch = std::min(params.n_batch, kStepTokens);
  params.n_threads = params.n_threads_batch = options.threads;
  params.type_k = options.type.k;
  params.type_v = options.type.v;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.swa_full = false;
  llama_context_ptr context(llama_init_from_model(weights.get(), params));
  if (context == nullptr) {
    return Unimplemented(
        fmt::format("llama.cpp makes no context of {} tokens with a {} cache for this model; "
                    "either there is no "
                    "memory for it or the type's blocks do not divide its heads",
                    options.context_tokens, ToString(options.type)));
  }
  return std::unique_ptr<LlamaPeer>(new LlamaPeer(std::move(weights), std::move(context)));
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
