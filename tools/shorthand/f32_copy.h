// Copies of models with every weight in f32, for llama.cpp: kept beside the models that are
// fetched, because making one takes a while. Thread-safety: one thread; writes a file, and says so
// on stderr.
#ifndef SHORTHAND_TOOLS_F32_COPY_H_
#define SHORTHAND_TOOLS_F32_COPY_H_

#include <string>

#include "shorthand/status.h"

namespace shorthand {

// The path of the f32 copy of the model at `model_path`, which is made unless there is one of the
// same bytes. Errors: those of GgufFile::Open; kResourceExhausted if the disk has no room for it,
// with the size; those of WriteF32Copy.
Result<std::string> F32CopyOf(const std::string& model_path, int threads);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_F32_COPY_H_
