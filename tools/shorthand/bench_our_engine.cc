#include <utility>

#include "bench_data.h"
#include "bench_engines.h"
#include "bench_tokens.h"

namespace shorthand {
namespace {

class OurRunner {
 public:
  OurRunner(Model& model, std::unique_ptr<Cache> cache, const EngineRoom& room)
      : model_(model),
        cache_(std::move(cache)),
        room_(room),
        team_(model.threads()),
        sequence_(cache_->Create()) {}

  Status Reach(int64_t depth) {
    return FillTo(*cache_, sequence_, depth, data_, team_, [](double) {});
  }

  Result<double> Decode() {
    return OnFork([this](SequenceId fork) -> Result<double> {
      const std::vector<Token> tokens = AnyTokens(room_.decode_tokens + 1, model_.vocab().size());
      const std::span<const Token> all = tokens;
      if (Status status = Step(fork, all.first(1)); !status.ok()) return status;
      const double begin = WorkSeconds(model_.threads());
      for (size_t i = 1; i < all.size(); ++i) {
        if (Status status = Step(fork, all.subspan(i, 1)); !status.ok()) return status;
      }
      return (WorkSeconds(model_.threads()) - begin) / room_.decode_tokens;
    });
  }

  Result<double> Prefill() {
    return OnFork([this](SequenceId fork) -> Result<double> {
      const std::vector<Token> tokens = AnyTokens(room_.prompt_tokens, model_.vocab().size());
      const double begin = WorkSeconds(model_.threads());
      if (Status status = Step(fork, tokens); !status.ok()) return status;
      return WorkSeconds(model_.threads()) - begin;
    });
  }

 private:
  // Works on a copy, so that the sequence keeps its depth.
  Result<double> OnFork(const std::function<Result<double>(SequenceId)>& work) {
    const auto fork = cache_->Fork(sequence_);
    if (!fork.ok()) return fork.status();
    const Result<double> result = work(*fork);
    if (Status status = cache_->Release(*fork); !status.ok()) return status;
    return result;
  }

  Status Step(SequenceId sequence, std::span<const Token> tokens) {
    const BatchItem item = {.sequence = sequence, .tokens = static_cast<int>(tokens.size())};
    auto batch = cache_->Begin({&item, 1});
    if (!batch.ok()) return batch.status();
    const int32_t last = static_cast<int32_t>(tokens.size()) - 1;
    const auto logits = model_.Forward(**batch, tokens, {&last, 1});
    if (!logits.ok()) return logits.status();
    return (*batch)->Commit();
  }

  Model& model_;
  std::unique_ptr<Cache> cache_;
  EngineRoom room_;
  SyntheticRows data_;
  ThreadTeam team_;
  SequenceId sequence_;
};

}  // namespace

Result<Engine> OurEngine(Model& model, const std::string& recipe_text, const Recipe& recipe,
                         const Calibration* calibration, const EngineRoom& room) {
  auto cache = Cache::Open(model.shape(), recipe, {.calibration = calibration});
  if (!cache.ok()) return cache.status();
  const auto engine = std::make_shared<OurRunner>(model, std::move(*cache), room);
  return Engine{.name = "shorthand",
                .recipe = recipe_text,
                .filling = "synthetic keys and values, written and sealed",
                .reach = [engine](int64_t depth) { return engine->Reach(depth); },
                .decode = [engine] { return engine->Decode(); },
                .prefill = [engine] { return engine->Prefill(); }};
}

}  // namespace shorthand
