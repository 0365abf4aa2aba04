// Files that a command writes its result to, beside what it prints.
// Thread-safety: one thread; writes files.
#ifndef SHORTHAND_TOOLS_RESULT_FILES_H_
#define SHORTHAND_TOOLS_RESULT_FILES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "shorthand/status.h"

namespace shorthand {

// A line of titles, then one for each row; null is an empty field.
// REQUIRES: `rows` is an array of objects with the same fields in the same order.
std::string CsvOf(const nlohmann::ordered_json& rows);

// Whether a result could be written to `path` later: what is known before minutes of measuring.
// An empty path is none. Errors: kInvalidArgument.
Status CheckWritable(const std::string& path);
// Writes `text` to `path`; nothing if that is empty. Errors: kInternal.
Status WriteText(const std::string& path, const std::string& text);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_RESULT_FILES_H_
