// RopeOf: how a layer rotates its keys, as the shape of a model says it (shorthand/shape.h).
// Thread-safety: pure function.
#ifndef SHORTHAND_MODEL_ROPE_H_
#define SHORTHAND_MODEL_ROPE_H_

#include <span>

#include "model/hyperparams.h"

namespace shorthand {

// The rotation that ggml_rope_ext makes of `params`; `factors` [dims / 2] divide the frequencies,
// none leave them.
Rope RopeOf(const RopeParams& params, std::span<const float> factors);

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_ROPE_H_
