// A model's shape from what a user writes: a file or a name.
// Thread-safety: reads files; otherwise pure functions.
#ifndef SHORTHAND_TOOLS_MODEL_SHAPE_H_
#define SHORTHAND_TOOLS_MODEL_SHAPE_H_

#include <string>

#include "shorthand/plan.h"
#include "shorthand/status.h"

namespace shorthand {

// A path of a config.json, of a folder that holds one, or of a GGUF file; else a name that
// ShapeFromName knows.
// Errors: kNotFound with what would work; those of ShapeFromConfig and ShapeFromGgufFile.
Result<ModelShape> ShapeFromArgument(const std::string& text);

// The shape and the bytes of all tensors of a GGUF file.
// Errors: kUnimplemented if this build reads none.
Result<ModelShape> ShapeFromGgufFile(const std::string& path);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_MODEL_SHAPE_H_
