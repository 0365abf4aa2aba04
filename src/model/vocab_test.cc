#include "model/vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/model.h"
#include "model/test_models.h"

namespace shorthand {
namespace {

using testing::DataPath;
using ::testing::HasSubstr;

std::unique_ptr<Vocab> LoadVocab(const std::string& path) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  Result<std::unique_ptr<GgufFile>> file = GgufFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  Result<std::unique_ptr<Vocab>> vocab = Vocab::Load(**file);
  EXPECT_TRUE(vocab.ok()) << vocab.status().message();
  return std::move(*vocab);
}

std::vector<std::string> Split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t at; (at = text.find(separator, begin)) != text.npos; begin = at + separator.size()) {
    parts.push_back(text.substr(begin, at - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string ReadText(const std::string& path) {
  const std::vector<uint8_t> bytes = testing::ReadBytes(path);
  return {bytes.begin(), bytes.end()};
}

TEST(VocabTest, TokenizesAsPublished) {
  const std::string path = DataPath("vocab/ggml-vocab-gpt-2.gguf");
  if (path.empty()) GTEST_SKIP() << "the data folder is absent";
  const std::unique_ptr<Vocab> vocab = LoadVocab(path);
  EXPECT_EQ(vocab->size(), 50257);
  const std::vector<std::string> texts = Split(ReadText(path + ".inp"), "\n__ggml_vocab_test__\n");
  const std::vector<std::string> expected = Split(ReadText(path + ".out"), "\n");
  ASSERT_GE(expected.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto tokens = vocab->Tokenize(texts[i], Place::kContinue, Markup::kIgnore);
    ASSERT_TRUE(tokens.ok()) << texts[i];
    std::string ids;
    for (const Token token : *tokens) ids += " " + std::to_string(token);
    EXPECT_EQ(ids, expected[i]) << texts[i];
    EXPECT_EQ(vocab->Text(*tokens), texts[i]);
  }
}

TEST(VocabTest, PlacesMarkupAndBadText) {
  if (testing::StoriesPath().empty()) GTEST_SKIP() << "the data folder is absent";
  const std::unique_ptr<Vocab> vocab = LoadVocab(testing::StoriesPath());
  EXPECT_EQ(vocab->size(), 512);
  const auto begin = vocab->Tokenize("Once", Place::kBegin, Markup::kIgnore);
  const auto middle = vocab->Tokenize("Once", Place::kContinue, Markup::kIgnore);
  ASSERT_EQ(begin->size(), middle->size() + 1);
  EXPECT_EQ(begin->front(), 1);  // tokenizer.ggml.bos_token_id
  EXPECT_EQ(vocab->Tokenize("</s>", Place::kContinue, Markup::kParse)->back(), 2);
  EXPECT_GT(vocab->Tokenize("</s>", Place::kContinue, Markup::kIgnore)->size(), 1u);
  EXPECT_TRUE(vocab->IsEnd(2));
  EXPECT_FALSE(vocab->IsEnd(5));
  const auto bad = vocab->Tokenize("ab\xff", Place::kBegin, Markup::kIgnore);
  EXPECT_EQ(bad.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(bad.status().message(), HasSubstr("byte 2"));
  const ChatMessage message = {"user", "Hello"};
  EXPECT_EQ(vocab->FormatChat({&message, 1}, ChatEnd::kAssistantTurn).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST(VocabTest, FormatsChats) {
  const std::string path = testing::FetchedModelPath("smollm2");
  if (path.empty()) GTEST_SKIP() << "smollm2 is not here; scripts/fetch-models smollm2 brings it";
  const std::unique_ptr<Vocab> vocab = LoadVocab(path);
  const ChatMessage message = {"user", "Hello"};
  // ChatML, as the model's card says.
  EXPECT_EQ(*vocab->FormatChat({&message, 1}, ChatEnd::kAssistantTurn),
            "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(*vocab->FormatChat({&message, 1}, ChatEnd::kClosed),
            "<|im_start|>user\nHello<|im_end|>\n");
}

}  // namespace
}  // namespace shorthand
