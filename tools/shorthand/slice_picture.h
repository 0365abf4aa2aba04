// Pictures of a slice of one head: its numbers, what codes make of them, which share a scale.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_SLICE_PICTURE_H_
#define SHORTHAND_TOOLS_SLICE_PICTURE_H_

#include <string>

#include "model_slice.h"

namespace shorthand {

// The numbers, then the error of every code beside its size; the group of the largest number is
// framed.
std::string SlicePicture(const std::string& model, const ModelSlice& slice);

// For every code: the numbers by the scale that they share, and what one scale more or less costs.
std::string GroupingPicture(const std::string& model, const ModelSlice& slice);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_SLICE_PICTURE_H_
