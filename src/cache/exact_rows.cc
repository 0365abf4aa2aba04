#include "cache/exact_rows.h"

#include <bit>
#include <cmath>
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

// False if x, rounded to the element, is not finite.
bool Store(Element element, float x, uint8_t* to) {
  if (element == Element::kF32) {
    std::memcpy(to, &x, 4);
    return std::isfinite(x);
  }
  const uint16_t h = element == Element::kF16 ? F32ToF16(x) : F32ToBf16(x);
  std::memcpy(to, &h, 2);
  const uint16_t exponent = element == Element::kF16 ? 0x7c00 : 0x7f80;
  return (h & exponent) != exponent;
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
    : k_element_(ElementOf(layer.exact_k)),
      v_element_(ElementOf(layer.exact_v)),
      k_model_dim_(layer.exact_k.dim),
      v_model_dim_(layer.exact_v.dim),
      k_dim_(layer.exact_k.padded_dim),
      v_dim_(layer.exact_v.padded_dim),
      k_bytes_(BytesOf(k_element_)),
      v_bytes_(BytesOf(v_element_)) {}

bool ExactRows::WriteKey(uint8_t* keys, int row, const float* k) const {
  bool finite = true;
  for (int c = 0; c < k_dim_; ++c) {
    const float x = c < k_model_dim_ ? k[c] : 0.0f;
    finite &= Store(k_element_, x, keys + KeyIndex(row, c, k_dim_) * k_bytes_);
  }
  return finite;
}

bool ExactRows::WriteValue(uint8_t* values, int row, const float* v) const {
  uint8_t* to = values + static_cast<size_t>(row) * v_dim_ * v_bytes_;
  bool finite = true;
  for (int c = 0; c < v_dim_; ++c) {
    finite &= Store(v_element_, c < v_model_dim_ ? v[c] : 0.0f, to + c * v_bytes_);
  }
  return finite;
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
