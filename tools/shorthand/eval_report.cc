#include "eval_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llama.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "eval_tasks_report.h"
#include "plan/units.h"
#include "result_files.h"
#include "results.h"
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

std::string_view Plural(int64_t count) { return count == 1 ? "" : "s"; }

std::string FloorLine(const NoiseFloor& floor) {
  return fmt::format("mean KL {} with queries times 1 + 1e-6, {} with an f32 cache",
                     Nats(floor.scaled_query.kl_mean), Nats(floor.f32_cache.kl_mean));
}

std::string TextLine(const TextPassages& text, int64_t context_tokens) {
  return fmt::format("{}: {} window{} of {} tokens", text.name, text.passages.size(),
                     Plural(text.passages.size()), FormatTokens(context_tokens));
}

std::string Header(const EvalReport& report, const ContextReport& context) {
  const Evaluation& evaluation = context.evaluation;
  std::string text =
      fmt::format("{}: {}\n", Styled(Style::kStrong, report.model), report.shape.name);
  for (const TextPassages& passages : context.texts) {
    text += Line("text", TextLine(passages, context.tokens));
  }
  text += Line("scored", fmt::format("{} positions, from {} on in each window",
                                     evaluation.positions, context.first_scored()));
  text += Line("protocol", report.protocol == Protocol::kPaper
                               ? "paper: the tokens before them are attended exactly, then sealed"
                               : "streaming: every token reads the cache as decoding would");
  text += Line("weights", report.weights == Precision::kF32
                              ? "expanded to f32"
                              : "as in the file: products round activations, see the noise floor");
  text += Line("exact", fmt::format("f16 cache, perplexity {:.4f}", evaluation.ppl_exact));
  text += Line("noise floor", FloorLine(evaluation.floor));
  const auto is_peer = [](const auto& row) { return row.contender.program == Program::kLlama; };
  if (std::any_of(evaluation.rows.begin(), evaluation.rows.end(), is_peer)) {
    text += Line("llama.cpp", std::string(llama_version()) +
                                  ": the same weights; its rows against its own f16 cache");
  }
  return text;
}

std::vector<Cell> RowCells(const std::string& name, const EvaluationRow& row) {
  const Summary& summary = row.summary;
  return {{name},
          {fmt::format("{}", row.contender.sink_tokens)},
          {fmt::format("{}", row.contender.recent_tokens)},
          {fmt::format("{:.2f}", row.contender.bits)},
          {fmt::format("{:.2f}", row.contender.true_bits)},
          {Nats(summary.kl_mean), Style::kStrong},
          {Nats(summary.kl_mean_error)},
          {Nats(summary.kl_median)},
          {Nats(summary.kl_p999)},
          {Nats(summary.kl_max)},
          {fmt::format("{:.2f} %", summary.same_top * 100)},
          {fmt::format("{:.3f} %", summary.rms_delta * 100)},
          {fmt::format("{:.4f}", summary.ppl)},
          {fmt::format("{:.5f} +- {:.5f}", summary.ppl_ratio, summary.ppl_ratio_error)}};
}

Table RowsTable(const EvalReport& report, const ContextReport& context) {
  Table table;
  table.AddColumn("recipe", Table::Align::kLeft);
  for (const char* title : {"sink", "recent", "bits", "true bits", "KL mean", "+-", "median",
                            "99.9 %", "max", "same top-1", "rms dp", "ppl", "ppl ratio"}) {
    table.AddColumn(title, Table::Align::kRight);
  }
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const EvaluationRow& row = context.evaluation.rows[i];
    if (row.contender.status.ok()) table.AddRow(RowCells(report.rows[i], row));
  }
  return table;
}

// The rows that have no figures, a line each.
std::string FailureLines(const EvalReport& report, const ContextReport& context) {
  std::string text;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const Status& status = context.evaluation.rows[i].contender.status;
    if (!status.ok()) text += fmt::format("{} failed: {}\n", report.rows[i], status.message());
  }
  return text;
}

Json FloorJson(const Evaluation& evaluation) {
  const bool known = evaluation.positions > 0;
  return {{"q_1e-6", known ? Json(evaluation.floor.scaled_query.kl_mean) : Json()},
          {"f32_cache", known ? Json(evaluation.floor.f32_cache.kl_mean) : Json()}};
}

// What one text contributes to a row.
Json TextJson(const TextPassages& text, const Summary& summary) {
  return {{"text", text.name},
          {"windows", text.passages.size()},
          {"tokens", summary.positions},
          {"kld_mean", summary.kl_mean},
          {"kld_mean_error", summary.kl_mean_error},
          {"kld_p999", summary.kl_p999},
          {"kld_max", summary.kl_max},
          {"top1", summary.same_top},
          {"ppl", summary.ppl},
          {"ppl_exact", summary.ppl_exact}};
}

