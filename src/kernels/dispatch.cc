#include "kernels/dispatch.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "base/cpu.h"
#include "kernels/targets.h"

namespace shorthand {
namespace {

std::string Names(std::span<const TargetEntry> entries) {
  std::string names;
  for (const TargetEntry& entry : entries) {
    if (!entry.supported) continue;
    if (!names.empty()) names += ", ";
    names += entry.table->name;
  }
  return names;
}

const TargetChoice& Choice() {
  static const TargetChoice choice = [] {
    int count = 0;
    const TargetEntry* entries = CompiledTargets(&count);
    return ChooseTarget({entries, static_cast<size_t>(count)}, std::getenv("SHORTHAND_TARGET"));
  }();
  return choice;
}

#if defined(__x86_64__)
const KernelTable& AmxKernels() {
  static const KernelTable table = [] {
    KernelTable amx = kAvx512Kernels;
    amx.name = "amx";
    amx.tiles = &kAmxTileKernels;
    return amx;
  }();
  return table;
}
#endif

}  // namespace

TargetChoice ChooseTarget(std::span<const TargetEntry> entries, const char* wanted) {
  if (wanted == nullptr || *wanted == '\0') {
    for (const TargetEntry& entry : entries) {
      if (!entry.supported) continue;
      return {entry.table, fmt::format("{} is the best target that this CPU can run, out of {}.",
                                       entry.table->name, Names(entries))};
    }
    return {nullptr, "No target of this build can run on this CPU."};
  }
  for (const TargetEntry& entry : entries) {
    if (entry.table->name != std::string_view(wanted)) continue;
    if (entry.supported) {
      return {entry.table, fmt::format("SHORTHAND_TARGET asks for {}.", wanted)};
    }
    return {nullptr, fmt::format("SHORTHAND_TARGET asks for {}, which this CPU cannot run; it can "
                                 "run {}.",
                                 wanted, Names(entries))};
  }
  return {nullptr,
          fmt::format("SHORTHAND_TARGET asks for \"{}\", which is no target of this build; "
                      "this CPU can run {}.",
                      wanted, Names(entries))};
}

std::vector<const KernelTable*> RunnableTargets() {
  int count = 0;
  const TargetEntry* entries = CompiledTargets(&count);
  std::vector<const KernelTable*> tables;
  for (int i = 0; i < count; ++i) {
    if (entries[i].supported) tables.push_back(entries[i].table);
  }
  return tables;
}

const TargetEntry* CompiledTargets(int* count) {
#if defined(__x86_64__)
  static const TargetEntry entries[] = {
      {&AmxKernels(), Cpu().HasAmx()},
      {&kAvx512Kernels, Cpu().HasAvx512()},
      {&kAvxVnniKernels, Cpu().HasAvxVnni()},
      {&kAvx2Kernels, Cpu().HasAvx2()},
      {&kScalarKernels, true},
  };
#elif defined(__aarch64__)
  static const TargetEntry entries[] = {
      {&kNeonKernels, Cpu().HasNeon()},
      {&kScalarKernels, true},
  };
#else
  static const TargetEntry entries[] = {{&kScalarKernels, true}};
#endif
  *count = static_cast<int>(std::size(entries));
  return entries;
}

const KernelTable* ActiveKernels() { return Choice().table; }

const char* ActiveKernelsReason() { return Choice().reason.c_str(); }

}  // namespace shorthand
