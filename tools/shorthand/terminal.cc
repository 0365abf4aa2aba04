#include "terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

namespace shorthand {
namespace {

bool UseColor() {
  static const bool use = [] {
    const char* no_color = std::getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  }();
  return use;
}

const char* EscapeOf(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kStrong:
      return "\033[1m";
    case Style::kGood:
      return "\033[32m";
    case Style::kBad:
      return "\033[31m";
  }
  return "";
}

}  // namespace

std::string Styled(Style style, const std::string& text) {
  if (style == Style::kPlain || text.empty() || !UseColor()) return text;
  return fmt::format("{}{}\033[0m", EscapeOf(style), text);
}

void Table::AddColumn(std::string title, Align align) {
  columns_.push_back({std::move(title), align});
}

void Table::AddRow(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

std::string Table::ToString() const {
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.push_back({column.title, Style::kStrong});
  std::vector<size_t> widths(columns_.size());
  auto widen = [&](const std::vector<Cell>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].text.size());
  };
  widen(titles);
  for (const auto& row : rows_) widen(row);

  std::string out;
  auto append = [&](const std::vector<Cell>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - cells[i].text.size(), ' ');
      const std::string text = Styled(cells[i].style, cells[i].text);
      if (i > 0) line += "  ";
      line += columns_[i].align == Align::kLeft ? text + padding : padding + text;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  append(titles);
  for (const auto& row : rows_) append(row);
  return out;
}

std::string Table::ToMarkdown() const {
  std::string titles = "|", rule = "|", out;
  for (const Column& column : columns_) {
    titles += " " + column.title + " |";
    rule += column.align == Align::kLeft ? "---|" : "---:|";
  }
  for (const std::vector<Cell>& row : rows_) {
    out += "|";
    for (const Cell& cell : row) out += " " + cell.text + " |";
    out += "\n";
  }
  return titles + "\n" + rule + "\n" + out;
}

void PrintJson(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace shorthand
