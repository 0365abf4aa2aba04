// Drives a fuzzer without libFuzzer: pseudo-random inputs, one seed each, until time is up; or one
// input from a file.
//
// When an input fails, by a sentence of the fuzzer, a signal or a sanitizer, its seed and bytes are
// printed. Usage: see kUsage.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Sanitizers end by a signal, too. Only they call these.
extern "C" const char* __asan_default_options() { return "abort_on_error=1"; }
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

namespace {

constexpr char kUsage[] =
    "[--seed N] [--seconds N] [--inputs N] [--size N] | --input FILE\n"
    "  --seed N     of the first input; the following ones count up (1)\n"
    "  --seconds N  no input is started later than that (5)\n"
    "  --inputs N   at most so many (no limit)\n"
    "  --size N     most bytes of an input (256)\n"
    "  --input FILE runs the file's bytes alone\n";

struct Options {
  uint64_t seed = 1;
  double seconds = 5;
  uint64_t inputs = UINT64_MAX;
  uint64_t size = 256;
  std::string file;
};

// The input that runs, for the signal handler.
const std::vector<uint8_t>* running = nullptr;
uint64_t running_seed = 0;

void Print(const char* text, size_t size) {
  if (write(STDERR_FILENO, text, size) < 0) _exit(3);
}

// Only functions that a handler may call.
void ReportInput(int signal_number) {
  char digits[20];
  int first = sizeof digits;
  uint64_t rest = running_seed;
  do digits[--first] = static_cast<char>('0' + rest % 10);
  while ((rest /= 10) > 0);
  Print("failed by the input of seed ", 28);
  Print(digits + first, sizeof digits - first);
  Print(", in hex: ", 10);
  for (const uint8_t byte : *running) {
    const char hex[2] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    Print(hex, 2);
  }
  Print("\n", 1);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// A sanitizer's own handlers stay: they end in SIGABRT.
void HandleSignals() {
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    struct sigaction old = {};
    sigaction(number, nullptr, &old);
    if (old.sa_handler == SIG_DFL) signal(number, ReportInput);
  }
}

std::vector<uint8_t> InputOf(uint64_t seed, uint64_t most_bytes) {
  uint64_t state = shorthand::Mix(seed);
  std::vector<uint8_t> bytes(1 + state % most_bytes);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state = shorthand::Mix(state)) >> 32);
  return bytes;
}

void RunOne(uint64_t seed, const std::vector<uint8_t>& bytes) {
  running_seed = seed;
  running = &bytes;
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

int RunFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s cannot be read\n", path.c_str());
    return 2;
  }
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  RunOne(0, bytes);
  std::printf("%s: nothing found\n", path.c_str());
  return 0;
}

int RunSeeds(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  uint64_t count = 0;
  while (count < options.inputs && seconds() < options.seconds) {
    const uint64_t seed = options.seed + count++;
    RunOne(seed, InputOf(seed, options.size));
  }
  std::printf("%llu inputs from seed %llu in %.1f s: nothing found\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(options.seed),
              seconds());
  return 0;
}

bool ParseOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) return false;
    const char* value = argv[i + 1];
    char* end = nullptr;
    if (name == "--input") {
      options->file = value;
      continue;
    }
    if (name == "--seconds") {
      options->seconds = std::strtod(value, &end);
    } else if (name == "--seed") {
      options->seed = std::strtoull(value, &end, 10);
    } else if (name == "--inputs") {
      options->inputs = std::strtoull(value, &end, 10);
    } else if (name == "--size") {
      options->size = std::strtoull(value, &end, 10);
    }
    if (end == nullptr || end == value || *end != '\0') return false;
  }
  return options->size > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!ParseOptions(argc, argv, &options)) {
    std::fprintf(stderr, "usage: %s %s", argv[0], kUsage);
    return 2;
  }
  HandleSignals();
  return options.file.empty() ? RunSeeds(options) : RunFile(options.file);
}
