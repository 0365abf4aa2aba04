// Files that are a part of the program: cmake/ShorthandEmbed.cmake writes the tables.
// Thread-safety: immutable.
#ifndef SHORTHAND_TOOLS_EMBEDDED_H_
#define SHORTHAND_TOOLS_EMBEDDED_H_

#include <span>
#include <string_view>

namespace shorthand {

struct EmbeddedFile {
  std::string_view name;  // without a folder
  std::string_view bytes;
};

std::span<const EmbeddedFile> EmbeddedFiles_explore();  // tools/shorthand/explore

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EMBEDDED_H_
