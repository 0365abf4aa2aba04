// Pages: bytes of 128 token slots of one layer and one KV head, K and V together.
//
// A page is [K meta | K codes | V meta | V codes], each part padded to 64 bytes, read front to
// back. Sealed codes are stored in lines of 64 bytes in the order in which kernels consume them:
// a K tile is 16 tokens x 4 channels (byte = token * 4 + channel), a V tile 16 channels x 4 tokens
// (byte = channel * 4 + token); tiles are enumerated and packed into lines as docs/formats/page.md
// says. An exact side has its elements instead of codes: K as [8][D][16] (token tile, channel,
// token in tile), V as [128][D]. Exact pages have no meta and no padding channels beyond
// multiples of 16.
//
// Thread-safety: pure functions.
#ifndef SHORTHAND_QUANT_PAGE_H_
#define SHORTHAND_QUANT_PAGE_H_

#include <cstddef>
#include <cstdint>

#include "quant/format.h"
#include "quant/head_tables.h"

namespace shorthand {

inline constexpr size_t kLineBytes = 64;

// Beside every sealed page, 64 bytes.
struct alignas(64) PageDescriptor {
  float k_page_scale = 0;  // ScaleType::kPage
  float v_page_scale = 0;
  uint32_t first_token = 0;     // slots before it are masked: exact sinks
  uint32_t clipped_values = 0;  // values that saturated although the scale was given (fp8 `one`)
  int64_t first_position = 0;   // of slot 0, where keys are stored before RoPE; else 0
  uint8_t reserved[40] = {};
};
static_assert(sizeof(PageDescriptor) == 64);

struct SidePart {
  size_t meta_offset = 0;
  size_t meta_bytes = 0;
  size_t codes_offset = 0;
  size_t codes_bytes = 0;
};

struct PageLayout {
  SidePart k;
  SidePart v;
  size_t bytes = 0;
};

PageLayout LayoutOf(const SideFormat& k, const SideFormat& v);

// The exact representation's format of a side: f32 and bf16 sides keep their elements, every other
// side is f16.
SideFormat ExactFormatOf(const SideFormat& side);

// Seals one side: x [128][dim] f32 in model space -> meta and codes at their places in `page`;
// sets the side's page scale and `first_token` in `descriptor` and adds to its clip count; with
// `pre` the descriptor's `first_position` must be set. Applies the format's steps first. Rows
// before `first` are ignored. Padding channels may decode to anything finite: readers of keys pad q
// with zeros, readers of values drop them. `scratch` holds SealScratchBytes(format) bytes, 64-byte
// aligned. REQUIRES: !format.exact, 0 <= first <= 128, x finite from row `first` on.
void SealSide(const SideFormat& format, const HeadTables& tables, const float* x, int first,
              const SidePart& part, uint8_t* page, PageDescriptor* descriptor, void* scratch);
size_t SealScratchBytes(const SideFormat& format);

// Reads one sealed side back as f32 [128][dim] in model space (steps undone): what a reader of the
// page would compute in exact arithmetic from the stored numbers, rounded to f32 at each step.
void UnsealSide(const SideFormat& format, const HeadTables& tables, const SidePart& part,
                const uint8_t* page, const PageDescriptor& descriptor, float* x);

// Splits a sealed side into what a kernel reads. Scales and offsets come out as f32 in the shape of
// CodedSide, the mean as [padded_dim]. Any output may be null.
void ReadMeta(const SideFormat& format, const SidePart& part, const uint8_t* page,
              const PageDescriptor& descriptor, float* scales, float* offsets, float* mean);

// Codes [128][padded_dim] <-> lines. `bits` is 2, 3, 4, 5, 6 or 8.
void PackCodes(SideKind kind, int padded_dim, int bits, const uint8_t* codes, uint8_t* lines);
void UnpackCodes(SideKind kind, int padded_dim, int bits, const uint8_t* lines, uint8_t* codes);

// The same for keys whose quads of channels have widths of their own, `widths` [padded_dim / 4].
void PackPlanes(int padded_dim, const uint8_t* widths, const uint8_t* codes, uint8_t* lines);
void UnpackPlanes(int padded_dim, const uint8_t* widths, const uint8_t* lines, uint8_t* codes);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_PAGE_H_
