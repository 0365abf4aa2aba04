// IntegerPath: whether a sealed side can be read by the integer kernels, and how.
//
// The integer kernels take sides whose levels are small integers (uniform codes, or a table of up
// to 16) with f16 scales per token or per channel. Every other side goes through the generic path:
// unpacked to f32 first.
// Thread-safety: immutable after construction.
#ifndef SHORTHAND_ATTENTION_INTEGER_PATH_H_
#define SHORTHAND_ATTENTION_INTEGER_PATH_H_

#include <array>
#include <cstdint>

#include "kernels/codes.h"
#include "quant/page.h"

namespace shorthand {

class IntegerPath {
 public:
  explicit IntegerPath(const SideFormat& format);

  bool usable() const { return usable_; }
  // Of folded weights: two for values of 5 bits and more.
  int weight_limbs() const { return bits_ >= 5 ? 2 : 1; }
  // Root mean square of centred levels, in steps between levels, of Gaussian groups: what the
  // number of query limbs is decided by (docs/numerics.md).
  float code_rms() const;
  // Metadata of a page behind its mean: f16 numbers, and where they begin in its meta part.
  int meta_count() const { return meta_count_; }
  size_t meta_offset() const { return meta_offset_; }

  // A page's side, its metadata already widened. REQUIRES: usable(); the path outlives the result.
  //   flips  [meta_count()], written if scales have signs, and then kept by the result
  CodedSide8 At(const uint8_t* lines, const float* meta, uint8_t* flips) const;

 private:
  bool usable_ = false;
  int bits_ = 0;
  int meta_count_ = 0;
  size_t meta_offset_ = 0;
  bool has_table_ = false;
  bool signed_scales_ = false;
  std::array<uint8_t, 16> table_{};
  CodedSide8 side_{};
};

}  // namespace shorthand

#endif  // SHORTHAND_ATTENTION_INTEGER_PATH_H_
