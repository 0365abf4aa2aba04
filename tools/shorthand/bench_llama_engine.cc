#include <fmt/format.h>
#include <llama-cpp.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bench_engines.h"
#include "bench_machine.h"
#include "bench_tokens.h"

namespace shorthand {

class LlamaModel {
 public:
  explicit LlamaModel(llama_model* model) : model_(model) {}
  llama_model* get() const { return model_.get(); }
  int vocabulary() const { return llama_vocab_n_tokens(llama_model_get_vocab(model_.get())); }

 private:
  llama_model_ptr model_;
};

namespace {

constexpr int kTileTokens = 512;
constexpr llama_seq_id kMain = 0;
constexpr llama_seq_id kTile = 1;

ggml_type CacheType(const std::string& name) {
  if (name == "q8_0") return GGML_TYPE_Q8_0;
  return name == "q4_0" ? GGML_TYPE_Q4_0 : GGML_TYPE_F16;
}

class LlamaRunner {
 public:
  LlamaRunner(std::shared_ptr<LlamaModel> model, llama_context* context, int threads,
              const EngineRoom& room)
      : model_(std::move(model)), context_(context), threads_(threads), room_(room) {}

  // Whole tiles are restored from the state of the first one and shifted to their positions; what
  // is left is computed.
  Status Reach(int64_t depth) {
    if (depth_ == 0 && depth > 0) {
      const int first = static_cast<int>(std::min<int64_t>(depth, kTileTokens));
      if (Status status = Append(AnyTokens(first, model_->vocabulary())); !status.ok()) {
        return status;
      }
      SaveTile();
    }
    while (depth - depth_ >= kTileTokens && static_cast<int>(depth_) % kTileTokens == 0) {
      if (!RestoreTile()) {
        return Unimplemented("llama.cpp cannot restore a state behind another in this model");
      }
    }
    while (depth_ < depth) {
      const int count = static_cast<int>(std::min<int64_t>(depth - depth_, kTileTokens));
      if (Status status = Append(AnyTokens(count, model_->vocabulary())); !status.ok()) {
        return status;
      }
    }
    return OkStatus();
  }

  Result<double> Decode() {
    const std::vector<llama_token> tokens =
        AnyTokens(room_.decode_tokens + 1, model_->vocabulary());
    if (!Step({tokens[0]})) return Failed();
    const double begin = WorkSeconds(threads_);
    for (int i = 1; i <= room_.decode_tokens; ++i) {
      if (!Step({tokens[i]})) return Failed();
    }
    const double seconds = WorkSeconds(threads_) - begin;
    return TakeBack(seconds / room_.decode_tokens);
  }

  Result<double> Prefill() {
    const std::vector<llama_token> tokens = AnyTokens(room_.prompt_tokens, model_->vocabulary());
    const double begin = WorkSeconds(threads_);
    if (!Step(tokens)) return Failed();
    return TakeBack(WorkSeconds(threads_) - begin);
  }

 private:
  static Status Failed() { return Internal("llama.cpp could not decode"); }

  bool Step(std::vector<llama_token> tokens) {
    const auto count = static_cast<int32_t>(tokens.size());
    if (llama_decode(context_.get(), llama_batch_get_one(tokens.data(), count)) != 0) return false;
    llama_synchronize(context_.get());
    return true;
  }

  Status Append(std::vector<llama_token> tokens) {
    const auto count = static_cast<int64_t>(tokens.size());
    if (!Step(std::move(tokens))) return Failed();
    depth_ += count;
    return OkStatus();
  }

  void SaveTile() {
    tile_.resize(llama_state_seq_get_size(context_.get(), kMain));
    llama_state_seq_get_data(context_.get(), tile_.data(), tile_.size(), kMain);
  }

  bool RestoreTile() {
    llama_memory_t memory = llama_get_memory(context_.get());
    if (llama_state_seq_set_data(context_.get(), tile_.data(), tile_.size(), kTile) == 0) {
      return false;
    }
    llama_memory_seq_add(memory, kTile, -1, -1, static_cast<llama_pos>(depth_));
    llama_memory_seq_cp(memory, kTile, kMain, -1, -1);
    llama_memory_seq_rm(memory, kTile, -1, -1);
    depth_ += kTileTokens;
    return llama_memory_seq_pos_max(memory, kMain) + 1 == static_cast<llama_pos>(depth_);
  }

  Result<double> TakeBack(double seconds) {
    const auto depth = static_cast<llama_pos>(depth_);
    if (!llama_memory_seq_rm(llama_get_memory(context_.get()), kMain, depth, -1)) {
      return Unimplemented("llama.cpp cannot take tokens back in this model");
    }
    return seconds;
  }

  std::shared_ptr<LlamaModel> model_;
  llama_context_ptr context_;
  int threads_;
  EngineRoom room_;
  int64_t depth_ = 0;
  std::vector<uint8_t> tile_;
};

}  // namespace

Result<std::shared_ptr<LlamaModel>> LoadLlamaModel(const std::string& path) {
  llama_model* model = llama_model_load_from_file(path.c_str(), llama_model_default_params());
  if (model == nullptr) return DataLoss(fmt::format("llama.cpp cannot load {}", path));
  return std::make_shared<LlamaModel>(model);
}

Result<Engine> LlamaEngine(std::shared_ptr<LlamaModel> model, const std::string& cache_type,
                           int threads, const EngineRoom& room) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(room.total() + kTileTokens);
  params.n_batch = params.n_ubatch = std::max(kTileTokens, room.prompt_tokens);
  params.n_seq_max = 2;
  params.n_threads = params.n_threads_batch = threads;
  params.type_k = params.type_v = CacheType(cache_type);
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.kv_unified = true;
  params.swa_full = false;
  llama_context* context = llama_init_from_model(model->get(), params);
  if (context == nullptr) {
    return Unimplemented(
        fmt::format("llama.cpp makes no context with a {} cache for this model", cache_type));
  }
  const auto engine = std::make_shared<LlamaRunner>(std::move(model), context, threads, room);
  return Engine{.name = "llama.cpp",
                .recipe = cache_type,
                .filling = "the state of 512 tokens, restored and shifted; what is left computed",
                .reach = [engine](int64_t depth) { return engine->Reach(depth); },
                .decode = [engine] { return engine->Decode(); },
                .prefill = [engine] { return engine->Prefill(); }};
}

}  // namespace shorthand
