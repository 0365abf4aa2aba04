#include "shorthand/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "cache/cache_impl.h"
#include "cache/exact_rows.h"
#include "cache/testing.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

// Feeds without attention: pages and sizes are what these tests look at.
void Append(const TestModel& model, Cache& cache, SequenceId id, const std::vector<int>& tokens,
            int chunk = 1) {
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const size_t end = std::min(tokens.size(), at + chunk);
    const std::vector<TestModel::Item> items = {
        {id, std::vector<int>(tokens.begin() + at, tokens.begin() + end)}};
    auto batch = model.BeginBatch(cache, items);
    ASSERT_NE(batch, nullptr);
    for (size_t l = 0; l < model.shape().layers.size(); ++l) model.WriteLayer(*batch, items, l, 1);
    ASSERT_TRUE(batch->Commit().ok());
  }
}

// A digest of a sequence's tables and of the bytes of all its pages, exact ones up to the rows
// written.
struct Digest {
  uint64_t hash = 0;
  void Add(const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3u;
    }
  }
};
uint64_t PageDigest(const Cache& cache, SequenceId id) {
  Digest digest;
  const Sequence& sequence = **cache.impl()->Find(id);
  for (size_t g = 0; g < sequence.groups.size(); ++g) {
    const GroupStore& store = cache.impl()->stores()[g];
    for (size_t e = 0; e < sequence.entries.size(); ++e) {
      const GroupEntry& entry = sequence.groups[g].entries[e];
      digest.Add(entry.block == kNoBlock ? "n" : entry.holds_exact ? "e" : "s", 1);
      if (entry.block == kNoBlock) continue;
      const Block& block = store.block(entry.block);
      for (size_t l = 0; l < store.group().layers.size(); ++l) {
        const LayerFormat& format = store.group().layers[l];
        for (int head = 0; head < format.kv_heads; ++head) {
          if (block.sealed != kNoSlot) {
            digest.Add(store.sealed().Page(l, head, block.sealed), format.sealed.bytes);
          }
          if (!entry.holds_exact) continue;
          std::vector<float> k(kPageTokens * format.k.dim), v(kPageTokens * format.v.dim);
          const ExactRows rows(format);
          const int count = sequence.entries[e].count;
          const uint8_t* page = store.exact().Page(l, head, block.exact);
          rows.ReadKeys(page, count, k.data());
          rows.ReadValues(page + rows.ValueOffset(kPageTokens), count, v.data());
          digest.Add(k.data(), 4 * k.size());
          digest.Add(v.data(), 4 * v.size());
        }
      }
    }
  }
  return digest.hash;
}

const char* const kRecipes[] = {
    "f16",
    "kv=u4/tok",
    "k=u4/ch,v=had:lm4/tok,sink=4,recent=128",
    "k=u2/ch32,v=u2/tok32,recent=128",
    "kv=u8/tok,sink=128",
    "k=f16,v=i8/tok,sink=17",
    "k=mu:had:i8/tok,v=bf16",
};

TEST(Cache, ChunkingDoesNotChangePages) {
  const TestModel model(TestShape(2, 2, 1, 64));
  const std::vector<int> text = Text(700);
  for (const char* recipe : kRecipes) {
    uint64_t first = 0;
    for (int chunk : {1, 7, 128, 512}) {
      auto cache = OpenCache(model.shape(), recipe);
      const SequenceId id = cache->Create();
      Append(model, *cache, id, text, chunk);
      const uint64_t digest = PageDigest(*cache, id);
      if (first == 0) first = digest;
      EXPECT_EQ(digest, first) << recipe << " in chunks of " << chunk;
    }
  }
}

TEST(Cache, AllocatedBytesAreThePlanned) {
  for (int window : {0, 96, 200, 512}) {
    const TestModel model(TestShape(2, 3, 1, 64, window));
    for (const char* recipe : kRecipes) {
      const Recipe parsed = *Recipe::Parse(recipe);
      auto groups = ResolveGroups(model.shape(), parsed);
      ASSERT_TRUE(groups.ok());
      for (int users : {1, 3}) {
        auto cache = OpenCache(model.shape(), recipe);
        std::vector<SequenceId> ids;
        for (int u = 0; u < users; ++u) ids.push_back(cache->Create());
        const std::vector<int> text = Text(800);
        for (int t = 0; t < 800; ++t) {
          for (SequenceId id : ids) Append(model, *cache, id, {text[t]});
          const Footprint planned = FootprintOf(*groups, t + 1, users);
          const CacheStats stats = cache->Stats();
          ASSERT_EQ(stats.allocated_bytes, planned.allocated_bytes)
              << recipe << " window " << window << " users " << users << " tokens " << t + 1;
          ASSERT_EQ(stats.stored_bytes, planned.stored_bytes)
              << recipe << " window " << window << " tokens " << t + 1;
          ASSERT_EQ(stats.logical_bytes, planned.logical_bytes);
        }
      }
    }
  }
}

