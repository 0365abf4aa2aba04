#include "model/test_logits.h"

#include <gtest/gtest.h>
#include <llama-cpp.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shorthand::testing {
namespace {

// llama.cpp asks about each tensor first, then shows it.
bool Visit(ggml_tensor* tensor, bool ask, void* visitor) {
  if (!ask) (*static_cast<TensorVisitor*>(visitor))(*tensor);
  return true;
}

}  // namespace

std::vector<float> LlamaLogits(const std::string& path, std::vector<Token> tokens,
                               TensorVisitor visit) {
  const llama_model_ptr model(
      llama_model_load_from_file(path.c_str(), llama_model_default_params()));
  if (model == nullptr) {
    ADD_FAILURE() << "llama.cpp does not load " << path;
    return {};
  }
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(tokens.size());
  params.n_batch = params.n_ubatch = params.n_ctx;
  params.n_threads = params.n_threads_batch = 1;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  if (visit) {
    params.cb_eval = Visit;
    params.cb_eval_user_data = &visit;
  }
  const llama_context_ptr context(llama_init_from_model(model.get(), params));
  const int32_t count = static_cast<int32_t>(tokens.size());
  llama_batch batch = llama_batch_init(count, 0, 1);
  batch.n_tokens = count;
  for (int32_t i = 0; i < count; ++i) {
    batch.token[i] = tokens[i];
    batch.pos[i] = i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  EXPECT_EQ(llama_decode(context.get(), batch), 0);
  llama_batch_free(batch);
  const size_t vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
  const float* logits = llama_get_logits(context.get());
  return {logits, logits + tokens.size() * vocabulary};
}

std::vector<float> OurLogits(Model& model, std::span<const Token> tokens, size_t chunk,
                             const std::string& recipe_text) {
  const Result<Recipe> recipe = Recipe::Parse(recipe_text);
  EXPECT_TRUE(recipe.ok()) << recipe.status().message();
  Result<std::unique_ptr<Cache>> cache = Cache::Open(model.shape(), *recipe);
  EXPECT_TRUE(cache.ok()) << cache.status().message();
  const SequenceId sequence = (*cache)->Create();
  std::vector<float> all;
  while (!tokens.empty()) {
    const size_t count = std::min(chunk, tokens.size());
    const BatchItem item = {.sequence = sequence, .tokens = static_cast<int>(count)};
    Result<std::unique_ptr<Batch>> batch = (*cache)->Begin({&item, 1});
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    std::vector<int32_t> rows(count);
    std::iota(rows.begin(), rows.end(), 0);
    const Result<std::span<const float>> logits = model.Forward(**batch, tokens.first(count), rows);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    all.insert(all.end(), logits->begin(), logits->end());
    EXPECT_TRUE((*batch)->Commit().ok());
    tokens = tokens.subspan(count);
  }
  return all;
}

Agreement Compare(std::span<const float> a, std::span<const float> b, size_t vocabulary) {
  Agreement result;
  EXPECT_EQ(a.size(), b.size());
  const size_t rows = a.size() / vocabulary;
  size_t same = 0;
  for (size_t row = 0; row < rows; ++row) {
    const auto x = a.subspan(row * vocabulary, vocabulary);
    const auto y = b.subspan(row * vocabulary, vocabulary);
    const auto top = [](std::span<const float> s) {
      return std::max_element(s.begin(), s.end()) - s.begin();
    };
    same += top(x) == top(y) ? 1 : 0;
    for (size_t i = 0; i < vocabulary; ++i) {
      result.largest_difference = std::max(result.largest_difference, std::abs(x[i] - y[i]));
    }
  }
  result.same_top = static_cast<double>(same) / static_cast<double>(rows);
  return result;
}

}  // namespace shorthand::testing
