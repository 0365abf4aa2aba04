// StepObserver: sees what attention works on while a forward step computes it.
//
// For each layer in order: the keys, then the values, as they are handed to the cache, then the
// queries as attention gets them; biases, norms and positions are applied, nothing is rounded to
// the cache's form. A step without output rows ends at the last layer's values. Calibration,
// captures and measurements stand on this; a step that nobody observes pays nothing.
// Thread-safety: called by one compute thread, one call at a time, from within Model::Forward; the
// others wait for it at the end of a layer's node.
#ifndef SHORTHAND_MODEL_OBSERVER_H_
#define SHORTHAND_MODEL_OBSERVER_H_

#include <functional>
#include <span>

namespace shorthand {

enum class AttentionInput { kKeys, kValues, kQueries };

struct ObservedRows {
  AttentionInput input = AttentionInput::kKeys;
  int layer = 0;
  int heads = 0;
  int dim = 0;
  std::span<const float> rows;  // [rows of the batch][heads][dim], valid during the call
};

// Must not throw, nor call the model.
using StepObserver = std::function<void(const ObservedRows&)>;

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_OBSERVER_H_
