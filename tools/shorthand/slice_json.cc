#include "slice_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace shorthand {
namespace {

// Scales of 4096 tokens and 4096 channels taken as one head: down, across.
std::vector<int64_t> ScalesOf4096(const Slice& slice) {
  constexpr int64_t kSide = 4096;
  const auto groups = [](int64_t length) { return length == 0 ? 1 : kSide / length; };
  return {groups(slice.full_group.tokens), groups(slice.full_group.channels)};
}

}  // namespace

const char* SideName(SideKind kind) { return kind == SideKind::kKey ? "K" : "V"; }

nlohmann::ordered_json SliceJson(const ModelSlice& slice) {
  nlohmann::ordered_json codes = nlohmann::ordered_json::array();
  for (const CodedSlice& coded : slice.codes) {
    codes.push_back({{"code", coded.code},
                     {"relative_error", coded.slice.relative_error},
                     {"head_relative_error", coded.head_error},
                     {"group_tokens", coded.slice.group_tokens},
                     {"group_channels", coded.slice.group_channels},
                     {"token_edges", coded.slice.token_edges},
                     {"channel_edges", coded.slice.channel_edges},
                     {"head_group", coded.head_group},
                     {"head_scales", coded.head_scales},
                     {"scales_4096", ScalesOf4096(coded.slice)},
                     {"code_bits", coded.slice.code_bits},
                     {"scale_bits", coded.slice.scale_bits}});
  }
  return {{"layer", slice.layer},
          {"head", slice.head},
          {"side", SideName(slice.kind)},
          {"dim", slice.dim},
          {"tokens", {slice.tokens.first, slice.tokens.last}},
          {"channels", {slice.channels.first, slice.channels.last}},
          {"exact", slice.exact.recent},
          {"sink", slice.exact.sinks},
          {"captured_tokens", slice.text_tokens},
          {"codes", std::move(codes)}};
}

}  // namespace shorthand
