#include "attention/unpack_job.h"

namespace shorthand {

UnpackJob UnpackJobOf(const SideFormat& format, const HeadTables& tables, const uint8_t* lines,
                      const float* scales, const float* offsets) {
  const int axis = format.axis == Axis::kToken ? 0 : format.axis == Axis::kChannel ? 1 : 2;
  UnpackJob job{lines,
                LevelsOf(format, tables),
                scales,
                offsets,
                format.padded_dim,
                format.bits,
                format.group,
                axis};
  if (format.code == Code::kE4m3) job.minifloat = Minifloat::kE4m3;
  if (format.code == Code::kE5m2) job.minifloat = Minifloat::kE5m2;
  return job;
}

}  // namespace shorthand
