// Presets by name. The list itself is public (shorthand/recipe.h).
// Thread-safety: pure functions of an immutable table.
#ifndef SHORTHAND_QUANT_PRESETS_H_
#define SHORTHAND_QUANT_PRESETS_H_

#include <string_view>

#include "shorthand/recipe.h"

namespace shorthand {

// Null if there is none. `name` in lower case.
const Preset* FindPreset(std::string_view name);

// The preset whose name is most like `name`; the first of the list among equals.
const Preset& NearestPreset(std::string_view name);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_PRESETS_H_
