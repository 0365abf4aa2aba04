// Plan: what a model's keys and values take, in bytes, for a context, a number of users and a list
// of recipes, and how that fits beside the weights into a memory.
//
// Sizes of the cache are those of the allocator, byte for byte. A model is named, or read from a
// Hugging Face config.json; docs/plan.md has the rules for every attention family. What is not
// understood is refused by name, never guessed.
//
// Thread-safety: values and pure functions.
#ifndef SHORTHAND_PLAN_H_
#define SHORTHAND_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

// A model as the planner sees it. Scales and soft-caps of the shape keep their defaults: they take
// no memory.
struct ModelShape {
  Shape shape;
  std::string parameters_note;     // why shape.parameters is 0; empty if it is known
  uint64_t tensor_bytes = 0;       // of the weights as stored in a file; 0: there is no such file
  std::vector<std::string> notes;  // sentences on what is not counted, or counted by a rule
};

// The shape of a well-known model. Case, an organisation in front ("meta-llama/") and suffixes such
// as "-Instruct" do not matter.
// Errors: kNotFound with the nearest names.
Result<ModelShape> ShapeFromName(std::string_view name);
// The names, in the order in which to list them.
std::vector<std::string_view> KnownShapes();

// The shape that the text of a config.json describes. `name` is used in messages and kept.
// Errors: kInvalidArgument for text that is not JSON, missing or absurd values; kUnimplemented, by
// name, for an architecture without a rule.
Result<ModelShape> ShapeFromConfig(std::string_view json, std::string_view name);

// Limits of a request, beyond which nothing sensible is planned.
inline constexpr int64_t kMaxPlanTokens = int64_t{1} << 26;
inline constexpr int64_t kMaxPlanUsers = int64_t{1} << 20;
inline constexpr uint64_t kMaxPlanMemoryBytes = uint64_t{1} << 50;

struct PlanRequest {
  int64_t context_tokens = 0;        // of each user, 1..kMaxPlanTokens
  int64_t users = 1;                 // 1..kMaxPlanUsers
  uint64_t memory_bytes = 0;         // 0: no budget is given
  double weight_bits = 4.5;          // of a weight, unless the model's tensor_bytes are known
  std::vector<std::string> recipes;  // empty: DefaultPlanRecipes()
};

// The recipes that are compared when none is given.
const std::vector<std::string>& DefaultPlanRecipes();

// How a row stands in the budget. max_context and max_users vary one and keep the other;
// kMaxPlanTokens and kMaxPlanUsers stand for "no limit".
struct PlanFit {
  bool fits = false;
  int64_t spare_bytes = 0;  // negative: what is lacking
  int64_t max_context = 0;
  int64_t max_users = 0;
};

struct PlanRow {
  std::string recipe;  // as given
  std::string canonical;
  Status status;         // why this recipe does not fit the model; then nothing below is set
  double bits = 0;       // codes and metadata
  double true_bits = 0;  // everything stored, at this context
  uint64_t kv_bytes_per_token = 0;      // codes and metadata, while every window is open
  uint64_t kv_bytes = 0;                // codes and metadata of context x users tokens
  uint64_t allocated_bytes = 0;         // what the cache takes from the system
  std::optional<uint64_t> total_bytes;  // weights + allocated, if the weights are known
  std::optional<PlanFit> fit;           // if there is a budget and the size of the weights is known
};

struct Plan {
  uint64_t kv_bytes_per_token_f16 = 0;    // while every window is open
  std::optional<uint64_t> weights_bytes;  // none: see ModelShape::parameters_note
  std::vector<PlanRow> rows;              // in the order of the recipes
};

// Errors: kInvalidArgument for a request out of range or a recipe that cannot be read. A recipe
// that can be read but does not fit the model fails in its row alone.
Result<Plan> MakePlan(const ModelShape& model, const PlanRequest& request);

}  // namespace shorthand

#endif  // SHORTHAND_PLAN_H_
