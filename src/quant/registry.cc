// The registry: one row per format.
#include <array>

#include "quant/codecs.h"
#include "quant/format.h"
#include "quant/levels.h"

namespace shorthand {
namespace {

Codec Unsigned(uint16_t id, std::string_view name, int bits) {
  return {
      id,       name, Code::kUint, bits, 0, true, ScaleType::kF16, EncodeUnsigned, UnsignedLevels(),
      "uniform"};
}

Codec Signed(uint16_t id, std::string_view name, int bits) {
  return {
      id,       name, Code::kInt, bits, 0, false, ScaleType::kF16, EncodeSigned, SignedLevels(bits),
      "uniform"};
}

Codec Table(uint16_t id, std::string_view name, Code code, int bits, EncodeFn encode) {
  return {id,
          name,
          code,
          bits,
          0,
          code == Code::kRn || code == Code::kNuq,
          ScaleType::kF16,
          encode,
          LevelTableOf(code, bits).levels,
          "table"};
}

Codec Fp8(uint16_t id, std::string_view name, Code code, EncodeFn encode, const float* levels) {
  return {id, name, code, 8, 0, false, ScaleType::kPage, encode, levels, "fp8"};
}

const auto& Rows() {
  static const std::array rows = {
      Fp8(1, "e4m3", Code::kE4m3, EncodeE4m3, E4m3Levels()),
      Fp8(2, "e5m2", Code::kE5m2, EncodeE5m2, E5m2Levels()),
      Codec{16, "q8_0", Code::kQ8_0, 8, 32, false, ScaleType::kF16, EncodeQ8_0, SignedLevels(8),
            "ggml"},
      Codec{17, "q5_1", Code::kQ5_1, 5, 32, true, ScaleType::kF16, EncodeQ5_1, UnsignedLevels(),
            "ggml"},
      Codec{18, "q5_0", Code::kQ5_0, 5, 32, false, ScaleType::kF16, EncodeQ5_0, SignedLevels(5),
            "ggml"},
      Codec{19, "q4_1", Code::kQ4_1, 4, 32, true, ScaleType::kF16, EncodeQ4_1, UnsignedLevels(),
            "ggml"},
      Codec{20, "q4_0", Code::kQ4_0, 4, 32, false, ScaleType::kF16, EncodeQ4_0, SignedLevels(4),
            "ggml"},
      Codec{21, "iq4_nl", Code::kIq4Nl, 4, 32, false, ScaleType::kF16, EncodeIq4Nl, Iq4NlLevels(),
            "ggml"},
      Codec{22, "mxfp4", Code::kMxfp4, 4, 32, false, ScaleType::kE8m0, EncodeMxfp4, E2m1Levels(),
            "mx"},
      Codec{23, "nvfp4", Code::kNvfp4, 4, 16, false, ScaleType::kUe4m3, EncodeNvfp4, E2m1Levels(),
            "mx"},
      Signed(34, "i2", 2),
      Signed(35, "i3", 3),
      Signed(36, "i4", 4),
      Signed(37, "i5", 5),
      Signed(38, "i6", 6),
      Signed(40, "i8", 8),
      Unsigned(50, "u2", 2),
      Unsigned(51, "u3", 3),
      Unsigned(52, "u4", 4),
      Unsigned(53, "u5", 5),
      Unsigned(54, "u6", 6),
      Unsigned(56, "u8", 8),
      // The widest of its channels; levels are the codes themselves.
      Codec{60, "w", Code::kWater, 8, 0, true, ScaleType::kF16, EncodeWater, UnsignedLevels(),
            "planes"},
      Table(66, "nf2", Code::kNf, 2, EncodeNormalFloat),
      Table(67, "nf3", Code::kNf, 3, EncodeNormalFloat),
      Table(68, "nf4", Code::kNf, 4, EncodeNormalFloat),
      Table(82, "lm2", Code::kLm, 2, EncodeLloydMax),
      Table(83, "lm3", Code::kLm, 3, EncodeLloydMax),
      Table(84, "lm4", Code::kLm, 4, EncodeLloydMax),
      Table(98, "rn2", Code::kRn, 2, EncodeRangeNormalised),
      Table(99, "rn3", Code::kRn, 3, EncodeRangeNormalised),
      Table(100, "rn4", Code::kRn, 4, EncodeRangeNormalised),
      Table(130, "nuq2", Code::kNuq, 2, EncodeNuq),
      Table(131, "nuq3", Code::kNuq, 3, EncodeNuq),
      Table(132, "nuq4", Code::kNuq, 4, EncodeNuq),
  };
  return rows;
}

}  // namespace

std::span<const Codec> Registry() { return Rows(); }

const Codec* FindCodec(Code code, int bits) {
  for (const Codec& codec : Rows()) {
    if (codec.code == code && (bits == 0 || codec.bits == bits)) return &codec;
  }
  return nullptr;
}

const Codec* FindCodec(std::string_view name) {
  for (const Codec& codec : Rows()) {
    if (codec.name == name) return &codec;
  }
  return nullptr;
}

}  // namespace shorthand
