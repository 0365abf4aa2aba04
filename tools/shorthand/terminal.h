// Terminal: colour where it is wanted, aligned tables, JSON.
// Thread-safety: pure functions, but for printing.
#ifndef SHORTHAND_TOOLS_TERMINAL_H_
#define SHORTHAND_TOOLS_TERMINAL_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace shorthand {

enum class Style { kPlain, kStrong, kGood, kBad };

// `text` in that style if stdout is a terminal and NO_COLOR is not set, else as it is.
std::string Styled(Style style, const std::string& text);

struct Cell {
  std::string text;
  Style style = Style::kPlain;
};

// Columns as wide as their widest cell, two spaces apart. The first column and those named
// `left` are flush left, all others flush right.
class Table {
 public:
  enum class Align { kLeft, kRight };
  void AddColumn(std::string title, Align align);
  // REQUIRES: no more cells than columns.
  void AddRow(std::vector<Cell> cells);
  std::string ToString() const;
  // The same for documents: Markdown, without styles.
  std::string ToMarkdown() const;

 private:
  struct Column {
    std::string title;
    Align align;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// To stdout, indented. Text that is not UTF-8 is repaired with replacement characters.
void PrintJson(const nlohmann::ordered_json& json);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_TERMINAL_H_
