// `shorthand explore`: a local page that shows what quantizing a cache does.
#include <fmt/format.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "command.h"
#include "explore_server.h"
#include "slice_options.h"

extern char** environ;

namespace shorthand {
namespace {

constexpr const char* kHelp =
    "A page in the browser that shows what quantizing a KV cache does: what fits into a memory,\n"
    "which numbers share a scale, and what codes make of a model's own keys and values. Every\n"
    "number comes from the code that caches use. The page is served to this machine alone and "
    "asks\n"
    "nothing of any other.";

constexpr const char* kExamples =
    "Examples:\n"
    "  shorthand explore -m smollm2\n"
    "  shorthand explore -m qwen -f book.txt -n 4k --port 9000 --no-browser\n"
    "  shorthand explore -m smollm2 --results kl.json --results speed.json\n"
    "      with results of eval and bench model\n"
    "  shorthand explore\n"
    "      without a model: what fits, and a made-up head";

struct Options {
  CaptureOptions capture;
  std::vector<std::string> result_files;
  int port = 7700;
  bool no_browser = false;
};

// Ctrl-C and SIGTERM, whichever thread they come to. REQUIRES: one at a time.
class EndSignals {
 public:
  EndSignals() {
    sem_init(&seen_, 0, 0);
    struct sigaction action = {};
    action.sa_handler = [](int) { sem_post(&seen_); };
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
  }

  void Wait() const {
    while (sem_wait(&seen_) != 0) continue;  // interrupted by another signal
  }

 private:
  static inline sem_t seen_;
};

// Where there is a desktop; a browser that cannot be opened is none.
void OpenBrowser(const std::string& url) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  const char* const command[] = {"xdg-open", url.c_str(), nullptr};
  pid_t child = 0;
  (void)posix_spawnp(&child, command[0], nullptr, nullptr, const_cast<char* const*>(command),
                     environ);
}

int RunExplore(const Options& options) {
  const auto request = ReadCaptureOptions(options.capture);
  if (!request.ok()) return FailUsage(request.status());
  auto results = ResultsOf(options.result_files);
  if (!results.ok()) return Fail(results.status());
  auto data = ExploreModel(*request);
  if (!data.ok()) return Fail(data.status());
  data->results = *std::move(results);
  auto server = ExploreServer::Open(*std::move(data), *request, options.port);
  if (!server.ok()) return Fail(server.status());
  const EndSignals signals;
  std::thread serving([&] { (*server)->Run(); });
  fmt::print("{}\nCtrl-C ends it.\n", (*server)->url());
  std::fflush(stdout);
  if (!options.no_browser) OpenBrowser((*server)->url());
  signals.Wait();
  (*server)->Stop();
  serving.join();
  return kExitDone;
}

}  // namespace

Runner DeclareExplore(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.description(kHelp);
  app.footer(kExamples);
  app.add_option("-m,--model", options->capture.request.model,
                 "A GGUF file, or the name of one that is fetched; default: none")
      ->type_name("MODEL");
  AddCaptureOptions(app, options->capture);
  app.add_option("--results", options->result_files,
                 "What `eval --json` or `bench model --json` wrote; repeat it for several")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--port", options->port, "Of 127.0.0.1; 0: any that is free; default 7700")
      ->type_name("P")
      ->check(CLI::Range(0, 65535).description(""));
  app.add_flag("--no-browser", options->no_browser, "Do not open a browser");
  return [options] { return RunExplore(*options); };
}

}  // namespace shorthand
