#include "eval_inputs.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/checksum.h"
#include "eval/windows.h"
#include "eval_report.h"
#include "plan/units.h"
#include "shorthand/attention.h"

namespace shorthand {

Result<ScoreBook> OpenBook(const std::string& resume_file, const std::string& model_path,
                           Precision weights, Protocol protocol) {
  if (resume_file.empty()) return ScoreBook();
  const auto model = FileHash(model_path);
  if (!model.ok()) return model.status();
  const auto target = ActiveTarget();
  if (!target.ok()) return target.status();
  return ScoreBook::Open(resume_file, {{"the model file of fingerprint", *model},
                                       {"weights", std::string(WeightsName(weights))},
                                       {"the protocol", std::string(ProtocolName(protocol))},
                                       {"kernels for", target->name}});
}

Result<std::vector<TextPassages>> CutTexts(const Vocab& vocab, std::span<const EvalText> texts,
                                           const WindowChoice& choice) {
  const int64_t first_scored =
      choice.prompt_tokens > 0 ? choice.prompt_tokens : FirstScored(choice.context_tokens);
  if (first_scored > choice.context_tokens - 2) {
    return InvalidArgument(
        fmt::format("a prompt of {} tokens leaves nothing to score of windows of {}; give a "
                    "shorter prompt or a "
                    "longer context",
                    first_scored, choice.context_tokens));
  }
  std::vector<TextPassages> passages;
  for (const EvalText& text : texts) {
    auto windows =
        CutWindows(vocab, text.text, choice.context_tokens, choice.windows, choice.skipped_tokens);
    if (!windows.ok()) {
      return Status(windows.status().code(),
                    fmt::format("{}: {}", text.name, windows.status().message()));
    }
    if (static_cast<int64_t>(windows->size()) < choice.windows) {
      fmt::print(stderr, "shorthand: {} ends after {} of {} windows of {} tokens\n", text.name,
                 windows->size(), choice.windows, FormatTokens(choice.context_tokens));
    }
    passages.push_back({text.name, PassagesOf(std::move(*windows), first_scored)});
  }
  return passages;
}

}  // namespace shorthand
