// ExactRows: reading and writing token rows of exact pages and of sink rows.
//
// Both hold K as [rows / 16][D][16] and V as [rows][D], elements of the layer's exact formats, with
// D padded to a multiple of 16. A page has 128 rows, sinks as many as fit their padding.
// Thread-safety: pure functions over the caller's memory.
#ifndef SHORTHAND_CACHE_EXACT_ROWS_H_
#define SHORTHAND_CACHE_EXACT_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "quant/footprint.h"

namespace shorthand {

// REQUIRES: `format` is exact.
Element ElementOf(const SideFormat& format);

class ExactRows {
 public:
  explicit ExactRows(const LayerFormat& layer);

  // Where V begins behind the K of `rows` rows.
  size_t ValueOffset(int rows) const { return static_cast<size_t>(rows) * k_dim_ * k_bytes_; }

  // Stores `rows` rows from row `first` on; false if a value is not finite or does not fit the
  // element type. Sixteen rows of a tile at once are the fast way.
  //   k, v  unpadded rows of D floats, `stride` floats apart
  bool WriteKeys(uint8_t* keys, int first, int rows, const float* k, size_t stride) const;
  bool WriteValues(uint8_t* values, int first, int rows, const float* v, size_t stride) const;

  // Rows 0..rows-1 as f32 [rows][D], unpadded.
  void ReadKeys(const uint8_t* keys, int rows, float* k) const;
  void ReadValues(const uint8_t* values, int rows, float* v) const;

  // The first `rows` rows of one memory of `from_rows` rows to another of `to_rows`.
  void Copy(const uint8_t* from, int from_rows, uint8_t* to, int to_rows, int rows) const;

 private:
  const KernelTable* kernels_;
  Element k_element_, v_element_;
  int k_model_dim_, v_model_dim_;
  int k_dim_, v_dim_;         // padded
  size_t k_bytes_, v_bytes_;  // of an element
};

}  // namespace shorthand

#endif  // SHORTHAND_CACHE_EXACT_ROWS_H_
