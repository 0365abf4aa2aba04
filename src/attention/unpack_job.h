// UnpackJobOf: a sealed side as the unpacking kernels are told about it.
// Thread-safety: pure function.
#ifndef SHORTHAND_ATTENTION_UNPACK_JOB_H_
#define SHORTHAND_ATTENTION_UNPACK_JOB_H_

#include <cstdint>

#include "kernels/kernels.h"
#include "quant/format.h"
#include "quant/head_tables.h"

namespace shorthand {

// All tokens of a page. `scales` and `offsets` as ReadMeta gives them (quant/page.h); offsets are
// null where the format has none.
UnpackJob UnpackJobOf(const SideFormat& format, const HeadTables& tables, const uint8_t* lines,
                      const float* scales, const float* offsets);

}  // namespace shorthand

#endif  // SHORTHAND_ATTENTION_UNPACK_JOB_H_
