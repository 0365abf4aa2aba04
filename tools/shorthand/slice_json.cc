#include "slice_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace shorthand {

const char* SideName(SideKind kind) { return kind == SideKind::kKey ? "K" : "V"; }

nlohmann::ordered_json SliceJson(const ModelSlice& slice) {
  nlohmann::ordered_json codes = nlohmann::ordered_json::array();
  for (const CodedSlice& coded : slice.codes) {
    codes.push_back({{"code", coded.code},
                     {"relative_error", coded.slice.relative_error},
                     {"head_relative_error", coded.head_error},
                     {"group_tokens", coded.slice.group_tokens},
                     {"group_channels", coded.slice.group_channels},
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
