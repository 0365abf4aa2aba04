#include "cache/exact_rows.h"

#include <cstring>

#include "base/half.h"

namespace shorthand {
namespace {

constexpr int kTile = 16;

size_t BytesOf(Element element) { return element == Element::kF32 ? 4 : 2; }

float Load(Element element, const uint8_t* from) {
  if (element == Element::kF32) {
    float x;
    std::memcpy(&x, from, 4);
    return x;
  }
  uint16_t h;
  std::memcpy(&h, from, 2);
  return element == Element::kF16 ? F16ToF32(h) : Bf16ToF32(h);
}

// Element index of (row, channel) in a K memory.
size_t KeyIndex(int row, int channel, int dim) {
  return (static_cast<size_t>(row / kTile) * dim + channel) * kTile + row % kTile;
}

}  // namespace

Element ElementOf(const SideFormat& format) {
  switch (format.code) {
    case Code::kF32:
      return Element::kF32;
    case Code::kBf16:
      return Element::kBf16;
    default:
      return Element::kF16;
  }
}

ExactRows::ExactRows(const LayerFormat& layer)
    : kernels_(ActiveKernels()),
      k_element_(ElementOf(layer.exact_k)),
      v_element_(ElementOf(layer.exact_v)),
      k_model_dim_(layer.exact_k.dim),
      v_model_dim_(layer.exact_v.dim),
      k_dim_(layer.exact_k.padded_dim),
      v_dim_(layer.exact_v.padded_dim),
      k_bytes_(BytesOf(k_element_)),
      v_bytes_(BytesOf(v_element_)) {}

bool ExactRows::WriteKeys(uint8_t* keys, int first, int rows, const float* k, size_t stride) const {
  return kernels_->write_keys(k_element_, k, stride, rows, k_model_dim_, first, keys);
}

bool ExactRows::WriteValues(uint8_t* values, int first, int rows, const float* v,
                            size_t stride) const {
  return kernels_->write_values(v_element_, v, stride, rows, v_model_dim_, first, values);
}

void ExactRows::ReadKeys(const uint8_t* keys, int rows, float* k) const {
  for (int row = 0; row < rows; ++row) {
    for (int c = 0; c < k_model_dim_; ++c) {
      k[static_cast<size_t>(row) * k_model_dim_ + c] =
          Load(k_element_, keys + KeyIndex(row, c, k_dim_) * k_bytes_);
    }
  }
}

void ExactRows::ReadValues(const uint8_t* values, int rows, float* v) const {
  for (int row = 0; row < rows; ++row) {
    for (int c = 0; c < v_model_dim_; ++c) {
      v[static_cast<size_t>(row) * v_model_dim_ + c] =
          Load(v_element_, values + (static_cast<size_t>(row) * v_dim_ + c) * v_bytes_);
    }
  }
}

void ExactRows::Copy(const uint8_t* from, int from_rows, uint8_t* to, int to_rows, int rows) const {
  for (int row = 0; row < rows; ++row) {
    for (int c = 0; c < k_dim_; ++c) {
      const size_t at = KeyIndex(row, c, k_dim_) * k_bytes_;
      std::memcpy(to + at, from + at, k_bytes_);
    }
  }
  std::memcpy(to + ValueOffset(to_rows), from + ValueOffset(from_rows),
              static_cast<size_t>(rows) * v_dim_ * v_bytes_);
}

}  // namespace shorthand