// By hand: d 64, 3 KV heads, u4/tok: K meta 128 * 2 * 2 = 512, codes 16 * 64 * 4 = 4096, V the
// same: 9216 a page, 8 pages an extent; f16: 32768 a page, 2 an extent.
TEST(Cache, SizesByHand) {
  const TestModel model(TestShape(1, 3, 1, 64));
  auto cache = OpenCache(model.shape(), "kv=u4/tok");
  const SequenceId id = cache->Create();
  Append(model, *cache, id, Text(300));
  const CacheStats stats = cache->Stats();
  EXPECT_EQ(stats.allocated_bytes, 3u * (2 * 32768 + 64) + 3u * (8 * (9216 + 64) + 64));
  EXPECT_EQ(stats.stored_bytes, 3u * 32768 + 2u * 3 * (9216 + 64));
  EXPECT_EQ(stats.logical_bytes, 300u * 3 * 9216 / 128);
  EXPECT_EQ(stats.f16_bytes, 300u * 3 * 256);
}

TEST(Cache, ForkSharesPagesAndContinuesAsAFreshRun) {
  const TestModel model(TestShape(2, 1, 2, 64));
  for (const char* recipe : kRecipes) {
    for (int at : {1, 100, 128, 129, 160, 161, 300}) {
      auto cache = OpenCache(model.shape(), recipe);
      const SequenceId a = cache->Create();
      const std::vector<int> start = Text(at, 1), one = Text(200, 2), two = Text(200, 3);
      Append(model, *cache, a, start, 64);
      const uint64_t before = cache->Stats().stored_bytes;
      const SequenceId b = *cache->Fork(a);
      EXPECT_EQ(cache->Stats().stored_bytes, before);
      Append(model, *cache, a, one, 3);
      Append(model, *cache, b, two, 5);

      auto fresh = OpenCache(model.shape(), recipe);
      const SequenceId fresh_a = fresh->Create(), fresh_b = fresh->Create();
      Append(model, *fresh, fresh_a, start), Append(model, *fresh, fresh_a, one);
      Append(model, *fresh, fresh_b, start), Append(model, *fresh, fresh_b, two);
      EXPECT_EQ(PageDigest(*cache, a), PageDigest(*fresh, fresh_a)) << recipe << " at " << at;
      EXPECT_EQ(PageDigest(*cache, b), PageDigest(*fresh, fresh_b)) << recipe << " at " << at;
    }
  }
}

TEST(Cache, RejectedDraftsLeaveNoTrace) {
  const TestModel model(TestShape(1, 2, 1, 64));
  for (const char* recipe : kRecipes) {
    for (int at = 110; at < 150; ++at) {
      auto drafted = OpenCache(model.shape(), recipe);
      auto plain = OpenCache(model.shape(), recipe);
      const SequenceId d = drafted->Create(), p = plain->Create();
      const std::vector<int> start = Text(at, 1), rest = Text(300, 3);
      Append(model, *drafted, d, start, 32);
      Append(model, *drafted, d, Text(8, 2), 8);
      ASSERT_TRUE(drafted->Crop(d, at).ok());
      Append(model, *drafted, d, rest);
      Append(model, *plain, p, start, 32);
      Append(model, *plain, p, rest);
      EXPECT_EQ(PageDigest(*drafted, d), PageDigest(*plain, p)) << recipe << " at " << at;
    }
  }
}

TEST(Cache, CropCutsWhatIsSealedAndOpensANewEntry) {
  const TestModel model(TestShape(1, 1, 1, 64));
  auto cache = OpenCache(model.shape(), "kv=u4/tok");
  const SequenceId id = cache->Create();
  Append(model, *cache, id, Text(500), 50);
  ASSERT_TRUE(cache->Crop(id, 200).ok());
  EXPECT_EQ(*cache->Tokens(id), 200);
  Append(model, *cache, id, Text(100, 9));
  const Sequence& sequence = **cache->impl()->Find(id);
  ASSERT_EQ(sequence.entries.size(), 3u);
  EXPECT_EQ(sequence.entries[1].count, 72);
  EXPECT_EQ(sequence.entries[2].start, 200);
  EXPECT_EQ(sequence.entries[2].count, 100);
}

