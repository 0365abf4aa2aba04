// RecipeScanner: the bytes of a recipe, read front to back with one byte of lookahead, and the one
// place where errors are worded with their position.
//
// The first failure sticks and every reader returns false from then on up the call chain, so that
// the parser needs no error handling of its own. Letters are read as lower case; positions are
// 0-based bytes of the text as given.
// Thread-safety: one thread.
#ifndef SHORTHAND_QUANT_RECIPE_SCANNER_H_
#define SHORTHAND_QUANT_RECIPE_SCANNER_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "shorthand/recipe.h"
#include "shorthand/status.h"

namespace shorthand {

// Longest text that is read, and longest canonical text of what is read.
inline constexpr size_t kMaxRecipeBytes = 4096;

class RecipeScanner {
 public:
  // REQUIRES: `text` outlives the scanner.
  explicit RecipeScanner(std::string_view text);

  // False if the text is too long or holds a byte that no recipe has.
  bool CheckBytes();

  size_t position() const { return position_; }
  bool AtEnd() const { return position_ == text_.size(); }
  // The byte at the position; 0 at the end.
  char Peek() const { return AtEnd() ? '\0' : text_[position_]; }

  // Steps over `literal` if the text goes on with it.
  bool Accept(std::string_view literal);
  // The longest run of letters, digits, '_' and '.'; of digits. May be empty.
  std::string_view Word();
  std::string_view Digits();

  // A number that was read at `position`, at most 9 digits before and 6 behind the point.
  bool ToInteger(std::string_view digits, size_t position, int* value);
  bool ToDecimal(std::string_view digits, size_t position, Decimal* value);

  // Records the failure unless there is one, and returns false.
  bool Fail(size_t position, std::string_view sentence);
  const Status& status() const { return status_; }

 private:
  template <typename Predicate>
  std::string_view Run(Predicate predicate);

  std::string_view given_;
  std::string text_;  // in lower case
  size_t position_ = 0;
  Status status_;
};

// `word` in quotes for an error, shortened if it is long.
std::string Quoted(std::string_view word);

}  // namespace shorthand

#endif  // SHORTHAND_QUANT_RECIPE_SCANNER_H_
