// Parameters: the number of weights of a model, computed from its config.json.
// Thread-safety: pure function.
#ifndef SHORTHAND_PLAN_PARAMETERS_H_
#define SHORTHAND_PLAN_PARAMETERS_H_

#include "plan/config_fields.h"
#include "plan/family.h"
#include "shorthand/plan.h"

namespace shorthand {

// Fills model.shape.parameters, or model.parameters_note with the reason why it stays 0. Failures
// of `fields` become such a reason: a plan of the cache does not need the number.
// REQUIRES: model.shape.layers are resolved.
void CountParameters(const ModelFamily& family, ConfigFields fields, ModelShape& model);

}  // namespace shorthand

#endif  // SHORTHAND_PLAN_PARAMETERS_H_
