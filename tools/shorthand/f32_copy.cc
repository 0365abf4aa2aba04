#include "f32_copy.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/checksum.h"
#include "eval/llama_peer.h"
#include "model/gguf_file.h"
#include "model_path.h"
#include "plan/units.h"

namespace shorthand {
namespace {

namespace fs = std::filesystem;

Result<uint64_t> F32Bytes(const std::string& model_path) {
  const auto file = GgufFile::Open(model_path);
  if (!file.ok()) return file.status();
  uint64_t bytes = 0;
  for (const TensorInfo& tensor : (*file)->tensors()) {
    bytes += static_cast<uint64_t>(tensor.elements()) * sizeof(float);
  }
  return bytes;
}

}  // namespace

Result<std::string> F32CopyOf(const std::string& model_path, int threads) {
  const auto fingerprint = FileHash(model_path);
  if (!fingerprint.ok()) return fingerprint.status();
  const fs::path folder = fs::path(ModelsFolder()) / "f32";
  const fs::path path =
      folder / fmt::format("{}-{}.gguf", fs::path(model_path).stem().string(), *fingerprint);
  std::error_code error;
  if (fs::is_regular_file(path, error)) return path.string();

  const auto bytes = F32Bytes(model_path);
  if (!bytes.ok()) return bytes.status();
  fs::create_directories(folder, error);
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < *bytes) {
    return ResourceExhausted(
        fmt::format("llama.cpp needs an f32 copy of the model, {}, but {} has {} left; make room, "
                    "set SHORTHAND_MODELS to another folder, or use --weights native",
                    FormatSize(*bytes), folder.string(), FormatSize(space.available)));
  }
  fmt::print(stderr, "shorthand: writing an f32 copy of the model for llama.cpp, {}, to {}\n",
             FormatSize(*bytes), path.string());
  if (Status status = WriteF32Copy(model_path, path.string(), threads); !status.ok()) return status;
  return path.string();
}

}  // namespace shorthand
