#include "model/test_models.h"

#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace shorthand::testing {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string IfPresent(const std::filesystem::path& path) {
  return std::filesystem::is_regular_file(path) ? path.string() : "";
}

}  // namespace

std::string DataPath(const std::string& name) {
  const std::string data = Environment("SHORTHAND_DATA");
  if (!data.empty()) return IfPresent(std::filesystem::path(data) / name);
  return IfPresent(std::filesystem::path(Environment("SHORTHAND_SOURCE_DIR")) / "../shared/data" /
                   name);
}

std::string StoriesPath() { return DataPath("models/stories260Ktok512.gguf"); }

std::string FetchedModelPath(const std::string& name) {
  const std::string folder = Environment("SHORTHAND_MODELS");
  const std::filesystem::path models =
      folder.empty() ? std::filesystem::path(Environment("HOME")) / ".cache/shorthand/models"
                     : std::filesystem::path(folder);
  return IfPresent(models / (name + ".gguf"));
}

std::vector<uint8_t> ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string WriteTemporary(const std::string& name, const std::vector<uint8_t>& bytes) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

std::string EditedStories(const std::string& name, const std::function<void(gguf_context*)>& edit,
                          const std::string& dropped) {
  ggml_context* tensors = nullptr;
  const gguf_context_ptr source(
      gguf_init_from_file(StoriesPath().c_str(), {.no_alloc = false, .ctx = &tensors}));
  const ggml_context_ptr tensors_owner(tensors);
  const gguf_context_ptr copy(gguf_init_empty());
  gguf_set_kv(copy.get(), source.get());
  edit(copy.get());
  for (int64_t i = 0; i < gguf_get_n_tensors(source.get()); ++i) {
    const char* tensor = gguf_get_tensor_name(source.get(), i);
    if (tensor != dropped) gguf_add_tensor(copy.get(), ggml_get_tensor(tensors, tensor));
  }
  const std::string path = ::testing::TempDir() + name;
  gguf_write_to_file(copy.get(), path.c_str(), false);
  return path;
}

}  // namespace shorthand::testing
