// `shorthand inspect cpu`: the kernels in use.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "base/cpu.h"
#include "command.h"
#include "kernels/kernels.h"
#include "terminal.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

struct Feature {
  const char* name;
  bool CpuFeatures::* present;
};
constexpr Feature kFeatures[] = {
    {"avx2", &CpuFeatures::avx2},
    {"fma", &CpuFeatures::fma},
    {"f16c", &CpuFeatures::f16c},
    {"avxvnni", &CpuFeatures::avx_vnni},
    {"avx512f", &CpuFeatures::avx512_f},
    {"avx512bw", &CpuFeatures::avx512_bw},
    {"avx512dq", &CpuFeatures::avx512_dq},
    {"avx512vl", &CpuFeatures::avx512_vl},
    {"avx512vnni", &CpuFeatures::avx512_vnni},
    {"avx512vbmi", &CpuFeatures::avx512_vbmi},
    {"gfni", &CpuFeatures::gfni},
    {"amxint8", &CpuFeatures::amx_int8},
    {"asimddp", &CpuFeatures::asimd_dp},
};

std::span<const TargetEntry> Targets() {
  int count = 0;
  const TargetEntry* entries = CompiledTargets(&count);
  return {entries, static_cast<size_t>(count)};
}

std::string FeatureNames() {
  std::string names;
  for (const Feature& feature : kFeatures) {
    if (!(Cpu().*feature.present)) continue;
    if (!names.empty()) names += ' ';
    names += feature.name;
  }
  return names.empty() ? "none that matters here" : names;
}

void PrintText(const char* chosen) {
  fmt::print("{}\n\n", ActiveKernelsReason());
  for (const TargetEntry& entry : Targets()) {
    const bool in_use = chosen != nullptr && std::string_view(chosen) == entry.table->name;
    fmt::print("  {:<10}{}\n", entry.table->name,
               in_use ? Styled(Style::kGood, "in use")
                      : (entry.supported ? "can run here" : "cannot run here"));
  }
  fmt::print("\nCPU features: {}\nSHORTHAND_TARGET=NAME chooses another target.\n", FeatureNames());
}

Json ToJson(const char* chosen) {
  Json targets = Json::array();
  for (const TargetEntry& entry : Targets()) {
    targets.push_back({{"name", entry.table->name}, {"supported", entry.supported}});
  }
  Json features = Json::object();
  for (const Feature& feature : kFeatures) features[feature.name] = Cpu().*feature.present;
  return {{"target", chosen == nullptr ? Json() : Json(chosen)},
          {"reason", ActiveKernelsReason()},
          {"targets", std::move(targets)},
          {"features", std::move(features)}};
}

int RunInspectCpu(bool json) {
  const KernelTable* kernels = ActiveKernels();
  const char* chosen = kernels == nullptr ? nullptr : kernels->name;
  if (json) {
    PrintJson(ToJson(chosen));
  } else if (chosen != nullptr) {
    PrintText(chosen);
  }
  if (chosen == nullptr) return Fail(FailedPrecondition(ActiveKernelsReason()));
  return kExitDone;
}

}  // namespace

Runner DeclareInspectCpu(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.footer(
      "The instruction set that the kernels were chosen for, and why. All targets give the same\n"
      "bits; they differ in speed.\n\n"
      "Examples:\n"
      "  shorthand inspect cpu\n"
      "  SHORTHAND_TARGET=avx2 shorthand inspect cpu");
  app.add_flag("--json", *json, "The same for programs");
  return [json] { return RunInspectCpu(*json); };
}

}  // namespace shorthand