TEST(Cache, CropIntoTheSinksReopensTheFirstPage) {
  const TestModel model(TestShape(1, 1, 1, 64));
  auto cropped = OpenCache(model.shape(), "kv=u4/tok,sink=20");
  auto plain = OpenCache(model.shape(), "kv=u4/tok,sink=20");
  const SequenceId c = cropped->Create(), p = plain->Create();
  const std::vector<int> text = Text(500, 1);
  Append(model, *cropped, c, text, 100);
  ASSERT_TRUE(cropped->Crop(c, 13).ok());
  const std::vector<int> start(text.begin(), text.begin() + 13), rest = Text(250, 2);
  Append(model, *cropped, c, rest);
  Append(model, *plain, p, start), Append(model, *plain, p, rest);
  EXPECT_EQ(PageDigest(*cropped, c), PageDigest(*plain, p));
}

// The page is shared while it is cropped and no longer when it is written: its old codes must go.
TEST(Cache, APageCroppedWhileSharedIsSealedAgain) {
  const TestModel model(TestShape(1, 1, 1, 64));
  for (const char* recipe : {"kv=u4/tok", "kv=u4/tok,sink=20"}) {
    auto shared = OpenCache(model.shape(), recipe), plain = OpenCache(model.shape(), recipe);
    const SequenceId s = shared->Create(), p = plain->Create();
    const std::vector<int> text = Text(130, 1), rest = Text(60, 2);
    Append(model, *shared, s, text);
    const SequenceId other = *shared->Fork(s);
    ASSERT_TRUE(shared->Crop(s, 75).ok());
    ASSERT_TRUE(shared->Release(other).ok());
    Append(model, *shared, s, rest);
    Append(model, *plain, p, std::vector<int>(text.begin(), text.begin() + 75));
    Append(model, *plain, p, rest);
    EXPECT_EQ(PageDigest(*shared, s), PageDigest(*plain, p)) << recipe;
    EXPECT_EQ(shared->Stats().stored_bytes, plain->Stats().stored_bytes) << recipe;
    ASSERT_TRUE(shared->Release(s).ok());
    EXPECT_EQ(shared->Stats().stored_bytes, 0u) << recipe;
  }
}

TEST(Cache, CropErrors) {
  const TestModel model(TestShape(1, 1, 1, 64, 200));
  auto cache = OpenCache(model.shape(), "kv=u8/tok");
  const SequenceId id = cache->Create();
  Append(model, *cache, id, Text(1000), 100);
  EXPECT_EQ(cache->Crop(id + 1, 0).code(), StatusCode::kNotFound);
  EXPECT_EQ(cache->Crop(id, 1001).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(cache->Crop(id, -1).code(), StatusCode::kOutOfRange);
  // Token 767 is the last that left: 1000 - 32 - 767 >= 200, and 895 is seen from 968.
  const Status status = cache->Crop(id, 800);
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(status.message(), HasSubstr("any length from 967 on works"));
  EXPECT_EQ(*cache->Tokens(id), 1000);
  EXPECT_TRUE(cache->Crop(id, 967).ok());
  EXPECT_TRUE(cache->Crop(id, 0).ok());
  EXPECT_EQ(cache->Stats().stored_bytes, 0u);
}

TEST(Cache, ReleaseGivesEverythingBack) {
  const TestModel model(TestShape(2, 2, 1, 64));
  for (const char* recipe : kRecipes) {
    auto cache = OpenCache(model.shape(), recipe);
    const SequenceId a = cache->Create();
    Append(model, *cache, a, Text(300), 37);
    const SequenceId b = *cache->Fork(a);
    Append(model, *cache, b, Text(100, 2), 13);
    EXPECT_TRUE(cache->Release(a).ok());
    EXPECT_EQ(*cache->Tokens(b), 400);
    EXPECT_TRUE(cache->Release(b).ok());
    EXPECT_EQ(cache->Release(b).code(), StatusCode::kNotFound);
    EXPECT_EQ(cache->Stats().stored_bytes, 0u) << recipe;
    EXPECT_EQ(cache->Stats().sequences, 0);
  }
}

TEST(Cache, ABatchBeyondTheBudgetIsRefusedAndNothingChanges) {
  const TestModel model(TestShape(1, 1, 1, 64));
  // One exact extent (two pages) and one sealed extent of eight pages.
  const uint64_t budget = (2 * 32768 + 64) + (7 * (9728 + 64) + 64);
  auto cache = OpenCache(model.shape(), "kv=u4/tok32", budget + 65536);
  const SequenceId id = cache->Create();
  Append(model, *cache, id, Text(200), 1);
  const uint64_t before = PageDigest(*cache, id);
  const CacheStats stats = cache->Stats();
  const BatchItem big[] = {{id, 4000}};
  auto refused = cache->Begin(big);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("MiB"));
  EXPECT_EQ(PageDigest(*cache, id), before);
  EXPECT_EQ(cache->Stats().allocated_bytes, stats.allocated_bytes);
  Append(model, *cache, id, Text(10, 2), 1);
  EXPECT_EQ(*cache->Tokens(id), 210);
}

