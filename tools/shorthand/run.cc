// `shorthand run`: text from a model over a quantized cache, once or as a chat.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "model/generate.h"
#include "model_calibration.h"
#include "model_path.h"
#include "plan/units.h"
#include "run_chat.h"
#include "run_report.h"
#include "terminal.h"

namespace shorthand {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  shorthand run -m smollm2\n"
    "      a chat; /exit or Ctrl-D ends it\n"
    "  shorthand run -m smollm2 --kv 4bit -p \"The capital of France is\" -n 32 --temp 0\n"
    "      goes on with a text over a 4-bit cache\n"
    "  shorthand run -m qwen --kv-budget 64MiB -c 16k -f book.txt\n"
    "      the best cache of 16k tokens in 64 MiB\n"
    "  shorthand run -m qwen --chat -p \"Write a quicksort in C\" -c 8k\n"
    "      one question, asked as a chat\n"
    "\n"
    "MODEL is a GGUF file, or smollm2, qwen, gemma or qwen15, which are fetched on first use.\n"
    "`shorthand inspect recipe R` says what a recipe stores.";

constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();

struct Options {
  std::string model;
  std::string prompt;
  std::string prompt_file;
  std::string recipe = "8bit";
  std::string cache_memory;  // instead of a recipe
  std::string calibration_file;
  std::string context;
  int64_t max_tokens = 256;
  int threads = 0;
  int64_t seed = -1;
  SamplingOptions sampling;
  bool chat = false;
  bool interactive = false;
  bool json = false;
  bool verbose = false;
  CLI::Option* prompt_option = nullptr;
  CLI::Option* file_option = nullptr;

