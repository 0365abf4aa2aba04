#include "eval_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "plan/units.h"
#include "result_files.h"
#include "terminal.h"

namespace shorthand {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(std::string_view label, std::string_view text) {
  return fmt::format("  {:<14}{}\n", label, text);
}

// KL spans many orders: small values keep their digits.
std::string Nats(double value) {
  return value > 0 && value < 1e-4 ? fmt::format("{:.1e}", value) : fmt::format("{:.5f}", value);
}

std::string_view WeightsName(Precision weights) {
  return weights == Precision::kF32 ? "f32" : "native";
}

std::string Header(const EvalReport& report) {
  const Evaluation& evaluation = report.evaluation;
  std::string text =
      fmt::format("{}: {}\n", Styled(Style::kStrong, report.model), report.model_name);
  text += Line("text", fmt::format("{}: {} window{} of {} tokens, {} positions scored, the second "
                                   "half of each",
                                   report.text_name, report.windows, report.windows == 1 ? "" : "s",
                                   FormatTokens(report.context_tokens), evaluation.positions));
  text += Line("weights", report.weights == Precision::kF32
                              ? "expanded to f32"
                              : "as in the file: products round activations, see the noise floor");
  text += Line("exact", fmt::format("f16 cache, perplexity {:.4f}", evaluation.ppl_exact));
  text += Line("noise floor",
               fmt::format("mean KL {} with queries times 1 + 1e-6, {} with an f32 cache",
                           Nats(evaluation.floor.scaled_query.kl_mean),
                           Nats(evaluation.floor.f32_cache.kl_mean)));
  return text;
}

std::vector<Cell> RowCells(const std::string& recipe, const EvaluationRow& row) {
  const Summary& summary = row.summary;
  return {{recipe},
          {fmt::format("{}", row.contender.sink_tokens)},
          {fmt::format("{}", row.contender.recent_tokens)},
          {fmt::format("{:.2f}", row.contender.bits)},
          {fmt::format("{:.2f}", row.contender.true_bits)},
          {Nats(summary.kl_mean), Style::kStrong},
          {Nats(summary.kl_median)},
          {Nats(summary.kl_p999)},
          {Nats(summary.kl_max)},
          {fmt::format("{:.2f} %", summary.same_top * 100)},
          {fmt::format("{:.3f} %", summary.rms_delta * 100)},
          {fmt::format("{:.4f}", summary.ppl)},
          {fmt::format("{:.5f} +- {:.5f}", summary.ppl_ratio, summary.ppl_ratio_error)}};
}

std::string RowsTable(const EvalReport& report) {
  Table table;
  table.AddColumn("recipe", Table::Align::kLeft);
  for (const char* title : {"sink", "recent", "bits", "true bits", "KL mean", "median", "99.9 %",
                            "max", "same top-1", "rms dp", "ppl", "ppl ratio"}) {
    table.AddColumn(title, Table::Align::kRight);
  }
  for (size_t i = 0; i < report.recipes.size(); ++i) {
    const EvaluationRow& row = report.evaluation.rows[i];
    if (row.contender.status.ok()) table.AddRow(RowCells(report.recipes[i], row));
  }
  return table.ToString();
}

Json FloorJson(const Evaluation& evaluation) {
  const bool known = evaluation.positions > 0;
  return {{"q_1e-6", known ? Json(evaluation.floor.scaled_query.kl_mean) : Json()},
          {"f32_cache", known ? Json(evaluation.floor.f32_cache.kl_mean) : Json()}};
}

Json RowJson(const std::string& recipe, const EvaluationRow& row) {
  const bool ok = row.contender.status.ok();
  const Summary& summary = row.summary;
  const auto known = [ok](double value) { return ok ? Json(value) : Json(); };
  return {{"recipe", recipe},
          {"canonical", row.contender.canonical},
          {"bits", known(row.contender.bits)},
          {"true_bits", known(row.contender.true_bits)},
          {"ppl", known(summary.ppl)},
          {"ppl_exact", known(summary.ppl_exact)},
          {"kld_mean", known(summary.kl_mean)},
          {"kld_median", known(summary.kl_median)},
          {"kld_p999", known(summary.kl_p999)},
          {"kld_max", known(summary.kl_max)},
          {"top1", known(summary.same_top)},
          {"rms_delta_p", known(summary.rms_delta)},
          {"ppl_ratio", known(summary.ppl_ratio)},
          {"ppl_ratio_error", known(summary.ppl_ratio_error)},
          {"sink", row.contender.sink_tokens},
          {"recent", row.contender.recent_tokens},
          {"error", ok ? Json() : Json(row.contender.status.message())}};
}

}  // namespace

std::string EvalTable(const EvalReport& report) {
  std::string text;
  const bool any = report.evaluation.positions > 0;
  if (any) {
    text += Header(report) + "\n" + RowsTable(report);
    text +=
        "\nKL in nats against the exact cache, every position read through the cache. The first "
        "`sink`\ntokens, the last `recent` and the page being written stay exact: compare rows in "
        "which they agree.\n";
  }
  for (size_t i = 0; i < report.recipes.size(); ++i) {
    const Status& status = report.evaluation.rows[i].contender.status;
    if (!status.ok()) text += fmt::format("{} failed: {}\n", report.recipes[i], status.message());
  }
  return text;
}

nlohmann::ordered_json EvalJson(const EvalReport& report) {
  const Evaluation& evaluation = report.evaluation;
  Json rows = Json::array();
  for (size_t i = 0; i < report.recipes.size(); ++i) {
    rows.push_back(RowJson(report.recipes[i], evaluation.rows[i]));
  }
  return {{"model", report.model},
          {"context", report.context_tokens},
          {"windows", report.windows},
          {"tokens", evaluation.positions},
          {"floor", FloorJson(evaluation)},
          {"rows", std::move(rows)},
          {"model_name", report.model_name},
          {"text", report.text_name},
          {"weights", WeightsName(report.weights)},
          {"protocol", "streaming"}};
}

std::string EvalCsv(const EvalReport& report) { return CsvOf(EvalJson(report).at("rows")); }

}  // namespace shorthand
