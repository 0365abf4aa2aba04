// `shorthand plot memory`: weights and cache of a model against a memory, as bars.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "command.h"
#include "model_shape.h"
#include "plan/units.h"
#include "plan_request.h"
#include "result_files.h"
#include "svg.h"

namespace shorthand {
namespace {

struct Options {
  PlanOptions plan;
  std::string output_file;
};

constexpr double kWidth = 720, kLeft = 110, kRight = kWidth - 160, kTop = 64, kBar = 30;

std::string Verdict(const PlanRow& row) {
  if (!row.fit) return FormatSize(row.total_bytes.value_or(row.allocated_bytes));
  return row.fit->fits ? fmt::format("fits, {} to spare", FormatSize(row.fit->spare_bytes))
                       : fmt::format("{} too much", FormatSize(-row.fit->spare_bytes));
}

std::string Picture(const ModelShape& model, const PlanRequest& request, const Plan& plan) {
  const uint64_t weights = plan.weights_bytes.value_or(0);
  uint64_t most = std::max<uint64_t>(request.memory_bytes, 1);
  for (const PlanRow& row : plan.rows) most = std::max(most, weights + row.allocated_bytes);
  const auto length = [&](uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(most) * (kRight - kLeft);
  };
  std::string body =
      SvgText(16, 44, "start",
              fmt::format("{} user{} with {} tokens each; f16 takes {} a token{}", request.users,
                          request.users == 1 ? "" : "s", FormatTokens(request.context_tokens),
                          FormatSize(plan.kv_bytes_per_token_f16),
                          weights > 0 ? fmt::format("; weights {}", FormatSize(weights)) : ""));
  double y = kTop;
  for (const PlanRow& row : plan.rows) {
    if (!row.status.ok()) continue;
    body += SvgText(kLeft - 8, y + 17, "end", row.recipe);
    body += SvgRect(kLeft, y + 3, length(weights), kBar - 9, "#b0b0b0");
    body += SvgRect(kLeft + length(weights), y + 3, length(row.allocated_bytes), kBar - 9,
                    row.fit && !row.fit->fits ? kChartColors[1] : kChartColors[0]);
    body += SvgText(kRight + 10, y + 17, "start", Verdict(row));
    y += kBar;
  }
  if (request.memory_bytes > 0) {
    const double x = kLeft + length(request.memory_bytes);
    body += fmt::format(
        "<path d=\"M{0:.1f} {1}V{2:.1f}\" stroke=\"black\" stroke-dasharray=\"4 3\"/>\n", x,
        kTop - 4, y + 4);
    body += SvgText(x, y + 18, "middle", FormatDecimalSize(request.memory_bytes));
  }
  body +=
      SvgRect(kLeft, y + 28, 12, 12, "#b0b0b0") + SvgText(kLeft + 18, y + 38, "start", "weights");
  body += SvgRect(kLeft + 90, y + 28, 12, 12, kChartColors[0]) +
          SvgText(kLeft + 108, y + 38, "start", "cache");
  return SvgDocument(kWidth, y + 54, fmt::format("{}: what fits", model.shape.name), body);
}

int RunPlotMemory(const Options& options) {
  if (Status status = CheckWritable(options.output_file); !status.ok()) return Fail(status);
  const auto model = ShapeFromArgument(options.plan.model);
  if (!model.ok()) return Fail(model.status());
  const auto request = RequestOf(options.plan, *model);
  if (!request.ok()) return FailUsage(request.status());
  const auto plan = MakePlan(*model, *request);
  if (!plan.ok()) return FailUsage(plan.status());
  const Status written = WriteText(options.output_file, Picture(*model, *request, *plan));
  return written.ok() ? kExitDone : Fail(written);
}

}  // namespace

Runner DeclarePlotMemory(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.footer(
      "Weights and cache stacked, a bar for each recipe, with a line where the memory ends.\n"
      "`shorthand plan` has the same as numbers.\n\n"
      "Example:\n"
      "  shorthand plot memory Llama-3-8B -c 32k --users 8 --memory 24GB -o memory.svg");
  AddPlanOptions(app, options->plan);
  AddPictureOption(app, options->output_file);
  return [options] { return RunPlotMemory(*options); };
}

}  // namespace shorthand
