// `shorthand bench`: what it can time, one file each.
#include "command.h"

namespace shorthand {

Runner DeclareBenchAttention(CLI::App& app);
Runner DeclareBenchModel(CLI::App& app);

namespace {

constexpr Command kSubjects[] = {
    {"attention", "One decode step of attention, beside ggml's own", DeclareBenchAttention},
    {"model", "A model's speed at a depth of context, beside llama.cpp's", DeclareBenchModel},
};

}  // namespace

Runner DeclareBench(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  shorthand bench attention --shape 128,4,8 --length 32k --kv f16 --kv 4bit\n"
      "  shorthand bench model -m smollm2 --depth 0,2k --kv 4bit");
  return DeclareCommands(kSubjects, app);
}

}  // namespace shorthand
