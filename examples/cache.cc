// Opens a cache, appends tokens, attends, forks and crops.
#include "shorthand/cache.h"

#include <cstdio>
#include <vector>

#include "shorthand/attention.h"

using namespace shorthand;

int main() {
  Shape shape;  // one layer of 4 query heads that share 2 KV heads of 64 channels
  shape.layers.push_back({.query_heads = 4, .kv_heads = 2, .k_dim = 64, .v_dim = 64});
  auto recipe = Recipe::Parse("k=u4/ch,v=had:lm4/tok:ub,sink=4");
  auto cache = Cache::Open(shape, *recipe);
  if (!cache.ok()) return std::puts(cache.status().message().c_str()), 1;

  const SequenceId chat = (*cache)->Create();
  const int tokens = 300;
  std::vector<float> k(tokens * 2 * 64), v(k), q(tokens * 4 * 64), out(q);
  for (size_t i = 0; i < k.size(); ++i) k[i] = (i * 37 % 101) / 50.f - 1, v[i] = (i % 7) / 7.f;
  for (size_t i = 0; i < q.size(); ++i) q[i] = (i * 53 % 97) / 48.f - 1;
  const BatchItem items[] = {{chat, tokens}};
  auto batch = (*cache)->Begin(items);  // reserves memory, or says what is missing
  if (!batch.ok()) return std::puts(batch.status().message().c_str()), 1;
  auto plan = AttentionPlan::Create(**batch);
  (*batch)->Write(0, k.data(), v.data(), /*worker=*/0, /*workers=*/1);
  (*batch)->Seal(0, 0, 1);  // pages of 128 tokens are quantized once, when complete
  (*plan)->Run({.layer = 0, .q = q.data(), .out = out.data()}, 0, 1);
  if (Status kept = (*batch)->Commit(); !kept.ok()) return std::puts(kept.message().c_str()), 1;

  auto other = (*cache)->Fork(chat);              // shares every page
  if (!(*cache)->Crop(chat, 250).ok()) return 1;  // takes 50 tokens back
  const CacheStats stats = (*cache)->Stats();
  std::printf("%s\n%lld and %lld tokens, %.1f KiB in pages; the same in f16: %.1f KiB\n",
              recipe->ToString().c_str(), static_cast<long long>(*(*cache)->Tokens(chat)),
              static_cast<long long>(*(*cache)->Tokens(*other)), stats.stored_bytes / 1024.0,
              stats.f16_bytes / 1024.0);
  return (*batch)->rows() == tokens ? 0 : 1;
}
