#include "quant/presets.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace shorthand {
namespace {

constexpr std::string_view kGgml = "ggml's block quantizer of the same name, equal to the bit";
constexpr std::string_view kLlamaCpp =
    "llama.cpp's quantized caches as they are today: Hadamard over K's head and 64 channels of V";
constexpr std::string_view kOcp = "OCP microscaling formats 1.0, blocks of 32";
constexpr std::string_view kNvidia = "NVIDIA's 4-bit float, blocks of 16";
constexpr std::string_view kFp8 = "OCP 8-bit floats; caches of vLLM and TensorRT-LLM";
constexpr std::string_view kPerToken = "min/max per token and head, as in LMDeploy";
constexpr std::string_view kKivi = "KIVI, arXiv 2402.02750, in whole pages";
constexpr std::string_view kKvQuant = "KVQuant, arXiv 2401.18079, without calibration";
constexpr std::string_view kTurbo = "TurboQuant's MSE stage, arXiv 2504.19874, norms kept";
constexpr std::string_view kKvarn = "KVarN, arXiv 2606.03458";
constexpr std::string_view kReference = "reference: nothing is coded";
constexpr std::string_view kLadder = "Shorthand's own: the best measured at that budget";

std::vector<Preset> MakePresets() {
  return {
      {"8bit", "k=bal:had:u8/ch,v=had:i8/tok,sink=4", kLadder},
      {"6bit", "k=w6/ch,v=had:i6/tok,sink=4", kLadder},
      {"5bit", "k=w5.1/ch,v=had:i5/tok,sink=4", kLadder},
      {"4bit", "k=w4/ch,v=had:lm4/tok:ub,sink=4,recent=128", kLadder},
      {"3bit", "k=w3.1/ch,v=had:lm3/tok:ub,sink=4,recent=128", kLadder},
      {"2bit", "k=w2.6/ch,v=had:lm2/tok:ub,sink=4,recent=128", kLadder},
      {"f16", "kv=f16", kReference},
      {"bf16", "kv=bf16", kReference},
      {"f32", "kv=f32", kReference},
      {"fp8_e4m3", "kv=e4m3/page", kFp8},
      {"fp8_e5m2", "kv=e5m2/page", kFp8},
      {"q8_0", "kv=q8_0", kGgml},
      {"q5_1", "kv=q5_1", kGgml},
      {"q5_0", "kv=q5_0", kGgml},
      {"q4_1", "kv=q4_1", kGgml},
      {"q4_0", "kv=q4_0", kGgml},
      {"iq4_nl", "kv=iq4_nl", kGgml},
      {"mxfp4", "kv=mxfp4", kOcp},
      {"nvfp4", "kv=nvfp4", kNvidia},
      {"q8_0_rot", "k=had:q8_0,v=had64:q8_0", kLlamaCpp},
      {"q4_0_rot", "k=had:q4_0,v=had64:q4_0", kLlamaCpp},
      {"int8", "kv=u8/tok", kPerToken},
      {"int4", "kv=u4/tok", kPerToken},
      {"nf4", "kv=nf4/tok64", "NF4 levels of QLoRA, arXiv 2305.14314, blocks of 64"},
      {"kivi4", "k=u4/ch32,v=u4/tok32,recent=128", kKivi},
      {"kivi2", "k=u2/ch32,v=u2/tok32,recent=128", kKivi},
      {"kvquant4", "k=pre:nuq4/ch:out1,v=nuq4/tok:out1,sink=1", kKvQuant},
      {"kvquant3", "k=pre:nuq3/ch:out1,v=nuq3/tok:out1,sink=1", kKvQuant},
      {"kvquant2", "k=pre:nuq2/ch:cal:out1,v=nuq2/tok:cal:out1,sink=1",
       "KVQuant, arXiv 2401.18079"},
      {"quarot4", "kv=had:u4/tok:clip0.95", "QuaRot's cache, arXiv 2404.00456"},
      {"qserve4", "k=smooth:u4/tok,v=u4/tok", "QServe's cache, arXiv 2405.04532"},
      {"turbo4", "kv=had:lm4/tok:norm", kTurbo},
      {"turbo3", "kv=had:lm3/tok:norm", kTurbo},
      {"turbo2", "kv=had:lm2/tok:norm", kTurbo},
      {"kvarn4", "kv=had:u4/grid,sink=128", kKvarn},
      {"kvarn_k4v2", "k=had:u4/grid,v=had:u2/grid,sink=128", kKvarn},
      {"kvarn2", "kv=had:u2/grid,sink=128", kKvarn},
      {"kitty2", "k=u2/ch:hi12.5,v=u2/tok,sink=32,recent=128", "Kitty, arXiv 2511.18643"},
  };
}

// Levenshtein's distance: the fewest bytes put in, left out or replaced.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

const std::vector<Preset>& Presets() {
  static const std::vector<Preset>& presets = *new std::vector<Preset>(MakePresets());
  return presets;
}

const Preset* FindPreset(std::string_view name) {
  for (const Preset& preset : Presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

const Preset& NearestPreset(std::string_view name) {
  return *std::min_element(Presets().begin(), Presets().end(),
                           [name](const Preset& a, const Preset& b) {
                             return Distance(name, a.name) < Distance(name, b.name);
                           });
}

}  // namespace shorthand
