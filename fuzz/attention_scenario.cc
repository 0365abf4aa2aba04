#include "attention_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "quant/every_side.h"
#include "quant/format.h"
#include "shorthand/recipe.h"

namespace shorthand {
namespace {

constexpr int kFillings = static_cast<int>(Filling::kHuge) + 1;
constexpr int kMostSteps = 12;
constexpr int kMostHistory = 640;  // tokens ever appended to a sequence

// About normal: a sum of four numbers of 16 bits.
float NoiseOf(uint64_t bits) {
  const uint64_t sum =
      (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  return (static_cast<float>(sum) / 65536.0f - 2) * 1.7320508f;
}

// `bits`: of the value, well mixed.
float Fill(Filling filling, uint64_t bits, int channel, int dim) {
  const float noise = NoiseOf(bits);
  switch (filling) {
    case Filling::kNoise:
      return noise;
    case Filling::kLoudChannels:
      return channel == 1 || channel == dim / 2 ? 6 + 2 * noise : noise;
    case Filling::kMean:
      return 1 + noise / 8;
    case Filling::kConstant:
      return -1.5f;
    case Filling::kZero:
      return bits % 2 == 0 ? 0.0f : -0.0f;
    case Filling::kTiny:
      return noise * 0x1p-20f;
    case Filling::kSubnormal:
      return noise * 0x1p-140f;
    case Filling::kLoud:
      return noise * 0x1p13f;
    case Filling::kSpikes:
      return noise / 16 * (bits % 61 == 0 ? 1024 : 1);
    case Filling::kExtremes:
      return (bits & 1 ? 1.0f : -1.0f) * (bits & 2 ? 65504.0f : 1.0f);
    case Filling::kHuge:
      return noise * 0x1p100f;
  }
  return 0;
}

// Half of the inputs get what models make; the other half anything.
Rows ReadRows(FuzzInput& input) {
  Rows rows;
  rows.filling =
      static_cast<Filling>(input.Below(2) == 0 ? input.Below(3) : input.Below(kFillings));
  rows.seed = input.Word();
  return rows;
}

int ReadDim(FuzzInput& input) {
  constexpr int kAwkward[] = {1, 3, 8, 24, 40, 72, 100, 104};
  constexpr int kUsual[] = {16, 32, 48, 64, 64, 80, 96, 112, 128, 128, 256};
  return input.Once(4) ? input.Pick(kAwkward) : input.Pick(kUsual);
}

LayerShape ReadLayer(FuzzInput& input) {
  constexpr int kWindows[] = {1, 2, 16, 100, 127, 128, 129, 200, 300};
  LayerShape layer;
  layer.kv_heads = 1 + input.Once(3);
  layer.query_heads = layer.kv_heads * (1 + input.Below(8));
  layer.k_dim = ReadDim(input);
  layer.v_dim = input.Once(4) ? ReadDim(input) : layer.k_dim;
  if (input.Once(3)) layer.window = input.Pick(kWindows);
  if (input.Once(4)) layer.softcap = input.Once(2) ? 50 : 5;
  if (input.Once(4)) layer.scale = 0.01f + 0.01f * static_cast<float>(input.Below(50));
  layer.rope.pairs = input.Once(2) ? RopePairs::kHalves : RopePairs::kAdjacent;
  layer.rope.frequencies.assign(layer.k_dim / 2, 0.1f);
  return layer;
}

// Whether every layer's head can be stored so.
bool Fits(const std::string& side, SideKind kind, const Shape& shape) {
  const bool is_key = kind == SideKind::kKey;
  const auto recipe = Recipe::Parse(is_key ? "k=" + side + ",v=f16" : "k=f16,v=" + side);
  if (!recipe.ok()) return false;
  for (const LayerShape& layer : shape.layers) {
    const bool fits = is_key ? ResolveSide(recipe->kv.k, kind, layer.k_dim).ok()
                             : ResolveSide(recipe->kv.v, kind, layer.v_dim).ok();
    if (!fits) return false;
  }
  return true;
}

std::string ReadSide(FuzzInput& input, SideKind kind, const Shape& shape) {
  constexpr const char* kExact[] = {"f32", "f16", "bf16"};
  constexpr const char* kTunes[] = {"",     "",     "",      ":clip0.9", ":norm",
                                    ":one", ":mse", ":hi20", ":out3"};
  constexpr int kTries = 8;
  const std::string exact = input.Pick(kExact);
  if (input.Once(8)) return exact;
  for (int i = 0; i < kTries; ++i) {
    std::string side = input.Pick(EveryKeySide(input.Pick(Registry()))) + input.Pick(kTunes);
    if (kind == SideKind::kKey && input.Once(4)) {
      constexpr const char* kSteps[] = {"mu:", "smooth:", "pre:"};
      side = input.Pick(kSteps) + side;
    }
    if (Fits(side, kind, shape)) return side;
  }
  return exact;
}

std::string ReadRecipe(FuzzInput& input, const Shape& shape) {
  constexpr int kSinks[] = {0, 0, 1, 3, 4, 16, 17, 127, 128};
  constexpr int kRecent[] = {0, 0, 128, 256};
  if (input.Once(8)) return std::string(input.Pick(Presets()).name);
  const std::string k = ReadSide(input, SideKind::kKey, shape);
  const std::string v = ReadSide(input, SideKind::kValue, shape);
  return fmt::format("k={},v={},sink={},recent={}", k, v, input.Pick(kSinks), input.Pick(kRecent));
}

Step ReadStep(FuzzInput& input) {
  constexpr Step::Kind kKinds[] = {Step::kAppend, Step::kAppend, Step::kQuery,  Step::kQuery,
                                   Step::kCrop,   Step::kFork,   Step::kRelease};
  constexpr int kChunks[] = {1, 7, 64, 128, 129, 300};
  Step step{input.Pick(kKinds), input.Below(4), 0, 0, 0};
  if (step.kind == Step::kAppend) step.tokens = 1 + input.Below(300);
  if (step.kind == Step::kQuery)
    step.tokens = 1 + (input.Once(4) ? input.Below(40) : input.Below(8));
  if (step.kind == Step::kCrop) step.tokens = input.Below(1000);
  step.chunk = input.Pick(kChunks);
  step.other_chunk = input.Pick(kChunks);
  return step;
}

}  // namespace

void Rows::Append(int64_t token, int heads, int dim, std::vector<float>* to) const {
  const uint64_t row = Mix(seed ^ Mix(static_cast<uint64_t>(token)));
  for (int i = 0; i < heads * dim; ++i) to->push_back(Fill(filling, Mix(row + i), i % dim, dim));
}

AttentionScenario::AttentionScenario(FuzzInput input) {
  shape.name = "fuzz";
  for (int layers = 1 + input.Once(4); layers > 0; --layers) {
    shape.layers.push_back(ReadLayer(input));
  }
  recipe = ReadRecipe(input, shape);
  k = ReadRows(input);
  v = ReadRows(input);
  q = ReadRows(input);
  if (input.Once(3)) aimed_score = 3 + input.Below(8);
  if (input.Once(4)) {
    int heads = 0;
    for (const LayerShape& layer : shape.layers) heads = std::max(heads, layer.query_heads);
    for (int h = 0; h < heads; ++h) {
      sink_logits.push_back(static_cast<float>(input.Below(40) - 20));
    }
  }
  // Something to look at first, then whatever the bytes say.
  steps.push_back({Step::kAppend, 0, 1 + input.Below(400), 128, 1 + input.Below(200)});
  int history = steps.back().tokens;
  while (!input.AtEnd() && steps.size() < kMostSteps) {
    const Step step = ReadStep(input);
    if (step.kind == Step::kAppend && (history += step.tokens) > kMostHistory) break;
    steps.push_back(step);
  }
  steps.push_back({Step::kQuery, 0, 1 + input.Below(4), 0, 0});
}

std::string AttentionScenario::Describe() const {
  std::string text = recipe;
  for (const LayerShape& l : shape.layers) {
    text += fmt::format("; {} on {} heads of {} and {}, window {}, soft-cap {}, scale {}",
                        l.query_heads, l.kv_heads, l.k_dim, l.v_dim, l.window, l.softcap, l.scale);
  }
  text += fmt::format("; fillings of k {}, v {}, q {}, aimed at {}{}; steps",
                      static_cast<int>(k.filling), static_cast<int>(v.filling),
                      static_cast<int>(q.filling), aimed_score,
                      sink_logits.empty() ? "" : "; sink logits");
  constexpr const char* kNames[] = {"append", "query", "crop", "fork", "release"};
  for (const Step& step : steps) {
    text += fmt::format(" {}({}: {} by {} or {})", kNames[step.kind], step.sequence, step.tokens,
                        step.chunk, step.other_chunk);
  }
  return text;
}

}  // namespace shorthand
