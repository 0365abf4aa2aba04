// Layer kinds: which layers of a model keep all keys and values, which a window, which none.
// Thread-safety: pure function.
#ifndef SHORTHAND_PLAN_LAYER_KINDS_H_
#define SHORTHAND_PLAN_LAYER_KINDS_H_

#include <vector>

#include "plan/config_fields.h"
#include "plan/family.h"

namespace shorthand {

enum class LayerKind { kFull, kWindow, kNone };

struct LayerKinds {
  std::vector<LayerKind> layers;
  int window = 0;        // of the kWindow layers; 0 if there are none
  bool chunked = false;  // the window stands for chunks of that length
};

// Failures go to `fields`; the result then has full layers only. A window that is no shorter than
// `max_context_tokens` (0: unknown) never cuts anything and counts as full attention.
LayerKinds LayerKindsOf(const ModelFamily& family, int layers, int64_t max_context_tokens,
                        ConfigFields& fields);

}  // namespace shorthand

#endif  // SHORTHAND_PLAN_LAYER_KINDS_H_
