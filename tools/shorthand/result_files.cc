#include "result_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/replace_file.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string Field(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? Quoted(value.get<std::string>()) : value.dump();
}

}  // namespace

std::string CsvOf(const Json& rows) {
  std::string text;
  for (const Json& row : rows) {
    std::string titles, values;
    for (const auto& [title, value] : row.items()) {
      const char* comma = titles.empty() ? "" : ",";
      titles += comma + title;
      values += comma + Field(value);
    }
    if (text.empty()) text = titles + "\n";
    text += values + "\n";
  }
  return text;
}

Status CheckWritable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::absolute(path, error).parent_path();
  if (!path.empty() && (!fs::is_directory(folder, error) || fs::is_directory(path, error))) {
    return InvalidArgument(fmt::format("the file {} cannot be written", path));
  }
  return OkStatus();
}

Status WriteText(const std::string& path, const std::string& text) {
  if (path.empty()) return OkStatus();
  return ReplaceFile(path, text);
}

}  // namespace shorthand
