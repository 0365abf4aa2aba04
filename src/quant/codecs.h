// The encoders that registry rows name, one family a file.
//
// Each encodes a side as EncodeFn says. What a family computes, byte by byte, is in docs/formats/.
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_CODECS_H_
#define SHORTHAND_QUANT_CODECS_H_

#include "quant/format.h"
#include "quant/groups.h"

namespace shorthand {

// codec_uniform.cc: uB min/max with offset, iB absmax.
void EncodeUnsigned(const SideFormat& format, const float* x, int first, CodedSide out);
void EncodeSigned(const SideFormat& format, const float* x, int first, CodedSide out);
// One group of uB: between the ends of `range`, or with a scale and offset yet to be rounded.
GroupScale EncodeUnsignedGroup(const Group& group, int bits, ValueRange range);
GroupScale EncodeUnsignedBy(const Group& group, int bits, GroupScale exact);

// codec_water.cc: wN, channels with widths of their own.
void EncodeWater(const SideFormat& format, const float* x, int first, CodedSide out);

// codec_table.cc: normal-float, Lloyd-Max, range-normalised (any table).
void EncodeNormalFloat(const SideFormat& format, const float* x, int first, CodedSide out);
void EncodeLloydMax(const SideFormat& format, const float* x, int first, CodedSide out);
void EncodeRangeNormalised(const SideFormat& format, const float* x, int first, CodedSide out);

// codec_nuq.cc: range-normalised with outliers.
void EncodeNuq(const SideFormat& format, const float* x, int first, CodedSide out);

// codec_fp8.cc
void EncodeE4m3(const SideFormat& format, const float* x, int first, CodedSide out);
void EncodeE5m2(const SideFormat& format, const float* x, int first, CodedSide out);

// codec_ggml.cc: blocks of 32.
void EncodeQ8_0(const SideFormat& format, const float* x, int first, CodedSide out);
void EncodeQ5_1(const SideFormat& format, const float* x, int first, CodedSide out);
void EncodeQ5_0(const SideFormat& format, const float* x, int first, CodedSide out);
void EncodeQ4_1(const SideFormat& format, const float* x, int first, CodedSide out);
void EncodeQ4_0(const SideFormat& format, const float* x, int first, CodedSide out);
void EncodeIq4Nl(const SideFormat& format, const float* x, int first, CodedSide out);

// codec_mx.cc: microscaling blocks of 32 and 16.
void EncodeMxfp4(const SideFormat& format, const float* x, int first, CodedSide out);
void EncodeNvfp4(const SideFormat& format, const float* x, int first, CodedSide out);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_CODECS_H_
