// Prompt processing and generation at an empty cache, ours and llama.cpp's in alternating runs.
//
//   model_speed MODEL.gguf [THREADS [ROUNDS [RECIPE]]]
//
// Both read the same file, use as many threads and compute logits for the last token of a prompt
// alone. A round is one prompt of 512 tokens and 64 tokens after it was forgotten, for each engine
// in turn; medians over the rounds are printed, with the quartiles, and their ratio, which has a
// bar. Exit code: 0 it was met by both, 1 it was missed, 2 usage, or nothing could be measured.
#include <fmt/format.h>
#include <llama-cpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bar.h"
#include "model/generate.h"

namespace shorthand {
namespace {

constexpr int kPromptTokens = 512;
constexpr int kGeneratedTokens = 64;
constexpr double kRatioMark = 0.95;

double Seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

[[noreturn]] void Die(const std::string& message) {
  fmt::print(stderr, "model_speed: {}\n", message);
  std::exit(2);
}

// The same tokens for both: speed does not depend on them.
std::vector<Token> AnyTokens(int count, int vocabulary) {
  std::vector<Token> tokens(count);
  for (int i = 0; i < count; ++i) tokens[i] = (i * 7919 + 1000) % vocabulary;
  return tokens;
}

class Ours {
 public:
  Ours(const std::string& path, int threads, const std::string& recipe_text) {
    auto model = Model::Load(path, {.threads = threads});
    if (!model.ok()) Die(model.status().message());
    model_ = std::move(*model);
    const auto recipe = Recipe::Parse(recipe_text);
    if (!recipe.ok()) Die(recipe.status().message());
    auto session = Session::Open(*model_, *recipe);
    if (!session.ok()) Die(session.status().message());
    session_ = std::move(*session);
  }
  int vocabulary() const { return model_->vocab().size(); }
  void Feed(std::span<const Token> tokens) {
    if (const auto logits = session_->Feed(tokens); !logits.ok()) Die(logits.status().message());
  }
  void Clear() {
    if (const Status status = session_->Clear(); !status.ok()) Die(status.message());
  }

 private:
  std::unique_ptr<Model> model_;
  std::unique_ptr<Session> session_;
};

class Llama {
 public:
  Llama(const std::string& path, int threads)
      : model_(llama_model_load_from_file(path.c_str(), llama_model_default_params())) {
    if (model_ == nullptr) Die("llama.cpp cannot load the model");
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 1024;
    params.n_batch = params.n_ubatch = kPromptTokens;
    params.n_threads = params.n_threads_batch = threads;
    context_.reset(llama_init_from_model(model_.get(), params));
    if (context_ == nullptr) Die("llama.cpp cannot make a context");
  }
  void Feed(std::span<const Token> tokens) {
    std::vector<Token> copy(tokens.begin(), tokens.end());
    if (llama_decode(context_.get(),
                     llama_batch_get_one(copy.data(), static_cast<int32_t>(copy.size()))) != 0) {
      Die("llama.cpp cannot decode");
    }
    llama_synchronize(context_.get());
  }
  void Clear() { llama_memory_clear(llama_get_memory(context_.get()), true); }

 private:
  llama_model_ptr model_;
  llama_context_ptr context_;
};

struct Times {
  std::vector<double> prompt;    // tokens/s
  std::vector<double> generate;  // tokens/s
};

template <typename Engine>
void Round(Engine& engine, std::span<const Token> prompt, Times* times) {
  engine.Clear();
  times->prompt.push_back(kPromptTokens / Seconds([&] { engine.Feed(prompt); }));
  engine.Clear();
  engine.Feed(prompt.first(1));
  times->generate.push_back(kGeneratedTokens / Seconds([&] {
                              for (int i = 1; i <= kGeneratedTokens; ++i) {
                                engine.Feed(prompt.subspan(i, 1));
                              }
                            }));
}

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

void Print(const char* what, const std::vector<double>& ours, const std::vector<double>& theirs,
           BarReport& report) {
  const auto text = [](const std::vector<double>& v) {
    return fmt::format("{:.1f} ({:.1f} to {:.1f})", Quantile(v, 0.5), Quantile(v, 0.25),
                       Quantile(v, 0.75));
  };
  const double ratio = Quantile(ours, 0.5) / Quantile(theirs, 0.5);
  report.Print(
      what, fmt::format("ours {}, llama.cpp's {}, ratio {:.3f}", text(ours), text(theirs), ratio),
      fmt::format("at least {}", kRatioMark), AtLeast(ratio, kRatioMark));
}

int Main(int argc, char** argv) {
  if (argc < 2) Die("usage: model_speed MODEL.gguf [THREADS [ROUNDS [RECIPE]]]");
  const std::string path = argv[1];
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 7;
  const std::string recipe = argc > 4 ? argv[4] : "f16";
  if (threads < 1 || rounds < 1) Die("threads and rounds are positive numbers");
  Ours ours(path, threads, recipe);
  Llama llama(path, threads);
  const std::vector<Token> prompt = AnyTokens(kPromptTokens, ours.vocabulary());
  Times warm_up, our_times, llama_times;
  Round(ours, prompt, &warm_up);
  Round(llama, prompt, &warm_up);
  for (int i = 0; i < rounds; ++i) {
    Round(ours, prompt, &our_times);
    Round(llama, prompt, &llama_times);
  }
  fmt::print("{}, {} threads, recipe {}, tokens/s: median (quartiles) of {}\n", path, threads,
             recipe, rounds);
  BarReport report;
  Print("prompt", our_times.prompt, llama_times.prompt, report);
  Print("generate", our_times.generate, llama_times.generate, report);
  return report.exit_code();
}

}  // namespace
}  // namespace shorthand

int main(int argc, char** argv) { return shorthand::Main(argc, argv); }
