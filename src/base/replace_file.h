// ReplaceFile: a file's new content, whole or not at all.
// Thread-safety: one writer at a time for a path in a process; several processes may write.
#ifndef SHORTHAND_BASE_REPLACE_FILE_H_
#define SHORTHAND_BASE_REPLACE_FILE_H_

#include <string>
#include <string_view>

#include "shorthand/status.h"

namespace shorthand {

// Writes `text` beside `path` and moves it there; a link stays one. What is no regular file, as a
// terminal or a pipe, is written to as it is. Errors: kInternal, an old file being as it was.
Status ReplaceFile(const std::string& path, std::string_view text);

}  // namespace shorthand

#endif  // SHORTHAND_BASE_REPLACE_FILE_H_
