// IntegerPath: whether a sealed side can be read by the integer kernels, and how.
//
// The integer kernels take sides whose levels are small integers (uniform codes, or a table of up
// to 16) with scales per token or per channel, but not values with scales for 16 channels. Every
// other side goes through the generic path, unpacked to f32 first, or is unsealed (format.h).
// Thread-safety: immutable after construction.
#ifndef SHORTHAND_ATTENTION_INTEGER_PATH_H_
#define SHORTHAND_ATTENTION_INTEGER_PATH_H_

#include <array>
#include <cstdint>

#include "kernels/kernels.h"
#include "quant/page.h"

namespace shorthand {

// What the kernels know of a head's planes. The tables must outlive it.
KeyPlanes PlanesOf(const HeadTables& tables);

class IntegerPath {
 public:
  // `tables`: of any head; levels are the same for all of them.
  IntegerPath(const SideFormat& format, const HeadTables& tables);

  bool usable() const { return usable_; }
  // Of folded weights: two for values of 5 bits and more.
  int weight_limbs() const { return bits_ >= 5 ? 2 : 1; }
  // Root mean square of centred levels, in steps between levels, of Gaussian groups: what the
  // number of query limbs is decided by (docs/numerics.md).
  float code_rms() const;
  // Scales and offsets of a page.
  int meta_count() const { return meta_count_; }

  // A page's side, written in place: a copy of what was just stored in parts would wait for it.
  // `widened` and `flips` [meta_count()] are written and must, like the path, outlive the side.
  // REQUIRES: usable().
  // `planes`: of the head, where the format has them, else null.
  void Open(const KernelTable& kernels, const KeyPlanes* planes, const uint8_t* meta,
            const uint8_t* lines, float* widened, uint8_t* flips, CodedSide8* side) const;

 private:
  bool usable_ = false;
  int bits_ = 0;
  int meta_count_ = 0;
  size_t meta_offset_ = 0;
  bool has_table_ = false;
  bool signed_scales_ = false;
  const float* byte_scales_ = nullptr;  // [256]; null: scales are f16
  std::array<uint8_t, 16> table_{};
  CodedSide8 side_{};
};

}  // namespace shorthand

#endif  // SHORTHAND_ATTENTION_INTEGER_PATH_H_
