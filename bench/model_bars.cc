// The promises that are kept on a real model, each as a bar that is met or missed.
//
//   model_bars MODEL.gguf --text FILE [--context 2048] [--windows 8] [--threads 2] [--only PART]
//
// Parts: memory, errors (attention on captured data against double precision), agreement
// (perplexity and likeliest tokens against llama.cpp's) and views (independence of chunks).
// --context and --windows are those of agreement. Exit code: 0 every bar was met, 1 one was missed,
// 2 usage, or something could not be measured.
#include "model_bars.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "eval/llama_peer.h"

namespace shorthand {
namespace {

constexpr int64_t kMemoryTextTokens = 8192;
constexpr int64_t kMemoryChunks = 16;  // of 512 tokens, where the model was made for 8192
constexpr int64_t kSingleTokens = 2048;
constexpr int64_t kViewTextTokens = 1024;

constexpr const char* kUsage =
    "usage: model_bars MODEL.gguf --text FILE [--context TOKENS] [--windows N] [--threads N] "
    "[--only memory|errors|agreement|views]";

struct Options {
  std::string model;
  std::string text;
  int context = 2048;
  int windows = 8;
  int threads = 2;
  std::string only;  // empty: all parts

  bool Wants(std::string_view part) const { return only.empty() || only == part; }
};

Result<int> PositiveNumber(std::string_view name, std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    return InvalidArgument(fmt::format("{} {}; a positive number is accepted", name, text));
  }
  return value;
}

Result<Options> ParseOptions(std::span<const std::string_view> arguments) {
  Options options;
  const std::map<std::string_view, std::string*> texts = {{"--text", &options.text},
                                                          {"--only", &options.only}};
  const std::map<std::string_view, int*> numbers = {{"--context", &options.context},
                                                    {"--windows", &options.windows},
                                                    {"--threads", &options.threads}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (!name.starts_with("--") && options.model.empty()) {
      options.model = name;
      continue;
    }
    if (i + 1 == arguments.size()) return InvalidArgument(kUsage);
    const std::string_view value = arguments[++i];
    if (const auto text = texts.find(name); text != texts.end()) {
      *text->second = value;
    } else if (const auto number = numbers.find(name); number != numbers.end()) {
      const Result<int> parsed = PositiveNumber(name, value);
      if (!parsed.ok()) return parsed.status();
      *number->second = *parsed;
    } else {
      return InvalidArgument(kUsage);
    }
  }
  const bool known_part = options.Wants("memory") || options.Wants("errors") ||
                          options.Wants("agreement") || options.Wants("views");
  if (options.model.empty() || options.text.empty() || !known_part) return InvalidArgument(kUsage);
  return options;
}

Result<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(fmt::format("there is no text {}", path));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A name in the temporary folder; the file is removed with the object.
class TemporaryFile {
 public:
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / fmt::format("shorthand-f32-{}.gguf", getpid());
};

// As long as wanted, or as the model was made for.
int64_t AtMostContext(const Model& model, int64_t tokens) {
  return std::min(tokens, model.shape().max_context_tokens);
}

// The model as it is stored. The first of all, so that no memory that something else has given back
// can hide growth.
Status MeasureMemory(const Options& options, std::string_view text, BarReport& report) {
  const auto model = Model::Load(options.model, {.threads = options.threads});
  if (!model.ok()) return model.status();
  const int64_t tokens = AtMostContext(**model, kMemoryTextTokens);
  const auto chunk =
      CutWindows((*model)->vocab(), text, std::max(kMinWindowTokens, tokens / kMemoryChunks), 1);
  if (!chunk.ok()) return chunk.status();
  Status status = MeasureResidentMemory(**model, chunk->front(), tokens, report);
  if (!status.ok()) return status;
  return MeasureAllocation((*model)->shape(), kSingleTokens, report);
}

// The model as it is stored: what is judged is attention, whatever it is given.
Status MeasureErrors(const Options& options, std::string_view text, BarReport& report) {
  const auto model = Model::Load(options.model, {.threads = options.threads});
  if (!model.ok()) return model.status();
  const int64_t most = (*model)->shape().max_context_tokens;
  if (most < kErrorTextTokens) {
    return OutOfRange(fmt::format("errors are measured on {} tokens; this model was made for {}",
                                  kErrorTextTokens, most));
  }
  const auto windows = CutWindows((*model)->vocab(), text, kErrorTextTokens, 1);
  if (!windows.ok()) return windows.status();
  return MeasureErrors(**model, windows->front(), report);
}

Status CompareWithLlama(const Options& options, Model& model, const std::string& f32_path,
                        std::string_view text, BarReport& report) {
  const int64_t most = model.shape().max_context_tokens;
  if (options.context > most) {
    return OutOfRange(fmt::format("a context of {} tokens; this model was made for 1 to {}",
                                  options.context, most));
  }
  const auto windows = CutWindows(model.vocab(), text, options.context, options.windows);
  if (!windows.ok()) return windows.status();
  return MeasureAgreement(model, f32_path, *windows, report);
}

// On the f32 copy: products of quantized weights round activations to 8 bits, which turns any
// difference in the order of sums into noise.
Status MeasureOutputs(const Options& options, std::string_view text, BarReport& report) {
  const TemporaryFile copy;
  Status written = WriteF32Copy(options.model, copy.path(), options.threads);
  if (!written.ok()) return written;
  const auto model =
      Model::Load(copy.path(), {.precision = Precision::kF32, .threads = options.threads});
  if (!model.ok()) return model.status();
  if (options.Wants("agreement")) {
    Status status = CompareWithLlama(options, **model, copy.path(), text, report);
    if (!status.ok()) return status;
  }
  if (!options.Wants("views")) return OkStatus();
  const auto view_text =
      CutWindows((*model)->vocab(), text, AtMostContext(**model, kViewTextTokens), 1);
  if (!view_text.ok()) return view_text.status();
  return MeasureViews(**model, view_text->front(), report);
}

int Main(std::span<const std::string_view> arguments) {
  BarReport report;
  const auto run = [&]() -> Status {
    const Result<Options> options = ParseOptions(arguments);
    if (!options.ok()) return options.status();
    const Result<std::string> text = ReadText(options->text);
    if (!text.ok()) return text.status();
    if (options->Wants("memory")) {
      if (Status status = MeasureMemory(*options, *text, report); !status.ok()) return status;
    }
    if (options->Wants("errors")) {
      if (Status status = MeasureErrors(*options, *text, report); !status.ok()) return status;
    }
    if (!options->Wants("agreement") && !options->Wants("views")) return OkStatus();
    return MeasureOutputs(*options, *text, report);
  };
  if (const Status status = run(); !status.ok()) {
    fmt::print(stderr, "model_bars: {}\n", status.message());
    return 2;
  }
  return report.exit_code();
}

}  // namespace
}  // namespace shorthand

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  return shorthand::Main(arguments);
}
