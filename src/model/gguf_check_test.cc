#include "model/gguf_check.h"

#include <ggml.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "model/test_models.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

// Writes GGUF by hand, so that it can write what the library would not.
class Bytes {
 public:
  template <typename T>
  Bytes& Add(T value) {
    const auto* raw = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
    return *this;
  }
  Bytes& Text(const std::string& text) {
    Add<uint64_t>(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  Bytes& Header(int64_t tensors, int64_t entries, uint32_t version = 3) {
    for (const char c : {'G', 'G', 'U', 'F'}) bytes_.push_back(static_cast<uint8_t>(c));
    return Add(version).Add(tensors).Add(entries);
  }
  Bytes& Tensor(const std::string& name, std::vector<int64_t> dims, int32_t type, uint64_t offset) {
    Text(name).Add<uint32_t>(static_cast<uint32_t>(dims.size()));
    for (const int64_t dim : dims) Add(dim);
    return Add(type).Add(offset);
  }
  Bytes& Pad(size_t data_bytes) {
    bytes_.resize((bytes_.size() + 31) / 32 * 32 + data_bytes);
    return *this;
  }
  Status Check() const { return CheckGguf(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

void ExpectDamage(const Status& status, const std::string& what) {
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(what));
}

TEST(GgufCheck, AcceptsSoundFiles) {
  EXPECT_TRUE(Bytes().Header(0, 0).Check().ok());
  EXPECT_TRUE(Bytes().Header(0, 0, 2).Check().ok());
  EXPECT_TRUE(
      Bytes().Header(1, 0).Tensor("a", {32, 2}, GGML_TYPE_Q8_0, 0).Pad(2 * 34).Check().ok());
  EXPECT_TRUE(Bytes()
                  .Header(2, 1)
                  .Text("k")
                  .Add<uint32_t>(GGUF_TYPE_ARRAY)
                  .Add<uint32_t>(GGUF_TYPE_STRING)
                  .Add<uint64_t>(2)
                  .Text("x")
                  .Text("")
                  .Tensor("a", {3}, GGML_TYPE_F32, 0)
                  .Tensor("b", {1}, GGML_TYPE_F32, 32)
                  .Pad(36)
                  .Check()
                  .ok());
}

TEST(GgufCheck, RefusesOtherFilesAndVersions) {
  ExpectDamage(CheckGguf({}), "not a GGUF");
  ExpectDamage(Bytes().Add<uint32_t>(0x12345678).Check(), "not a GGUF");
  for (const uint32_t version : {0u, 1u, 4u, 0x03000000u}) {
    EXPECT_EQ(Bytes().Header(0, 0, version).Check().code(), StatusCode::kUnimplemented) << version;
  }
}

TEST(GgufCheck, RefusesAbsurdCounts) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const int64_t count : {int64_t{-1}, kMaxGgufEntries + 1, kHuge}) {
    ExpectDamage(Bytes().Header(count, 0).Check(), "impossible number of tensors");
    ExpectDamage(Bytes().Header(0, count).Check(), "impossible number of metadata");
  }
  ExpectDamage(Bytes().Header(5, 0).Check(), "fewer bytes");
  // Lengths near 2^64 must not wrap around.
  for (const uint64_t length : {uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()}) {
    ExpectDamage(Bytes().Header(0, 1).Add(length).Add<uint64_t>(0).Check(), "metadata key");
    ExpectDamage(Bytes()
                     .Header(0, 1)
                     .Text("k")
                     .Add<uint32_t>(GGUF_TYPE_ARRAY)
                     .Add<uint32_t>(GGUF_TYPE_UINT64)
                     .Add(length)
                     .Check(),
                 "the value of 'k'");
  }
}

TEST(GgufCheck, RefusesUnsoundMetadata) {
  Bytes twice;
  twice.Header(0, 2);
  for (int i = 0; i < 2; ++i) twice.Text("k").Add<uint32_t>(GGUF_TYPE_UINT8).Add<uint8_t>(1);
  ExpectDamage(twice.Check(), "'k' twice");
  ExpectDamage(Bytes().Header(0, 1).Text("").Add<uint32_t>(0).Add<uint64_t>(0).Check(),
               "metadata key");
  ExpectDamage(Bytes().Header(0, 1).Text("k").Add<uint32_t>(13).Add<uint64_t>(0).Check(),
               "unknown type 13");
  const auto alignment = [](uint32_t type, uint32_t value) {
    return Bytes().Header(0, 1).Text("general.alignment").Add(type).Add(value).Check();
  };
  EXPECT_TRUE(alignment(GGUF_TYPE_UINT32, 64).ok());
  for (const uint32_t value : {0u, 1u, 16u, 48u, 1u << 31}) {
    ExpectDamage(alignment(GGUF_TYPE_UINT32, value), "alignment");
  }
  ExpectDamage(alignment(GGUF_TYPE_FLOAT32, 64), "alignment");
}

TEST(GgufCheck, RefusesUnsoundTensors) {
  const auto one = [](std::vector<int64_t> dims, int32_t type, uint64_t offset) {
    return Bytes().Header(1, 0).Tensor("a", std::move(dims), type, offset).Pad(4096).Check();
  };
  EXPECT_TRUE(one({32}, GGML_TYPE_F32, 0).ok());
  ExpectDamage(one({}, GGML_TYPE_F32, 0), "number of dimensions");
  ExpectDamage(one({1, 1, 1, 1, 1}, GGML_TYPE_F32, 0), "number of dimensions");
  ExpectDamage(one({0}, GGML_TYPE_F32, 0), "dimension 0");
  ExpectDamage(one({32, -1}, GGML_TYPE_F32, 0), "dimension 1");
  ExpectDamage(one({1 << 20, 1 << 20}, GGML_TYPE_F32, 0), "more bytes");
  const int64_t root = int64_t{1} << 32;
  ExpectDamage(one({1, root, root}, GGML_TYPE_F32, 0), "impossible dimensions");
  ExpectDamage(one({root, root, 2}, GGML_TYPE_F32, 0), "more bytes");
  ExpectDamage(one({33}, GGML_TYPE_Q8_0, 0), "whole blocks of 32");
  for (const int32_t type : {-1, 4, 5, 31, static_cast<int32_t>(GGML_TYPE_COUNT)}) {
    ExpectDamage(one({32}, type, 0), "the type");
  }
  ExpectDamage(one({32}, GGML_TYPE_F32, 32), "the offset");
  ExpectDamage(one({1025}, GGML_TYPE_F32, 0), "truncated");
  ExpectDamage(Bytes()
                   .Header(2, 0)
                   .Tensor("a", {1}, GGML_TYPE_F32, 0)
                   .Tensor("a", {1}, GGML_TYPE_F32, 32)
                   .Pad(64)
                   .Check(),
               "'a' twice");
  ExpectDamage(Bytes()
                   .Header(1, 0)
                   .Tensor(std::string(GGML_MAX_NAME, 'n'), {1}, GGML_TYPE_F32, 0)
                   .Pad(4)
                   .Check(),
               "tensor name");
}

class GgufCheckStories : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = testing::StoriesPath();
    if (path.empty()) GTEST_SKIP() << "stories260Ktok512.gguf is not in the data folder";
    bytes_ = testing::ReadBytes(path);
    ASSERT_TRUE(CheckGguf(bytes_).ok());
  }
  // Its header is followed by 4 * 64 * 512 bytes of embedding and the other tensors.
  static constexpr size_t kHeaderBytes = 14152;
  std::vector<uint8_t> bytes_;
};

TEST_F(GgufCheckStories, EveryTruncationIsRefused) {
  // A copy of exactly that length lets a sanitizer see a read past the end.
  for (size_t length = 0; length <= kHeaderBytes; ++length) {
    const std::vector<uint8_t> cut(bytes_.begin(), bytes_.begin() + length);
    EXPECT_FALSE(CheckGguf(cut).ok()) << length;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const size_t length = kHeaderBytes + random() % (bytes_.size() - kHeaderBytes);
    EXPECT_FALSE(CheckGguf(std::span(bytes_).first(length)).ok()) << length;
  }
}

TEST_F(GgufCheckStories, FlippedBitsNeverReadOutside) {
  std::mt19937_64 random(2);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<uint8_t> flipped(bytes_.begin(), bytes_.end());
    for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips) {
      flipped[random() % kHeaderBytes] ^= static_cast<uint8_t>(1u << (random() % 8));
    }
    refused += CheckGguf(flipped).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace shorthand
