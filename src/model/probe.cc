#include "model/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "base/replace_file.h"
#include "model/calibrate.h"
#include "shorthand/attention.h"

namespace shorthand {
namespace {

namespace fs = std::filesystem;

// Raised when statistics come out otherwise for the same model and text.
constexpr int kRevision = 3;

// What the statistics depend on, as a file name.
std::string FileName(const Model& model, const std::string& model_hash) {
  const Result<TargetInfo> target = ActiveTarget();
  const std::string inputs =
      fmt::format("{} {} {} {} {}", kRevision, model_hash, static_cast<int>(model.precision()),
                  target.ok() ? target->name : "", ProbeText());
  return HexOf(Xxh3(inputs.data(), inputs.size())) + ".json";
}

std::optional<Calibration> ReadKept(const fs::path& path, const Shape& shape) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Result<Calibration> calibration = Calibration::Parse(text);
  if (!calibration.ok() || !calibration->CheckFits(shape).ok()) return std::nullopt;
  return *std::move(calibration);
}

// A probe that cannot be kept is made again.
void Keep(const fs::path& path, const Calibration& calibration) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  (void)ReplaceFile(path.string(), calibration.ToText());
}

Result<Calibration> Probe(Model& model, const ProbeOptions& options) {
  const auto tokens = model.vocab().Tokenize(ProbeText(), Place::kBegin, Markup::kIgnore);
  if (!tokens.ok()) return tokens.status();
  const int64_t context = model.shape().max_context_tokens;
  size_t most = kMostProbeTokens;
  if (context > 0) most = std::min<size_t>(most, context);
  const std::span<const Token> used = std::span(*tokens).first(std::min(most, tokens->size()));
  return Calibrate(model, used,
                   {.model_name = model.shape().name,
                    .source = "built-in probe",
                    .on_progress = options.on_progress,
                    .stop = options.stop});
}

}  // namespace

Result<Calibration> ProbeModel(Model& model, const ProbeOptions& options) {
  if (options.folder.empty()) return Probe(model, options);
  const auto hash = FileHash(options.model_path);
  if (!hash.ok()) return hash.status();
  const fs::path path = fs::path(options.folder) / FileName(model, *hash);
  if (std::optional<Calibration> kept = ReadKept(path, model.shape())) return *std::move(kept);
  Result<Calibration> made = Probe(model, options);
  if (made.ok()) Keep(path, *made);
  return made;
}

}  // namespace shorthand
