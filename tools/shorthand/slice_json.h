// A slice for programs: what `inspect slice --json` and the explorer's API say of it.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_SLICE_JSON_H_
#define SHORTHAND_TOOLS_SLICE_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "model_slice.h"

namespace shorthand {

// Everything but the numbers.
nlohmann::ordered_json SliceJson(const ModelSlice& slice);

// "K" or "V".
const char* SideName(SideKind kind);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_SLICE_JSON_H_
