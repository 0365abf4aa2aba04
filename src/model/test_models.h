// Models for tests: the tiny stories260K of the data folder, edited copies of it, and the models
// that scripts/fetch-models has brought.
// Thread-safety: pure functions; files go to the test's temporary folder.
#ifndef SHORTHAND_MODEL_TEST_MODELS_H_
#define SHORTHAND_MODEL_TEST_MODELS_H_

#include <gguf.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shorthand::testing {

// Empty where the file is absent.
std::string StoriesPath();
std::string DataPath(const std::string& name);
std::string FetchedModelPath(const std::string& name);

std::vector<uint8_t> ReadBytes(const std::string& path);
// A path in the temporary folder holding `bytes`; the same name is overwritten.
std::string WriteTemporary(const std::string& name, const std::vector<uint8_t>& bytes);

// stories260K with its metadata edited and without the tensor `dropped`.
std::string EditedStories(const std::string& name, const std::function<void(gguf_context*)>& edit,
                          const std::string& dropped = "");

// A tiny model of architecture `name` (llama, qwen2, qwen3 or gemma3) with random weights and the
// vocabulary of stories260K; `edit` adds metadata.
struct TinyModel {
  std::string architecture;
  int layers = 2;
  int head_dim = 16;
  int window = 0;
  bool rope_factors = false;
  std::function<void(gguf_context*)> edit = [](gguf_context*) {};
};
std::string WriteTinyModel(const std::string& name, const TinyModel& model);

}  // namespace shorthand::testing

#endif  // SHORTHAND_MODEL_TEST_MODELS_H_
