#include "tune/rungs.h"

#include <string>
#include <string_view>
#include <utility>

namespace shorthand {
namespace {

struct RungText {
  double bits;
  std::string_view side;
};

constexpr RungText kKeys[] = {{2, "w2/ch"},       {2.25, "w2.25/ch"}, {2.5, "w2.5/ch"},
                              {2.75, "w2.75/ch"}, {3, "w3/ch"},       {3.25, "w3.25/ch"},
                              {3.5, "w3.5/ch"},   {3.75, "w3.75/ch"}, {4, "w4/ch"},
                              {4.5, "w4.5/ch"},   {5, "w5/ch"},       {5.5, "w5.5/ch"},
                              {6, "w6/ch"},       {7, "w7/ch"},       {8, "bal:had:u8/ch"}};
constexpr RungText kValues[] = {{2, "had:lm2/tok:ub"}, {3, "had:lm3/tok:ub"}, {4, "had:lm4/tok:ub"},
                                {5, "had:i5/tok"},     {6, "had:i6/tok"},     {8, "had:i8/tok"}};

// REQUIRES: the texts are sides of the grammar.
template <size_t N>
std::vector<Rung> Parse(const RungText (&texts)[N], std::string_view before, std::string_view after,
                        Side SidePair::* side) {
  std::vector<Rung> rungs;
  for (const RungText& text : texts) {
    std::string recipe(before);
    recipe.append(text.side).append(after);
    rungs.push_back({text.bits, Recipe::Parse(recipe)->kv.*side});
  }
  return rungs;
}

}  // namespace

const std::vector<Rung>& KeyRungs() {
  static const std::vector<Rung> rungs = Parse(kKeys, "k=", ",v=f16", &SidePair::k);
  return rungs;
}

const std::vector<Rung>& ValueRungs() {
  static const std::vector<Rung> rungs = Parse(kValues, "k=f16,v=", "", &SidePair::v);
  return rungs;
}

}  // namespace shorthand