Json RowJson(const std::string& name, const ContextReport& context, const EvaluationRow& row) {
  const Contender& contender = row.contender;
  const bool ok = contender.status.ok();
  const Summary& summary = row.summary;
  const auto known = [ok](double value) { return ok ? Json(value) : Json(); };
  Json texts = Json::array();
  for (size_t i = 0; i < row.texts.size(); ++i) {
    texts.push_back(TextJson(context.texts[i], row.texts[i]));
  }
  return {{"recipe", name},
          {"program", contender.program == Program::kLlama ? "llama.cpp" : "shorthand"},
          {"canonical", contender.canonical},
          {"context", context.tokens},
          {"bits", known(contender.bits)},
          {"true_bits", known(contender.true_bits)},
          {"ppl", known(summary.ppl)},
          {"ppl_exact", known(summary.ppl_exact)},
          {"kld_mean", known(summary.kl_mean)},
          {"kld_mean_error", known(summary.kl_mean_error)},
          {"kld_median", known(summary.kl_median)},
          {"kld_p999", known(summary.kl_p999)},
          {"kld_max", known(summary.kl_max)},
          {"top1", known(summary.same_top)},
          {"rms_delta_p", known(summary.rms_delta)},
          {"ppl_ratio", known(summary.ppl_ratio)},
          {"ppl_ratio_error", known(summary.ppl_ratio_error)},
          {"sink", contender.sink_tokens},
          {"recent", contender.recent_tokens},
          {"texts", std::move(texts)},
          {"error", ok ? Json() : Json(contender.status.message())}};
}

Json ContextJson(const EvalReport& report, const ContextReport& context) {
  const Evaluation& evaluation = context.evaluation;
  Json rows = Json::array();
  for (size_t i = 0; i < report.rows.size(); ++i) {
    rows.push_back(RowJson(report.rows[i], context, evaluation.rows[i]));
    AddTaskFields(context, i, rows.back());
  }
  std::vector<std::string> names;
  for (const TextPassages& text : context.texts) names.push_back(text.name);
  return {{"model", report.model},
          {"context", context.tokens},
          {"windows", context.windows()},
          {"tokens", evaluation.positions},
          {"floor", FloorJson(evaluation)},
          {"rows", std::move(rows)},
          {"model_name", report.shape.name},
          {"text", fmt::format("{}", fmt::join(names, ", "))},
          {"weights", WeightsName(report.weights)},
          {"protocol", ProtocolName(report.protocol)},
          {"first_scored", context.first_scored()}};
}

}  // namespace

std::string_view WeightsName(Precision weights) {
  return weights == Precision::kF32 ? "f32" : "native";
}

std::string_view ProtocolName(Protocol protocol) {
  return protocol == Protocol::kStreaming ? "streaming" : "paper";
}

int64_t ContextReport::windows() const {
  int64_t windows = 0;
  for (const TextPassages& text : texts) windows += static_cast<int64_t>(text.passages.size());
  return windows;
}

bool EvalReport::any_row() const {
  return std::any_of(contexts.begin(), contexts.end(),
                     [](const auto& context) { return context.evaluation.any_row(); });
}

std::string EvalTable(const EvalReport& report) {
  std::string text;
  for (const ContextReport& context : report.contexts) {
    if (!text.empty()) text += "\n";
    if (context.evaluation.positions > 0) {
      text += Header(report, context) + "\n" + RowsTable(report, context).ToString();
    }
    text += FailureLines(report, context);
    for (const auto& [title, table] : TaskTables(report, context)) {
      text += "\n" + title + "\n" + table.ToString();
    }
  }
  if (!report.any_row()) return text;
  return text +
         "\nKL in nats against the exact cache; +- is the standard error of its mean. The first "
         "`sink`\n"
         "tokens, the last `recent` and the page being written stay exact: compare rows in which "
         "they\n"
         "agree.\n";
}

std::string EvalSvg(const EvalReport& report) {
  return KlChart({ContextJson(report, report.contexts.front())});
}

std::string EvalMarkdown(const EvalReport& report) {
  std::string text;
  for (const ContextReport& context : report.contexts) {
    const Evaluation& evaluation = context.evaluation;
    std::vector<std::string> texts;
    for (const TextPassages& passages : context.texts) {
      texts.push_back(TextLine(passages, context.tokens));
    }
    if (!text.empty()) text += "\n";
    text += fmt::format(
        "{} ({} weights), {}; {} positions, {} protocol. Exact: perplexity {:.4f}. Noise floor: "
        "{}.\n\n",
        report.model, WeightsName(report.weights), fmt::join(texts, "; "), evaluation.positions,
        ProtocolName(report.protocol), evaluation.ppl_exact, FloorLine(evaluation.floor));
    text += RowsTable(report, context).ToMarkdown();
    const std::string failures = FailureLines(report, context);
    if (!failures.empty()) text += "\n" + failures;
    for (const auto& [title, table] : TaskTables(report, context)) {
      text += "\n" + title + ".\n\n" + table.ToMarkdown();
    }
  }
  return text;
}

nlohmann::ordered_json EvalJson(const EvalReport& report) {
  if (report.contexts.size() == 1) return ContextJson(report, report.contexts[0]);
  Json all = Json::array();
  for (const ContextReport& context : report.contexts) all.push_back(ContextJson(report, context));
  return all;
}

std::string EvalCsv(const EvalReport& report) {
  Json rows = Json::array();
  for (const ContextReport& context : report.contexts) {
    const Json object = ContextJson(report, context);
    for (Json row : object.at("rows")) {
      for (const char* nested : {"texts", "needle", "greedy", "layers"}) row.erase(nested);
      rows.push_back(std::move(row));
    }
  }
  return CsvOf(rows);
}

}  // namespace shorthand
