#include "eval_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace shorthand {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// docs/*.md by name, then README.md, whose figures are made with the others; those that there are.
std::vector<fs::path> Documents(const fs::path& root) {
  std::vector<fs::path> documents;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "docs", error)) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  }
  std::sort(documents.begin(), documents.end());
  if (fs::is_regular_file(root / "README.md", error)) {
    documents.push_back(root / "README.md");
  }
  return documents;
}

}  // namespace

Result<EvalText> ReadEvalText(const std::string& path) {
  std::error_code error;
  if (!path.empty()) {
    if (!fs::is_regular_file(path, error) || !std::ifstream(path)) {
      return NotFound(fmt::format("there is no file {} to read the text from", path));
    }
    return EvalText{.name = path, .text = ReadFile(path)};
  }
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = command.parent_path().parent_path() / SHORTHAND_INSTALLED_DOCS;
  for (const fs::path& root : {installed, fs::path(SHORTHAND_SOURCE_TREE)}) {
    std::string text;
    for (const fs::path& document : Documents(root)) text += ReadFile(document);
    if (!text.empty()) return EvalText{.name = "the project's documents", .text = std::move(text)};
  }
  return NotFound("the project's documents are not where they were installed; give -f TEXT");
}

Result<std::vector<EvalText>> ReadEvalTexts(const std::vector<std::string>& paths) {
  std::vector<EvalText> texts;
  for (const std::string& path : paths.empty() ? std::vector<std::string>{""} : paths) {
    auto text = ReadEvalText(path);
    if (!text.ok()) return text.status();
    texts.push_back(*std::move(text));
  }
  return texts;
}

}  // namespace shorthand
