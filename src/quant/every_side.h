// EverySide: the ways in which a recipe can ask for a format, for tests and measurements that visit
// every format through the registry.
// Thread-safety: a pure function.
#ifndef SHORTHAND_QUANT_EVERY_SIDE_H_
#define SHORTHAND_QUANT_EVERY_SIDE_H_

#include <string>
#include <vector>

#include "quant/format.h"

namespace shorthand {

// Texts of a side: `codec` in every group, with and without a Hadamard transform. Some do not fit
// some head dims.
inline std::vector<std::string> EverySide(const Codec& codec) {
  std::vector<std::string> groups = {"/tok", "/tok32", "/tok64", "/ch", "/ch32"};
  if (codec.fixed_group != 0) groups = {""};
  if (codec.scale_type == ScaleType::kPage) groups = {"/page"};
  if (codec.code == Code::kWater) return {"w2.5/ch", "w4/ch", "w5/ch"};
  std::vector<std::string> sides;
  for (const std::string& group : groups) {
    for (const char* steps : {"", "had:"}) {
      sides.push_back(steps + std::string(codec.name) + group);
    }
  }
  return sides;
}

// A recipe with the side for keys and values; for keys alone, the values being f16, if it is of
// those.
inline std::string RecipeWith(const std::string& side) {
  const std::string both = "kv=" + side;
  return Recipe::Parse(both).ok() ? both : "k=" + side + ",v=f16";
}

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_EVERY_SIDE_H_
