#include <fmt/format.h>

#include <cmath>

#include "plan/units.h"
#include "quant/footprint.h"
#include "shorthand/plan.h"
#include "shorthand/recipe.h"

namespace shorthand {
namespace {

// More than any cache of this shape can take, in floating point, so that sizes can be refused
// before they overflow.
double UpperBoundBytes(const Shape& shape, int64_t tokens, int64_t users) {
  constexpr double kBytesPerValue = 8;   // two representations of f32
  constexpr double kSlackTokens = 1024;  // pages being written, slack, sinks
  constexpr double kExtentBytes = 1 << 22;
  double per_token = 0;
  double heads = 0;
  for (const LayerShape& layer : shape.layers) {
    per_token += layer.kv_heads * (layer.k_dim + layer.v_dim + 32.0) * kBytesPerValue;
    heads += layer.kv_heads;
  }
  return per_token * (static_cast<double>(tokens) + kSlackTokens) * static_cast<double>(users) +
         heads * kExtentBytes;
}

bool Representable(const Shape& shape, int64_t tokens, int64_t users) {
  constexpr double kLimit = 4611686018427387904.0;  // 2^62
  return UpperBoundBytes(shape, tokens, users) < kLimit;
}

// The largest n in 0..limit with holds(n), which must be monotone: true, then false.
template <typename Predicate>
int64_t Largest(int64_t limit, Predicate holds) {
  int64_t low = 0;  // holds, or nothing does
  int64_t high = 1;
  while (high <= limit && holds(high)) {
    low = high;
    high *= 2;
  }
  if (high > limit) {
    if (holds(limit)) return limit;
    high = limit;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

PlanFit FitOf(const Shape& shape, const std::vector<LayerGroup>& groups, const PlanRequest& request,
              uint64_t weights_bytes, uint64_t total_bytes) {
  auto fits = [&](int64_t tokens, int64_t users) {
    return Representable(shape, tokens, users) &&
           weights_bytes + FootprintOf(groups, tokens, users).allocated_bytes <=
               request.memory_bytes;
  };
  PlanFit fit;
  fit.fits = total_bytes <= request.memory_bytes;
  fit.spare_bytes = static_cast<int64_t>(request.memory_bytes) - static_cast<int64_t>(total_bytes);
  fit.max_context =
      Largest(kMaxPlanTokens, [&](int64_t tokens) { return fits(tokens, request.users); });
  fit.max_users =
      Largest(kMaxPlanUsers, [&](int64_t users) { return fits(request.context_tokens, users); });
  return fit;
}

PlanRow RowOf(const ModelShape& model, const PlanRequest& request, const std::string& text,
              const Recipe& recipe, const std::optional<uint64_t>& weights_bytes) {
  PlanRow row;
  row.recipe = text;
  row.canonical = recipe.ToString();
  const auto groups = ResolveGroups(model.shape, recipe);
  if (!groups.ok()) {
    row.status = groups.status();
    return row;
  }
  const Footprint footprint = FootprintOf(*groups, request.context_tokens, request.users);
  row.bits = footprint.bits;
  row.true_bits = footprint.true_bits;
  row.kv_bytes_per_token = LogicalBytes(*groups, 1);
  row.kv_bytes = footprint.logical_bytes;
  row.allocated_bytes = footprint.allocated_bytes;
  if (!weights_bytes) return row;
  row.total_bytes = *weights_bytes + footprint.allocated_bytes;
  if (request.memory_bytes > 0) {
    row.fit = FitOf(model.shape, *groups, request, *weights_bytes, *row.total_bytes);
  }
  return row;
}

Status CheckRequest(const ModelShape& model, const PlanRequest& request) {
  if (request.context_tokens < 1 || request.context_tokens > kMaxPlanTokens) {
    return InvalidArgument(fmt::format("a context of {} tokens cannot be planned; 1 to {} can",
                                       request.context_tokens, kMaxPlanTokens));
  }
  if (request.users < 1 || request.users > kMaxPlanUsers) {
    return InvalidArgument(
        fmt::format("{} users cannot be planned; 1 to {} can", request.users, kMaxPlanUsers));
  }
  if (request.memory_bytes > kMaxPlanMemoryBytes) {
    return InvalidArgument(fmt::format("a memory of {} cannot be planned; up to {} can",
                                       FormatSize(request.memory_bytes),
                                       FormatSize(kMaxPlanMemoryBytes)));
  }
  if (!(request.weight_bits > 0 && request.weight_bits <= 64)) {
    return InvalidArgument(
        fmt::format("{} bits for a weight cannot be planned; up to 64 can", request.weight_bits));
  }
  if (!Representable(model.shape, request.context_tokens, request.users)) {
    return InvalidArgument(
        fmt::format("{} users with {} tokens each are beyond what can be counted", request.users,
                    request.context_tokens));
  }
  return OkStatus();
}

std::optional<uint64_t> WeightsBytes(const ModelShape& model, const PlanRequest& request) {
  if (model.tensor_bytes > 0) return model.tensor_bytes;
  if (model.shape.parameters == 0) return std::nullopt;
  const double bits = static_cast<double>(model.shape.parameters) * request.weight_bits;
  return static_cast<uint64_t>(std::llround(bits / 8));
}

uint64_t F16BytesPerToken(const Shape& shape) {
  uint64_t bytes = 0;
  for (const LayerShape& layer : shape.layers) {
    if (layer.kv_owner < 0) bytes += uint64_t{2} * layer.kv_heads * (layer.k_dim + layer.v_dim);
  }
  return bytes;
}

}  // namespace

const std::vector<std::string>& DefaultPlanRecipes() {
  static const auto* const kRecipes = new std::vector<std::string>{
      "f16", "fp8_e4m3", "q8_0", "q4_0", "kivi4", "8bit", "4bit", "3bit", "2bit"};
  return *kRecipes;
}

Result<Plan> MakePlan(const ModelShape& model, const PlanRequest& request) {
  Status status = CheckRequest(model, request);
  if (!status.ok()) return status;
  const auto& texts = request.recipes.empty() ? DefaultPlanRecipes() : request.recipes;
  std::vector<Recipe> recipes;
  for (const std::string& text : texts) {
    auto recipe = Recipe::Parse(text);
    if (!recipe.ok()) return recipe.status();
    recipes.push_back(*std::move(recipe));
  }
  Plan plan;
  plan.kv_bytes_per_token_f16 = F16BytesPerToken(model.shape);
  plan.weights_bytes = WeightsBytes(model, request);
  for (size_t i = 0; i < recipes.size(); ++i) {
    plan.rows.push_back(RowOf(model, request, texts[i], recipes[i], plan.weights_bytes));
  }
  return plan;
}

}  // namespace shorthand
