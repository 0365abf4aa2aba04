// The book of scores: what was written is read back bit for bit, and nothing else is accepted.
#include "eval/score_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

namespace shorthand {
namespace {

using ::testing::HasSubstr;

const ScoreFacts kFacts = {{"weights", "f32"}, {"the protocol", "streaming"}};

class ScoreBookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "score_book_test.results";
    std::filesystem::remove(path_);
  }
  std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  Status Refusal(const ScoreFacts& facts = kFacts) const {
    return ScoreBook::Open(path_, facts).status();
  }
  std::string path_;
};

std::vector<PositionScore> SomeScores() {
  return {{.kl = 0.1, .nll_exact = 1.0 / 3, .nll = 2, .same_top = true},
          {.kl = std::numeric_limits<double>::denorm_min(),
           .nll_exact = -0.0,
           .nll = 1e300,
           .same_top = false}};
}

TEST_F(ScoreBookTest, ScoresComeBackBitForBit) {
  auto book = ScoreBook::Open(path_, kFacts);
  ASSERT_TRUE(book.ok()) << book.status().message();
  book->Put("a", "kv=q4_0", SomeScores());
  book->Put("b", "kv=q4_0", {});
  book->PutText("c", {0, 262143, 7});
  ASSERT_TRUE(book->Save().ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));

  const auto again = ScoreBook::Open(path_, kFacts);
  ASSERT_TRUE(again.ok()) << again.status().message();
  const auto* scores = again->Find("a", "kv=q4_0");
  ASSERT_NE(scores, nullptr);
  const auto expected = SomeScores();
  ASSERT_EQ(scores->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*scores)[i].kl, expected[i].kl);
    EXPECT_EQ(std::signbit((*scores)[i].nll_exact), std::signbit(expected[i].nll_exact));
    EXPECT_EQ((*scores)[i].nll_exact, expected[i].nll_exact);
    EXPECT_EQ((*scores)[i].nll, expected[i].nll);
    EXPECT_EQ((*scores)[i].same_top, expected[i].same_top);
  }
  ASSERT_NE(again->Find("b", "kv=q4_0"), nullptr);
  EXPECT_EQ(again->Find("a", "kv=q8_0"), nullptr);
  EXPECT_EQ(again->Find("c", "kv=q4_0"), nullptr);
  ASSERT_NE(again->FindText("c"), nullptr);
  EXPECT_EQ(*again->FindText("c"), (std::vector<Token>{0, 262143, 7}));
  EXPECT_EQ(again->FindText("a"), nullptr);
}

TEST_F(ScoreBookTest, OtherFactsAreRefusedByName) {
  auto book = ScoreBook::Open(path_, kFacts);
  ASSERT_TRUE(book->Save().ok());
  const Status status = Refusal({{"weights", "native"}, {"the protocol", "streaming"}});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("weights f32, this run has native"));
  EXPECT_THAT(Refusal({{"something new", "1"}}).message(), HasSubstr("something new unknown"));
}

TEST_F(ScoreBookTest, EveryTruncationAndEveryChangedByteIsRefused) {
  auto book = ScoreBook::Open(path_, kFacts);
  book->Put("a", "kv=q4_0", SomeScores());
  ASSERT_TRUE(book->Save().ok());
  const std::string bytes = Bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    Write(bytes.substr(0, length));
    ASSERT_EQ(Refusal().code(), StatusCode::kDataLoss) << length;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 1;
    Write(changed);
    ASSERT_EQ(Refusal().code(), StatusCode::kDataLoss) << i;
  }
  Write(bytes + "x");
  EXPECT_EQ(Refusal().code(), StatusCode::kDataLoss);
  Write("recipe,bits\n\"4bit\",4.25\nand more text than a header has\n");
  EXPECT_EQ(Refusal().code(), StatusCode::kDataLoss);
  Write(bytes);
  EXPECT_TRUE(Refusal().ok());
}

TEST_F(ScoreBookTest, WhatCannotBeWrittenLeavesTheOldFile) {
  const auto book = ScoreBook::Open("/no/such/folder/file", kFacts);
  ASSERT_TRUE(book.ok());
  EXPECT_EQ(book->Save().code(), StatusCode::kInternal);
  EXPECT_TRUE(ScoreBook().Save().ok());
}

}  // namespace
}  // namespace shorthand
