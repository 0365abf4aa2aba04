#include "plan_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "plan/units.h"
#include "shape_summary.h"
#include "terminal.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(std::string_view label, std::string_view text) {
  return fmt::format("  {:<14}{}\n", label, text);
}

std::string WeightsText(const ModelShape& model, const PlanRequest& request, const Plan& plan) {
  if (!plan.weights_bytes) return fmt::format("unknown: {}", model.parameters_note);
  const std::string size = FormatSize(*plan.weights_bytes);
  if (model.tensor_bytes > 0) return fmt::format("{} as stored in the file", size);
  return fmt::format("{}: {} parameters at {} bits (at 16 bits: {})", size,
                     FormatParameters(model.shape.parameters), request.weight_bits,
                     FormatSize(static_cast<uint64_t>(model.shape.parameters) * 2));
}

std::string ContextText(const ModelShape& model, const PlanRequest& request) {
  std::string text = fmt::format("{} tokens, {} user{}", FormatTokens(request.context_tokens),
                                 request.users, request.users == 1 ? "" : "s");
  const int64_t made_for = model.shape.max_context_tokens;
  if (made_for > 0 && request.context_tokens > made_for) {
    text += fmt::format(" (the model was made for {} tokens)", FormatTokens(made_for));
  }
  return text;
}

std::string Header(const ModelShape& model, const PlanRequest& request, const Plan& plan) {
  std::string text =
      fmt::format("{}: {}\n", Styled(Style::kStrong, model.shape.name), ShapeLine(model.shape));
  for (const std::string& sentence : SavingsOf(model.shape)) text += Line("", sentence);
  for (const std::string& note : model.notes) text += Line("", note);
  text += Line("KV per token", fmt::format("{} in f16", FormatSize(plan.kv_bytes_per_token_f16)));
  text += Line("context", ContextText(model, request));
  text += Line("weights", WeightsText(model, request, plan));
  if (request.memory_bytes > 0) {
    text += Line("memory", fmt::format("{} = {}", FormatDecimalSize(request.memory_bytes),
                                       FormatSize(request.memory_bytes)));
  }
  return text;
}

Cell FitCell(const PlanFit& fit) {
  const auto bytes = static_cast<uint64_t>(std::abs(fit.spare_bytes));
  if (fit.fits) return {fmt::format("fits, with {} to spare", FormatSize(bytes)), Style::kGood};
  return {fmt::format("does not fit: {} too much", FormatSize(bytes)), Style::kBad};
}

Cell LimitCell(int64_t value, int64_t limit) {
  return {value >= limit ? "no limit" : fmt::format("{}", value)};
}

std::string RowsTable(const PlanRequest& request, const Plan& plan) {
  using Align = Table::Align;
  const bool judged = request.memory_bytes > 0 && plan.weights_bytes.has_value();
  Table table;
  table.AddColumn("recipe", Align::kLeft);
  for (const char* title : {"bits", "true bits", "KV per token", "KV cache", "allocated"}) {
    table.AddColumn(title, Align::kRight);
  }
  if (plan.weights_bytes) table.AddColumn("total", Align::kRight);
  if (judged) {
    table.AddColumn("fits", Align::kLeft);
    table.AddColumn("longest context", Align::kRight);
    table.AddColumn("most users", Align::kRight);
  }
  for (const PlanRow& row : plan.rows) {
    if (!row.status.ok()) continue;
    std::vector<Cell> cells = {{row.recipe},
                               {fmt::format("{:.2f}", row.bits)},
                               {fmt::format("{:.2f}", row.true_bits)},
                               {FormatSize(row.kv_bytes_per_token)},
                               {FormatSize(row.kv_bytes)},
                               {FormatSize(row.allocated_bytes)}};
    if (row.total_bytes) cells.push_back({FormatSize(*row.total_bytes)});
    if (row.fit) {
      cells.push_back(FitCell(*row.fit));
      cells.push_back(LimitCell(row.fit->max_context, kMaxPlanTokens));
      cells.push_back(LimitCell(row.fit->max_users, kMaxPlanUsers));
    }
    table.AddRow(std::move(cells));
  }
  return table.ToString();
}

bool AnyRow(const Plan& plan) {
  for (const PlanRow& row : plan.rows) {
    if (row.status.ok()) return true;
  }
  return false;
}

// Null until a value replaces it.
template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json RowJson(const PlanRow& row) {
  const bool ok = row.status.ok();
  auto known = [ok](auto value) { return ok ? Json(value) : Json(nullptr); };
  auto fitted = [&row](auto member) { return row.fit ? Json((*row.fit).*member) : Json(nullptr); };
  return {{"recipe", row.recipe},
          {"canonical", row.canonical},
          {"bits", known(row.bits)},
          {"true_bits", known(row.true_bits)},
          {"kv_bytes_per_token", known(row.kv_bytes_per_token)},
          {"kv_bytes", known(row.kv_bytes)},
          {"allocated_bytes", known(row.allocated_bytes)},
          {"total_bytes", OrNull(row.total_bytes)},
          {"fits", fitted(&PlanFit::fits)},
          {"spare_bytes", fitted(&PlanFit::spare_bytes)},
          {"max_context", fitted(&PlanFit::max_context)},
          {"max_users", fitted(&PlanFit::max_users)},
          {"error", ok ? Json(nullptr) : Json(row.status.message())}};
}

Json ModelJson(const ModelShape& model, const Plan& plan) {
  const ShapeSummary summary = Summarize(model.shape);
  const auto or_null = [](int64_t value) { return value > 0 ? Json(value) : Json(nullptr); };
  return {{"name", model.shape.name},
          {"layers", model.shape.layers.size()},
          {"kv_heads", summary.typical.kv_heads},
          {"kv_bytes_per_token_f16", plan.kv_bytes_per_token_f16},
          {"query_heads", summary.typical.query_heads},
          {"k_dim", summary.typical.k_dim},
          {"v_dim", summary.typical.v_dim},
          {"full_layers", summary.full_layers},
          {"windowed_layers", summary.windowed_layers},
          {"window", or_null(summary.window)},
          {"max_context", or_null(model.shape.max_context_tokens)},
          {"parameters", or_null(model.shape.parameters)},
          {"notes", model.notes}};
}

}  // namespace

std::string PlanText(const ModelShape& model, const PlanRequest& request, const Plan& plan) {
  std::string text = Header(model, request, plan);
  if (AnyRow(plan)) text += "\n" + RowsTable(request, plan);
  bool first = true;
  for (const PlanRow& row : plan.rows) {
    if (row.status.ok()) continue;
    text += fmt::format("{}{} does not fit this model: {}\n", first ? "\n" : "", row.recipe,
                        row.status.message());
    first = false;
  }
  if (request.memory_bytes > 0 && !plan.weights_bytes) {
    text += "\nWhat fits cannot be said without the size of the weights.\n";
  }
  return text;
}

nlohmann::ordered_json PlanJson(const ModelShape& model, const PlanRequest& request,
                                const Plan& plan) {
  Json recipes = Json::array();
  for (const PlanRow& row : plan.rows) recipes.push_back(RowJson(row));
  Json json = {{"model", ModelJson(model, plan)},
               {"context", request.context_tokens},
               {"users", request.users},
               {"memory_bytes", request.memory_bytes > 0 ? Json(request.memory_bytes) : Json()},
               {"weights_bytes", OrNull(plan.weights_bytes)},
               {"recipes", std::move(recipes)}};
  json["weights_reason"] = plan.weights_bytes ? Json(nullptr) : Json(model.parameters_note);
  return json;
}

}  // namespace shorthand
