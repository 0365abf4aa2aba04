#include "model/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "model/utf8.h"

namespace shorthand {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double Rate(int64_t tokens, double seconds) {
  return tokens > 0 && seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Open(Model& model, const Recipe& recipe,
                                               const SessionOptions& options) {
  const int64_t most = model.shape().max_context_tokens;
  if (options.context_tokens < 0 || options.context_tokens > most) {
    return OutOfRange(fmt::format("a context of {} tokens; this model was made for 1 to {}",
                                  options.context_tokens, most));
  }
  if (options.chunk_tokens < 1) {
    return InvalidArgument(
        fmt::format("prompt chunks of {} tokens; at least 1 is accepted", options.chunk_tokens));
  }
  Result<std::unique_ptr<Cache>> cache = Cache::Open(model.shape(), recipe, options.cache);
  if (!cache.ok()) return cache.status();
  const int64_t context = options.context_tokens > 0 ? options.context_tokens : most;
  return std::unique_ptr<Session>(
      new Session(model, std::move(*cache), context, options.chunk_tokens));
}

Session::Session(Model& model, std::unique_ptr<Cache> cache, int64_t context_tokens,
                 int chunk_tokens)
    : model_(model),
      cache_(std::move(cache)),
      sequence_(cache_->Create()),
      context_tokens_(context_tokens),
      chunk_tokens_(chunk_tokens) {}

Result<std::span<const float>> Session::Feed(std::span<const Token> tokens) {
  if (tokens.empty()) return InvalidArgument("the prompt is empty; at least one token is needed");
  const int64_t count = static_cast<int64_t>(tokens.size());
  if (count > context_tokens_ - tokens_) {
    return OutOfRange(tokens_ == 0
                          ? fmt::format("the prompt has {} tokens, but the context holds {}", count,
                                        context_tokens_)
                          : fmt::format("{} more tokens, but the context of {} holds {} already",
                                        count, context_tokens_, tokens_));
  }
  while (tokens.size() > static_cast<size_t>(chunk_tokens_)) {
    const Result<std::span<const float>> stored = FeedChunk(tokens.first(chunk_tokens_), {});
    if (!stored.ok()) return stored;
    tokens = tokens.subspan(chunk_tokens_);
  }
  const std::array<int32_t, 1> last = {static_cast<int32_t>(tokens.size()) - 1};
  return FeedChunk(tokens, last);
}

Result<std::span<const float>> Session::FeedChunk(std::span<const Token> tokens,
                                                  std::span<const int32_t> output_rows) {
  const BatchItem item = {.sequence = sequence_, .tokens = static_cast<int>(tokens.size())};
  Result<std::unique_ptr<Batch>> batch = cache_->Begin({&item, 1});
  if (!batch.ok()) return batch.status();
  Result<std::span<const float>> logits = model_.Forward(**batch, tokens, output_rows);
  if (!logits.ok()) return logits;
  if (Status status = (*batch)->Commit(); !status.ok()) return status;
  tokens_ += static_cast<int64_t>(tokens.size());
  return logits;
}

Status Session::Clear() {
  if (Status status = cache_->Release(sequence_); !status.ok()) return status;
  sequence_ = cache_->Create();
  tokens_ = 0;
  return OkStatus();
}

Result<std::unique_ptr<Sampler>> Sampler::Create(const SamplingOptions& options) {
  if (!(options.temperature >= 0 && options.temperature <= 100)) {
    return InvalidArgument(
        fmt::format("a temperature of {}; 0 to 100 is accepted", options.temperature));
  }
  if (options.top_k < 0) {
    return InvalidArgument(fmt::format("a top-k of {}; 0 or more is accepted", options.top_k));
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return InvalidArgument(fmt::format("a top-p of {}; above 0, to 1, is accepted", options.top_p));
  }
  if (!(options.min_p >= 0 && options.min_p <= 1)) {
    return InvalidArgument(fmt::format("a min-p of {}; 0 to 1 is accepted", options.min_p));
  }
  if (options.temperature == 0) return std::unique_ptr<Sampler>(new Sampler(nullptr));
  llama_sampler_ptr chain(llama_sampler_chain_init({.no_perf = true}));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_top_k(options.top_k));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_top_p(options.top_p, 1));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_min_p(options.min_p, 1));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_temp(options.temperature));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_dist(options.seed));
  return std::unique_ptr<Sampler>(new Sampler(std::move(chain)));
}

Result<Token> Sampler::Sample(std::span<const float> logits) {
  if (!std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) {
    return DataLoss("the model's output is not a number; its weights may be damaged");
  }
  if (chain_ == nullptr) {
    return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  candidates_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates_[i] = {static_cast<Token>(i), logits[i], 0.0f};
  }
  llama_token_data_array list = {candidates_.data(), candidates_.size(), -1, false};
  llama_sampler_apply(chain_.get(), &list);
  const Token token = list.data[list.selected].id;
  llama_sampler_accept(chain_.get(), token);
  return token;
}

double Generation::prompt_tokens_per_second() const { return Rate(prompt_tokens, prompt_seconds); }
double Generation::decode_tokens_per_second() const { return Rate(tokens - 1, decode_seconds); }

Result<Generation> Generate(Session& session, Sampler& sampler, std::span<const Token> prompt,
                            const GenerateOptions& options) {
  const Vocab& vocab = session.model().vocab();
  Generation result;
  result.prompt_tokens = static_cast<int64_t>(prompt.size());
  Clock::time_point begin = Clock::now();
  Result<std::span<const float>> logits = session.Feed(prompt);
  if (!logits.ok()) return logits.status();
  result.prompt_seconds = SecondsSince(begin);

  begin = Clock::now();
  size_t shown = 0;
  for (;;) {
    const Result<Token> token = sampler.Sample(*logits);
    if (!token.ok()) return token.status();
    ++result.tokens;
    result.decode_seconds = SecondsSince(begin);
    result.cached_text_bytes = result.text.size();
    if (vocab.IsEnd(*token)) {
      result.stop = StopReason::kEndOfText;
      break;
    }
    result.text += vocab.Piece(*token);
    const size_t whole = WholeCharacters(result.text);
    if (whole > shown && options.on_text) {
      const bool go_on =
          options.on_text(std::string_view(result.text).substr(shown, whole - shown));
      shown = whole;
      if (!go_on) {
        result.stop = StopReason::kCaller;
        break;
      }
    }
    if (options.max_tokens > 0 && result.tokens >= options.max_tokens) {
      result.stop = StopReason::kMaxTokens;
      break;
    }
    if (session.tokens() >= session.context_tokens()) {
      result.stop = StopReason::kContextFull;
      break;
    }
    logits = session.Feed({&*token, 1});
    if (!logits.ok()) return logits.status();
  }
  return result;
}

}  // namespace shorthand
