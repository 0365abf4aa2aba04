// What a user of an installed Shorthand writes first: a recipe, and a cache of one layer.
#include <cstdio>

#include "shorthand/attention.h"
#include "shorthand/cache.h"
#include "shorthand/plan.h"
#include "shorthand/recipe.h"

int main() {
  auto recipe = shorthand::Recipe::Parse("kivi4");
  if (!recipe.ok()) {
    std::fprintf(stderr, "%s\n", recipe.status().message().c_str());
    return 1;
  }
  shorthand::Shape shape;
  shape.layers = {{.query_heads = 4, .kv_heads = 2, .k_dim = 64, .v_dim = 64}};
  auto cache = shorthand::Cache::Open(shape, *recipe);
  if (!cache.ok()) {
    std::fprintf(stderr, "%s\n", cache.status().message().c_str());
    return 1;
  }
  std::printf("%s: %lld tokens\n", recipe->ToString().c_str(),
              static_cast<long long>((*cache)->Stats().tokens));
  return 0;
}
