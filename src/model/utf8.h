// UTF-8 checks for text that comes from users and model files.
// Thread-safety: pure functions.
#ifndef SHORTHAND_MODEL_UTF8_H_
#define SHORTHAND_MODEL_UTF8_H_

#include <cstddef>
#include <optional>
#include <string_view>

namespace shorthand {

// The byte where `text` stops being UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing past
// U+10FFFF); nothing if all of it is.
std::optional<size_t> FirstInvalidUtf8(std::string_view text);

// The length of the longest prefix of `text` that does not end within a character. Text that is
// produced in pieces is shown up to here.
size_t WholeCharacters(std::string_view text);

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_UTF8_H_
