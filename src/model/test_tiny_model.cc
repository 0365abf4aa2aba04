#include <fmt/format.h>
#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <random>

#include "model/test_models.h"

namespace shorthand::testing {
namespace {

constexpr int kWidth = 64;
constexpr int kHidden = 96;
constexpr int kHeads = 4;
constexpr int kKvHeads = 2;
constexpr int kVocabulary = 512;

class Writer {
 public:
  explicit Writer(const TinyModel& model)
      : model_(model),
        tensors_(ggml_init({.mem_size = 64 << 20, .mem_buffer = nullptr, .no_alloc = false})),
        file_(gguf_init_empty()) {}

  std::string Write(const std::string& name) {
    Metadata();
    Tensor("token_embd.weight", {kWidth, kVocabulary}, 1);
    Norm("output_norm.weight", kWidth);
    for (int layer = 0; layer < model_.layers; ++layer) Layer(fmt::format("blk.{}.", layer));
    if (model_.rope_factors) RopeFactors();
    model_.edit(file_.get());
    const std::string path = ::testing::TempDir() + name;
    gguf_write_to_file(file_.get(), path.c_str(), false);
    return path;
  }

 private:
  bool is(const char* architecture) const { return model_.architecture == architecture; }

  void Integer(const std::string& key, int value) {
    gguf_set_val_u32(file_.get(), (model_.architecture + "." + key).c_str(),
                     static_cast<uint32_t>(value));
  }

  void Metadata() {
    const gguf_context_ptr stories(
        gguf_init_from_file(StoriesPath().c_str(), {.no_alloc = true, .ctx = nullptr}));
    gguf_set_kv(file_.get(), stories.get());
    gguf_set_val_str(file_.get(), "general.architecture", model_.architecture.c_str());
    Integer("context_length", 512);
    Integer("block_count", model_.layers);
    Integer("embedding_length", kWidth);
    Integer("feed_forward_length", kHidden);
    Integer("attention.head_count", kHeads);
    Integer("attention.head_count_kv", kKvHeads);
    Integer("attention.key_length", model_.head_dim);
    Integer("attention.value_length", model_.head_dim);
    Integer("rope.dimension_count", model_.head_dim);
    if (model_.window > 0) Integer("attention.sliding_window", model_.window);
    gguf_set_val_f32(file_.get(),
                     (model_.architecture + ".attention.layer_norm_rms_epsilon").c_str(), 1e-6f);
    gguf_set_val_f32(file_.get(), (model_.architecture + ".rope.freq_base").c_str(), 1e6f);
  }

  void Layer(const std::string& blk) {
    const int q = kHeads * model_.head_dim;
    const int kv = kKvHeads * model_.head_dim;
    Norm(blk + "attn_norm.weight", kWidth);
    Norm(blk + "ffn_norm.weight", kWidth);
    Tensor(blk + "attn_q.weight", {kWidth, q}, 0.3);
    Tensor(blk + "attn_k.weight", {kWidth, kv}, 0.3);
    Tensor(blk + "attn_v.weight", {kWidth, kv}, 0.2);
    Tensor(blk + "attn_output.weight", {q, kWidth}, 0.2);
    Tensor(blk + "ffn_gate.weight", {kWidth, kHidden}, 0.2);
    Tensor(blk + "ffn_up.weight", {kWidth, kHidden}, 0.2);
    Tensor(blk + "ffn_down.weight", {kHidden, kWidth}, 0.2);
    if (is("qwen2")) {
      Tensor(blk + "attn_q.bias", {q}, 2);
      Tensor(blk + "attn_k.bias", {kv}, 2);
      Tensor(blk + "attn_v.bias", {kv}, 1);
    }
    if (is("qwen3") || is("gemma3")) {
      Norm(blk + "attn_q_norm.weight", model_.head_dim);
      Norm(blk + "attn_k_norm.weight", model_.head_dim);
    }
    if (is("gemma3")) {
      Norm(blk + "post_attention_norm.weight", kWidth);
      Norm(blk + "post_ffw_norm.weight", kWidth);
    }
  }

  float* Add(const std::string& name, std::vector<int64_t> dims) {
    ggml_tensor* tensor =
        ggml_new_tensor(tensors_.get(), GGML_TYPE_F32, static_cast<int>(dims.size()), dims.data());
    ggml_set_name(tensor, name.c_str());
    gguf_add_tensor(file_.get(), tensor);
    return ggml_get_data_f32(tensor);
  }

  void Tensor(const std::string& name, const std::vector<int64_t>& dims, double deviation) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    std::normal_distribution<float> normal(0, static_cast<float>(deviation));
    float* values = Add(name, dims);
    for (int64_t i = 0; i < count; ++i) values[i] = normal(random_);
  }

  void Norm(const std::string& name, int64_t count) {
    std::uniform_real_distribution<float> uniform(0.5f, 1.5f);
    float* values = Add(name, {count});
    for (int64_t i = 0; i < count; ++i) values[i] = uniform(random_);
  }

  // As for Llama 3.1: low frequencies are slowed down.
  void RopeFactors() {
    const int64_t count = model_.head_dim / 2;
    float* values = Add("rope_freqs.weight", {count});
    for (int64_t i = 0; i < count; ++i) values[i] = i < count / 2 ? 1.0f : 8.0f;
  }

  const TinyModel& model_;
  ggml_context_ptr tensors_;
  gguf_context_ptr file_;
  std::mt19937 random_{7};
};

}  // namespace

std::string WriteTinyModel(const std::string& name, const TinyModel& model) {
  return Writer(model).Write(name);
}

}  // namespace shorthand::testing
