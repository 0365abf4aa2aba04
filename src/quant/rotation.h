// Rotation: RoPE of a page's keys, taken back and done again. docs/formats/page.md
// Thread-safety: immutable after construction.
#ifndef SHORTHAND_QUANT_ROTATION_H_
#define SHORTHAND_QUANT_ROTATION_H_

#include <cstdint>
#include <vector>

#include "shorthand/recipe.h"
#include "shorthand/shape.h"

namespace shorthand {

class Rotation {
 public:
  // Of the page whose slot 0 stands at `first_position`. Without frequencies nothing is rotated.
  Rotation(const Rope& rope, int64_t first_position);

  // The key of a slot, in place: as it was before RoPE, or as it is after.
  void Undo(int slot, float* key) const;
  void Apply(int slot, float* key) const;

 private:
  template <typename Turn>
  void ForEachPair(int slot, float* key, Turn turn) const;

  bool adjacent_;
  int pairs_;
  std::vector<float> cosines_, sines_;  // [128][pairs]
};

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_ROTATION_H_