  bool has_prompt() const { return prompt_option->count() > 0 || file_option->count() > 0; }
};

struct Engine {
  std::unique_ptr<Model> model;
  std::unique_ptr<Session> session;
  std::unique_ptr<Sampler> sampler;
};

Result<std::string> PromptText(const Options& options) {
  std::string text = options.prompt;
  if (options.file_option->count() > 0) {
    std::ifstream file(options.prompt_file, std::ios::binary);
    std::error_code error;
    if (!file || !std::filesystem::is_regular_file(options.prompt_file, error)) {
      return NotFound(
          fmt::format("there is no file {} to read the prompt from", options.prompt_file));
    }
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  if (text.empty()) return InvalidArgument("the prompt is empty; give it some text");
  return text;
}

Result<RecipeRequest> RequestOf(const Options& options) {
  if (options.cache_memory.empty()) return ParseRecipeRequest(options.recipe);
  const auto bytes = ParseSize(options.cache_memory);
  if (!bytes.ok()) return bytes.status();
  return RecipeRequest(MemoryBudget{.bytes = *bytes});
}

// Errors of the command line come first: they cost no time.
Result<Engine> Start(const Options& options, RecipeRequest request, const std::string& path) {
  Engine engine;
  auto sampler = Sampler::Create(options.sampling);
  if (!sampler.ok()) return sampler.status();
  auto model =
      Model::Load(path, {.precision = Precision::kNative,
                         .threads = options.threads,
                         .log = options.verbose ? BackendLog::kStderr : BackendLog::kSilent});
  if (!model.ok()) return model.status();
  SessionOptions session_options;
  if (!options.context.empty()) {
    const auto tokens = ParseTokens(options.context, kMaxTokens);
    if (!tokens.ok()) return tokens.status();
    session_options.context_tokens = *tokens;
  }
  if (auto* budget = std::get_if<MemoryBudget>(&request)) {
    budget->tokens = session_options.context_tokens > 0 ? session_options.context_tokens
                                                        : (*model)->shape().max_context_tokens;
  }
  auto resolved = RecipesFor(**model, path, {&request, 1}, options.calibration_file);
  if (!resolved.ok()) return resolved.status();
  session_options.cache.calibration = resolved->calibration_or_null();
  auto session = Session::Open(**model, resolved->recipes.front(), session_options);
  if (!session.ok()) return session.status();
  engine.model = std::move(*model);
  engine.session = std::move(*session);
  engine.sampler = std::move(*sampler);
  return engine;
}

Result<std::vector<Token>> PromptTokens(const Options& options, const Vocab& vocab,
                                        const std::string& text) {
  if (!options.chat) return vocab.Tokenize(text, Place::kBegin, Markup::kIgnore);
  const ChatMessage message = {"user", text};
  const auto formatted = vocab.FormatChat({&message, 1}, ChatEnd::kAssistantTurn);
  if (!formatted.ok()) return formatted.status();
  return vocab.Tokenize(*formatted, Place::kBegin, Markup::kParse);
}

int RunOnce(const Options& options, Engine& engine, const std::string& text) {
  const auto prompt = PromptTokens(options, engine.model->vocab(), text);
  if (!prompt.ok()) return FailUsage(prompt.status());
  GenerateOptions generate = {.max_tokens = options.max_tokens};
  if (!options.json) {
    generate.on_text = [](std::string_view piece) {
      fmt::print("{}", piece);
      return std::fflush(stdout) == 0;
    };
  }
  const auto generation = Generate(*engine.session, *engine.sampler, *prompt, generate);
  if (!generation.ok()) return Fail(generation.status());
  if (options.json) {
    PrintJson(RunJson(*generation, engine.session->cache()));
  } else {
    fmt::print("\n");
    std::fflush(stdout);
    PrintRunReport(*generation, engine.session->cache());
  }
  return kExitDone;
}

int Run(Options& options) {
  const bool chat = options.interactive || (!options.has_prompt() && isatty(STDIN_FILENO) == 1);
  if (!chat && !options.has_prompt()) {
    return FailUsage(InvalidArgument("there is no prompt; give -p TEXT, -f FILE, or -i to chat"));
  }
  if (chat && options.json) {
    return FailUsage(InvalidArgument("--json goes with a prompt (-p or -f), not with a chat"));
  }
  std::string text;
  if (options.has_prompt()) {
    auto prompt = PromptText(options);
    if (!prompt.ok()) return FailUsage(prompt.status());
    text = std::move(*prompt);
  }
  const auto request = RequestOf(options);
  if (!request.ok()) return FailUsage(request.status());
  if (options.seed >= 0) options.sampling.seed = static_cast<uint32_t>(options.seed);
  const auto path = ModelPath(options.model);
  if (!path.ok()) return Fail(path.status());
  auto engine = Start(options, *request, *path);
  if (!engine.ok()) return Fail(engine.status());
  if (!chat) return RunOnce(options, *engine, text);
  return RunChat(*engine->session, *engine->sampler,
                 {.max_tokens = options.max_tokens, .first_message = text});
}

void AddSampling(CLI::App& app, Options& options) {
  SamplingOptions& sampling = options.sampling;
  app.add_option("--temp", sampling.temperature, "Temperature, 0: the likeliest token; default 0.8")
      ->type_name("X");
  app.add_option("--top-k", sampling.top_k, "Draw from the K likeliest, 0: all; default 40")
      ->type_name("K");
  app.add_option("--top-p", sampling.top_p, "Draw from this share of probability; default 0.95")
      ->type_name("P");
  app.add_option("--min-p", sampling.min_p,
                 "Draw from those at least this likely beside the likeliest; default 0.05")
      ->type_name("P");
  app.add_option("--seed", options.seed, "Makes draws repeat; default: another one each time")
      ->type_name("N")
      ->check(CLI::Range(int64_t{-1}, int64_t{0xfffffffe}).description(""));
}

}  // namespace

Runner DeclareRun(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.footer(kExamples);
  AddModelOption(app, options->model);
  options->prompt_option =
      app.add_option("-p,--prompt", options->prompt, "The text to go on with")->type_name("TEXT");
  options->file_option = app.add_option("-f,--file", options->prompt_file, "The same from a file")
                             ->type_name("FILE")
                             ->excludes(options->prompt_option);
  app.add_option("-n,--predict", options->max_tokens,
                 "Tokens to generate at most, 0: to the context's end; default 256")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, kMaxTokens).description(""));
  auto* recipe = app.add_option("--kv", options->recipe,
                                "The recipe of the cache; auto, auto:BITS: chosen for the model, "
                                "layer by layer; default 8bit")
                     ->type_name("R");
  app.add_option(
         "--kv-budget", options->cache_memory,
         "The best recipe whose cache fits into a memory, e.g. 500MiB, at the whole context")
      ->type_name("SIZE")
      ->excludes(recipe);
  AddCalibrationOption(app, options->calibration_file);
  app.add_option("-c,--context", options->context,
                 "Tokens that the context holds; default: what the model was made for")
      ->type_name("N");
  AddThreadsOption(app, options->threads);
  AddSampling(app, *options);
  app.add_flag("--chat", options->chat, "Put the prompt to the model as a user's message");
  app.add_flag("-i,--interactive", options->interactive,
               "Chat; the default without a prompt, at a terminal");
  app.add_flag("--json", options->json, "The text and the figures for programs");
  app.add_flag("-v,--verbose", options->verbose, "Also what ggml and llama.cpp log");
  return [options] { return Run(*options); };
}

}  // namespace shorthand
