#include "model_shape.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace shorthand {
namespace {

constexpr size_t kMaxConfigBytes = 8 << 20;

// At most one byte more than a config may have.
Result<std::string> ReadStart(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxConfigBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof()) {
    return NotFound(fmt::format("{} cannot be read", path.string()));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// "config.json" says little: the folder's name stands in front of it.
std::string NameOf(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  return stem == "config" && !folder.empty() && folder != "." && folder != ".." ? folder : stem;
}

Result<ModelShape> ShapeFromFile(const std::filesystem::path& path) {
  const auto text = ReadStart(path);
  if (!text.ok()) return text.status();
  if (text->starts_with("GGUF")) return ShapeFromGgufFile(path.string());
  if (text->size() > kMaxConfigBytes) {
    return InvalidArgument(fmt::format(
        "{} is neither a GGUF file nor a config.json, which would be smaller than 8 MiB",
        path.string()));
  }
  return ShapeFromConfig(*text, NameOf(path));
}

bool LooksLikePath(const std::string& text) {
  return text.ends_with(".json") || text.ends_with(".gguf") || text.starts_with('/') ||
         text.starts_with("./") || text.starts_with("../");
}

}  // namespace

Result<ModelShape> ShapeFromArgument(const std::string& text) {
  const std::filesystem::path path(text);
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return ShapeFromFile(path);
  if (std::filesystem::is_directory(path, error)) {
    if (std::filesystem::is_regular_file(path / "config.json", error)) {
      return ShapeFromFile(path / "config.json");
    }
    return NotFound(fmt::format("the folder {} holds no config.json", text));
  }
  if (LooksLikePath(text)) {
    return NotFound(fmt::format(
        "there is no file {}; give a config.json, a GGUF file or a name such as Llama-3-8B", text));
  }
  return ShapeFromName(text);
}

}  // namespace shorthand