TEST(Cache, AbortLeavesTheCacheAsItWas) {
  const TestModel model(TestShape(2, 2, 1, 64));
  for (const char* recipe : kRecipes) {
    auto cache = OpenCache(model.shape(), recipe);
    const SequenceId a = cache->Create();
    Append(model, *cache, a, Text(120), 40);
    const SequenceId b = *cache->Fork(a);
    const uint64_t before = PageDigest(*cache, a);
    const uint64_t stored = cache->Stats().stored_bytes;
    const std::vector<TestModel::Item> items = {{a, Text(300, 5)}, {b, Text(20, 6)}};
    {
      auto batch = model.BeginBatch(*cache, items);
      for (int layer : {0, 1}) model.WriteLayer(*batch, items, layer, 2);
    }
    EXPECT_EQ(PageDigest(*cache, a), before) << recipe;
    EXPECT_EQ(PageDigest(*cache, b), before) << recipe;
    EXPECT_EQ(cache->Stats().stored_bytes, stored) << recipe;
  }
}

TEST(Cache, NonFiniteInputIsRefusedWithItsPlace) {
  const TestModel model(TestShape(2, 2, 1, 64));
  auto cache = OpenCache(model.shape(), "kv=u4/tok");
  const SequenceId id = cache->Create();
  Append(model, *cache, id, Text(127), 127);
  const uint64_t before = PageDigest(*cache, id);
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e6f}) {
    const std::vector<TestModel::Item> items = {{id, Text(3, 2)}};
    auto batch = model.BeginBatch(*cache, items);
    std::vector<float> k = model.Rows(TestModel::kKey, *batch, items, 1);
    std::vector<float> v = model.Rows(TestModel::kValue, *batch, items, 1);
    k[(1 * 2 + 1) * 64 + 5] = bad;
    model.WriteLayer(*batch, items, 0, 1);
    batch->Write(1, k.data(), v.data(), 0, 1);
    batch->Seal(1, 0, 1);
    const Status status = batch->Commit();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("key of layer 1, position 128, KV head 1"));
    EXPECT_EQ(PageDigest(*cache, id), before);
    EXPECT_EQ(*cache->Tokens(id), 127);
  }
}

TEST(Cache, BadBatches) {
  const TestModel model(TestShape(1, 1, 1, 64));
  auto cache = OpenCache(model.shape(), "f16");
  const SequenceId id = cache->Create();
  const BatchItem zero[] = {{id, 0}}, unknown[] = {{7, 1}}, twice[] = {{id, 1}, {id, 1}};
  EXPECT_EQ(cache->Begin({}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->Begin(zero).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->Begin(unknown).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(cache->Begin(twice).status().code(), StatusCode::kInvalidArgument);
  const BatchItem one[] = {{id, 1}};
  auto open = cache->Begin(one);
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(cache->Begin(one).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(cache->Fork(id).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(cache->Crop(id, 0).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(cache->Release(id).code(), StatusCode::kFailedPrecondition);
}

TEST(Cache, ShapesThatCannotBeRun) {
  Shape latent = TestShape(1, 1, 16, 576);
  latent.layers[0].v_dim = 0;
  EXPECT_EQ(Cache::Open(latent, *Recipe::Parse("f16")).status().code(), StatusCode::kUnimplemented);
  Shape uneven = TestShape(1, 2, 1, 64);
  uneven.layers[0].query_heads = 3;
  EXPECT_EQ(Cache::Open(uneven, *Recipe::Parse("f16")).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Cache::Open(Shape(), *Recipe::Parse("f16")).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(Cache, WindowThatNeverReachesASealedPageSealsNone) {
  const TestModel near(TestShape(1, 1, 1, 64, 128)), far(TestShape(1, 1, 1, 64, 130));
  auto near_cache = OpenCache(near.shape(), "kv=u4/tok,recent=128");
  auto far_cache = OpenCache(far.shape(), "kv=u4/tok,recent=128");
  EXPECT_FALSE(near_cache->impl()->stores()[0].has_sealed());
  EXPECT_TRUE(far_cache->impl()->stores()[0].has_sealed());
}

// Pages before RoPE know where they begin; without RoPE in the shape they cannot be made.
TEST(Cache, KeysBeforeRopeNeedIt) {
  Shape shape = TestShape(2, 1, 1, 16);
  const Recipe recipe = *Recipe::Parse("k=pre:u4/ch,v=u4/tok");
  EXPECT_TRUE(Cache::Open(shape, recipe).ok());
  shape.layers[1].rope = {};
  const auto cache = Cache::Open(shape, recipe);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(cache.status().message(), ::testing::HasSubstr("keys of layer 1: 'pre'"));
}

}  // namespace
}  // namespace shorthand
