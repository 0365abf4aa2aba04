// EverySide: the ways in which a recipe can ask for a format, for tests and measurements that visit
// every format through the registry.
// Thread-safety: a pure function.
#ifndef SHORTHAND_QUANT_EVERY_SIDE_H_
#define SHORTHAND_QUANT_EVERY_SIDE_H_

#include <string>
#include <utility>
#include <vector>

#include "quant/format.h"

namespace shorthand {

// Tunes that a recipe can give the codec, with their colons.
inline std::vector<std::string> EveryTune(const Codec& codec) {
  switch (codec.code) {
    case Code::kE4m3:
    case Code::kE5m2:
      return {":one", ":cal"};
    case Code::kInt:
    case Code::kUint:
    case Code::kRn:
      return {":mse"};
    case Code::kLm:
      return {":norm", ":ub"};
    case Code::kNuq:
      return {":out1", ":cal", ":cal:out1"};
    default:
      return {};
  }
}

// Texts of a side: `codec` in every group, with and without a Hadamard transform, and the first
// group with every tune. Some do not fit some head dims, some need a calibration.
inline std::vector<std::string> EverySide(const Codec& codec) {
  std::vector<std::string> groups = {"/tok", "/tok32", "/tok64", "/ch", "/ch32", "/grid"};
  if (codec.code == Code::kWater) groups = {};
  if (codec.fixed_group != 0) groups = {""};
  if (codec.scale_type == ScaleType::kPage) groups = {"/page"};
  if (codec.code == Code::kWater) return {};  // of keys alone
  std::vector<std::string> sides;
  for (const std::string& group : groups) {
    for (const char* steps : {"", "had:"}) {
      sides.push_back(steps + std::string(codec.name) + group);
    }
  }
  for (const std::string& tune : EveryTune(codec)) {
    sides.push_back(std::string(codec.name) + groups.front() + tune);
  }
  return sides;
}

// Likewise of keys alone.
inline std::vector<std::string> KeySides(const Codec& codec) {
  const std::string name(codec.name);
  if (codec.code == Code::kWater) return {"w2.5/ch", "w4/ch", "w5/ch"};
  const std::string any_group = EverySide(codec).front();
  std::vector<std::string> sides = {"smooth:" + any_group, "pre:" + any_group,
                                    "smooth:" + any_group + ":cal"};
  if (codec.code != Code::kWater) sides.push_back("mu:" + any_group + ":cal");
  if (codec.code == Code::kNuq) {
    for (const char* rest : {"/ch:cal", "/ch32:cal:out1"}) sides.push_back(name + rest);
    sides.push_back("pre:" + name + "/ch:cal:out1");
  }
  if (codec.code != Code::kUint || codec.bits > 4) return sides;
  for (const char* rest : {"/ch:hi12.5", "/ch32:hi30", "/ch:mse:hi99", "/ch:cal:hi12.5",
                           "/ch:mse:cal:hi40", "/ch32:cal:hi30"}) {
    sides.push_back(name + rest);
  }
  return sides;
}

// All of them.
inline std::vector<std::string> EveryKeySide(const Codec& codec) {
  std::vector<std::string> sides = EverySide(codec);
  for (std::string& side : KeySides(codec)) sides.push_back(std::move(side));
  return sides;
}

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_EVERY_SIDE_H_
