// Model files from what a user writes after -m: a path, or a short name that scripts/fetch-models
// brings on first use.
// Thread-safety: one thread; may run a program that downloads.
#ifndef SHORTHAND_TOOLS_MODEL_PATH_H_
#define SHORTHAND_TOOLS_MODEL_PATH_H_

#include <string>

#include "shorthand/status.h"

namespace shorthand {

// Where models are kept: $SHORTHAND_MODELS, else ~/.cache/shorthand/models.
std::string ModelsFolder();

// The path of an existing file. A short name is looked for in $SHORTHAND_MODELS, else in
// ~/.cache/shorthand/models, and fetched if it is not there, with progress on stderr.
// Errors: kNotFound for what is neither; kFailedPrecondition if it cannot be fetched.
Result<std::string> ModelPath(const std::string& model);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_MODEL_PATH_H_
