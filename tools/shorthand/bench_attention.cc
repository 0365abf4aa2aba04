// `shorthand bench attention`: attention of a token or of a stretch of a prompt, recipe by recipe,
// beside ggml's own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bench_attention_report.h"
#include "command.h"
#include "plan/units.h"
#include "progress.h"
#include "result_files.h"
#include "shorthand/attention.h"
#include "terminal.h"

namespace shorthand {
namespace {

constexpr const char* kHelp =
    "How long one token's attention over a cache takes, recipe by recipe, beside ggml's flash\n"
    "attention on a cache of its own types with the same shape, length and threads: f16 for exact\n"
    "recipes, q8_0 for 6 bits and more, q4_0 below. Ours and ggml's runs alternate, with the\n"
    "machine's streaming read between them. The cache holds synthetic keys and values; there are\n"
    "as many layers as it takes to leave the CPU's caches. With --queries a stretch of a prompt\n"
    "attends instead of one token.";

constexpr const char* kExamples =
    "Examples:\n"
    "  shorthand bench attention --shape 128,4,8 --length 32k --kv f16 --kv 8bit --kv 4bit\n"
    "      head dim 128, 4 query heads for each of 8 KV heads\n"
    "  shorthand bench attention --shape 128,4,8 --length 1k --kv 4bit --resident\n"
    "      the kernels alone: one layer, which stays in the CPU's cache\n"
    "  shorthand bench attention --length 4k --queries 256 --kv f16 --kv 4bit --resident\n"
    "      a prompt: 256 tokens at once behind 4096 others";

constexpr int64_t kMaxTokens = int64_t{1} << 24;
constexpr int kMaxDim = 1024;
constexpr int kMaxHeads = 1024;
constexpr int kMaxQueries = 4096;

struct Options {
  std::string shape = "128,4,8";
  std::string length = "32k";
  int threads = 1;
  int queries = 1;
  int rounds = 9;
  std::vector<std::string> recipes = {"f16", "8bit", "4bit", "3bit", "2bit"};
  bool resident = false;
  bool json = false;
  std::string csv_file, svg_file;
};

Result<AttentionCase> ParseShape(const std::string& text) {
  std::array<int, 3> numbers{};
  const std::array<int, 3> limits = {kMaxDim, kMaxHeads, kMaxHeads};
  const char* at = text.data();
  const char* const end = at + text.size();
  bool ok = true;
  for (size_t i = 0; i < numbers.size() && ok; ++i) {
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    ok = error == std::errc() && numbers[i] >= 1 && numbers[i] <= limits[i] &&
         (i + 1 < numbers.size() ? next < end && *next == ',' : next == end);
    at = next + 1;
  }
  if (!ok) {
    return InvalidArgument(
        fmt::format("the shape \"{}\"; accepted is D,ROWS,KV_HEADS, three numbers such as 128,4,8, "
                    "up to {},{},{}",
                    text, kMaxDim, kMaxHeads, kMaxHeads));
  }
  return AttentionCase{.dim = numbers[0], .rows = numbers[1], .kv_heads = numbers[2]};
}

// A recipe under measurement.
struct Entry {
  AttentionRow row;
  std::unique_ptr<CacheLane> ours;
  std::unique_ptr<GgmlLane> peer;  // null if ggml has no such attention
  std::vector<double> seconds, peer_seconds;
};

Status Measure(Entry& entry) {
  const auto ours = entry.ours->SecondsPerLayer();
  if (!ours.ok()) return ours.status();
  entry.seconds.push_back(*ours);
  if (entry.peer == nullptr) return OkStatus();
  const auto peer = entry.peer->SecondsPerLayer();
  if (!peer.ok()) return peer.status();
  entry.peer_seconds.push_back(*peer);
  return OkStatus();
}

void Summarize(Entry& entry) {
  AttentionRow& row = entry.row;
  row.seconds = Median(entry.seconds);
  std::vector<double> sorted = entry.seconds;
  std::sort(sorted.begin(), sorted.end());
  row.spread = (sorted[sorted.size() * 3 / 4] - sorted[sorted.size() / 4]) / row.seconds;
  if (!entry.peer_seconds.empty()) row.peer_seconds = Median(entry.peer_seconds);
}

// What all recipes share.
struct Bench {
  AttentionReport report;
  SyntheticRows data;
  ThreadTeam team;
  StreamBuffer stream = {};
  std::vector<double> stream_gb_s = {}, hertz = {};
};

Status OpenLanes(Bench& bench, const Recipe& recipe, Progress& progress, Entry& entry) {
  const AttentionCase& what = bench.report.what;
  auto ours = CacheLane::Open(what, recipe, bench.data, bench.team,
                              [&progress](double share) { progress.Update(share); });
  if (!ours.ok()) return ours.status();
  entry.ours = std::move(*ours);
  entry.row.k_path = entry.ours->k_path();
  entry.row.v_path = entry.ours->v_path();
  entry.row.bytes_per_layer = entry.ours->bytes_per_layer();
  entry.row.layers = entry.ours->layers();
  entry.row.peer = entry.ours->peer();
  const auto error = ArithmeticError(what, recipe, bench.data, bench.team);
  if (!error.ok()) return error.status();
  entry.row.rel_error = *error;
  auto peer = GgmlLane::Open(what, entry.row.peer, bench.data, bench.team.size());
  if (peer.ok()) {
    entry.peer = std::move(*peer);
  } else if (peer.status().code() != StatusCode::kInvalidArgument) {
    return peer.status();
  }
  return OkStatus();
}

// One recipe at a time, so that the memory of one is enough; the first run warms up.
AttentionRow MeasureRecipe(Bench& bench, const std::string& text, const Recipe& recipe) {
  Entry entry;
  entry.row.recipe = text;
  {
    Progress progress("filling " + text);
    entry.row.status = OpenLanes(bench, recipe, progress, entry);
  }
  Progress progress("timing " + text);
  if (entry.row.status.ok()) entry.row.status = Measure(entry);
  entry.seconds.clear();
  entry.peer_seconds.clear();
  for (int round = 0; round < bench.report.rounds && entry.row.status.ok(); ++round) {
    entry.row.status = Measure(entry);
    bench.stream_gb_s.push_back(bench.stream.ReadGbPerSecond(bench.team));
    bench.hertz.push_back(MeasureHertz());
    progress.Update(static_cast<double>(round + 1) / bench.report.rounds);
  }
  if (entry.row.status.ok()) Summarize(entry);
  return entry.row;
}

Result<AttentionReport> RunAll(const Options& options, const AttentionCase& what,
                               const std::vector<Recipe>& recipes) {
  const auto target = ActiveTarget();
  if (!target.ok()) return target.status();
  Bench bench{.report = {.what = what,
                         .threads = options.threads,
                         .rounds = options.rounds,
                         .load = LoadAverage(),
                         .target = target->name},
              .data = SyntheticRows(),
              .team = ThreadTeam(options.threads)};
  if (!bench.stream.ok()) {
    return ResourceExhausted("the system has no 1 GiB of memory for the streaming read");
  }
  WarnIfBusy();
  for (size_t i = 0; i < recipes.size(); ++i) {
    bench.report.rows.push_back(MeasureRecipe(bench, options.recipes[i], recipes[i]));
  }
  const auto& rows = bench.report.rows;
  if (std::none_of(rows.begin(), rows.end(), [](const auto& row) { return row.status.ok(); })) {
    return rows[0].status;
  }
  bench.report.stream_gb_s = Median(bench.stream_gb_s);
  bench.report.hertz = Median(bench.hertz);
  return bench.report;
}

Status CheckMemory(const AttentionCase& what) {
  // Of one layer, at 4 bytes a value on either side of the comparison.
  const double bytes = 16.0 * what.dim * what.kv_heads * static_cast<double>(what.length);
  if (bytes <= static_cast<double>(PhysicalMemoryBytes())) return OkStatus();
  return ResourceExhausted(fmt::format(
      "{} tokens of {} KV heads do not fit into this machine's memory twice; a shorter length "
      "works",
      what.length, what.kv_heads));
}

int RunBench(const Options& options) {
  auto what = ParseShape(options.shape);
  if (!what.ok()) return FailUsage(what.status());
  const auto length = ParseTokens(options.length, kMaxTokens);
  if (!length.ok()) return FailUsage(length.status());
  what->length = *length;
  what->queries = options.queries;
  what->working_set = options.resident ? WorkingSet::kResident : WorkingSet::kStreamed;
  const auto recipes = ParseRecipes(options.recipes);
  if (!recipes.ok()) return FailUsage(recipes.status());
  for (const std::string& path : {options.csv_file, options.svg_file}) {
    if (Status status = CheckWritable(path); !status.ok()) return FailUsage(status);
  }
  if (Status status = CheckMemory(*what); !status.ok()) return Fail(status);
  const auto report = RunAll(options, *what, *recipes);
  if (!report.ok()) return Fail(report.status());
  if (options.json) {
    PrintJson(AttentionJson(*report));
  } else {
    fmt::print("{}", AttentionTable(*report));
  }
  if (Status status = WriteText(options.csv_file, AttentionCsv(*report)); !status.ok()) {
    return Fail(status);
  }
  const Status drawn = WriteText(options.svg_file, AttentionSvg(*report));
  return drawn.ok() ? kExitDone : Fail(drawn);
}

}  // namespace

Runner DeclareBenchAttention(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.description(kHelp);
  app.footer(kExamples);
  app.add_option("--shape", options->shape,
                 "Head dim, query heads for each KV head, KV heads; default 128,4,8")
      ->type_name("D,ROWS,KV_HEADS");
  app.add_option("--length", options->length, "Tokens in the cache; default 32k")->type_name("N");
  app.add_option("-t,--threads", options->threads, "Compute threads; default 1")
      ->type_name("N")
      ->check(CLI::Range(1, 512).description(""));
  app.add_option("--queries", options->queries, "Tokens that attend at once; default 1, decoding")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxQueries).description(""));
  app.add_option("--kv", options->recipes,
                 "A recipe; repeat it for several. Default: f16, 8bit, 4bit, 3bit, 2bit")
      ->type_name("R")
      ->allow_extra_args(false);
  app.add_option("--rounds", options->rounds, "Alternations, of which the median counts; default 9")
      ->type_name("N")
      ->check(CLI::Range(1, 10000).description(""));
  app.add_flag("--resident", options->resident,
               "One layer alone: a short length then stays in the CPU's cache");
  app.add_option("--csv", options->csv_file, "Write the rows to a file, too")->type_name("FILE");
  app.add_option("--svg", options->svg_file, "Draw the rows to a file, too")->type_name("FILE");
  app.add_flag("--json", options->json, "The same for programs");
  return [options] { return RunBench(*options); };
}

}  // namespace shorthand
