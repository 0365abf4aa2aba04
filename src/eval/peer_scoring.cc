#include "eval/peer_scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "eval/lane.h"
#include "eval/turns.h"

namespace shorthand {
namespace {

double BitsOf(ggml_type type) {
  return 8.0 * static_cast<double>(ggml_type_size(type)) /
         static_cast<double>(ggml_blck_size(type));
}

// Numbers of keys and of values that a token has over all layers.
struct RowSize {
  double k = 0, v = 0;
};
RowSize RowSizeOf(const Shape& shape) {
  RowSize size;
  for (const LayerShape& layer : shape.layers) {
    if (layer.kv_owner >= 0) continue;
    size.k += layer.kv_heads * layer.k_dim;
    size.v += layer.kv_heads * layer.v_dim;
  }
  return size;
}

double BitsOf(const Shape& shape, const LlamaCacheType& type) {
  const RowSize size = RowSizeOf(shape);
  return (size.k * BitsOf(type.k) + size.v * BitsOf(type.v)) / (size.k + size.v);
}

class PeerScorer {
 public:
  PeerScorer(const LlamaWeights& weights, int threads, const Shape& shape, ScoreBook& book,
             const ScoreOptions& options)
      : weights_(weights),
        threads_(threads),
        shape_(shape),
        book_(book),
        options_(options),
        exact_logits_(VocabularyOf(weights), threads) {}

  Status Run(std::span<const Passage> passages, std::span<const LlamaCacheType> types);
  LaneFailures TakeFailures() { return std::move(failures_); }

 private:
  struct OpenPeer {
    std::string lane;
    std::unique_ptr<LlamaPeer> peer;
    std::vector<PositionScore> scores = {};
    Status status = {};
  };

  uint64_t BytesOf(const LlamaCacheType& type, int64_t tokens) const;
  std::vector<std::vector<LlamaCacheType>> TurnsOf(const Passage& passage,
                                                   std::span<const LlamaCacheType> types) const;
  Result<std::unique_ptr<LlamaPeer>> Open(const LlamaCacheType& type, const Passage& passage) const;
  Status RunTurn(const Passage& passage, std::span<const LlamaCacheType> types);
  // Does nothing after a failure.
  void Feed(const Chunk& chunk, OpenPeer& peer);

  const LlamaWeights& weights_;
  const int threads_;
  const Shape& shape_;
  ScoreBook& book_;
  const ScoreOptions& options_;
  ExactLogits exact_logits_;
  LaneFailures failures_;
  WorkDone work_;
};

// The cache, and the logits of a step: llama.cpp reserves room for them twice.
uint64_t PeerScorer::BytesOf(const LlamaCacheType& type, int64_t tokens) const {
  const RowSize size = RowSizeOf(shape_);
  const double cache =
      (size.k * BitsOf(type.k) + size.v * BitsOf(type.v)) / 8 * static_cast<double>(tokens);
  return static_cast<uint64_t>(cache) +
         2 * sizeof(float) * static_cast<uint64_t>(VocabularyOf(weights_)) * kScoredChunkTokens;
}

std::vector<std::vector<LlamaCacheType>> PeerScorer::TurnsOf(
    const Passage& passage, std::span<const LlamaCacheType> types) const {
  const auto tokens = static_cast<int64_t>(passage.tokens.size());
  Turns<LlamaCacheType> turns(options_.memory_bytes, BytesOf({}, tokens));
  for (const LlamaCacheType& type : types) {
    const std::string lane = LaneOf(type);
    if (book_.Find(PassageId(passage), lane) != nullptr || failures_.contains(lane)) continue;
    turns.Add(type, BytesOf(type, tokens));
  }
  return turns.Take();
}

Status PeerScorer::Run(std::span<const Passage> passages, std::span<const LlamaCacheType> types) {
  for (const Passage& passage : passages) {
    for (const auto& turn : TurnsOf(passage, types)) work_.Expect(passage, turn.size() + 1);
  }
  for (const Passage& passage : passages) {
    for (const auto& turn : TurnsOf(passage, types)) {
      if (Status status = RunTurn(passage, turn); !status.ok()) return status;
    }
  }
  return OkStatus();
}

Result<std::unique_ptr<LlamaPeer>> PeerScorer::Open(const LlamaCacheType& type,
                                                    const Passage& passage) const {
  return LlamaPeer::Open(weights_, {.type = type,
                                    .threads = threads_,
                                    .context_tokens = static_cast<int>(passage.tokens.size()),
                                    .chunk_tokens = static_cast<int>(kPromptTokensAtOnce)});
}

Status PeerScorer::RunTurn(const Passage& passage, std::span<const LlamaCacheType> types) {
  const auto exact = Open({}, passage);
  if (!exact.ok()) return exact.status();
  std::vector<OpenPeer> peers;
  for (const LlamaCacheType& type : types) {
    auto peer = Open(type, passage);
    peers.push_back({.lane = LaneOf(type), .peer = nullptr, .status = peer.status()});
    if (peer.ok()) peers.back().peer = std::move(*peer);
  }
  for (const Chunk& chunk : ChunksOf(passage)) {
    const auto logits = (*exact)->Feed(chunk.tokens, chunk.targets.size());
    if (!logits.ok()) return logits.status();
    exact_logits_.Set(*logits, chunk.targets);
    Status status = work_.Report(chunk, options_.on_progress, options_.stop);
    for (OpenPeer& peer : peers) {
      if (!status.ok()) return status;
      Feed(chunk, peer);
      status = work_.Report(chunk, options_.on_progress, options_.stop);
    }
    if (!status.ok()) return status;
  }
  for (OpenPeer& peer : peers) {
    if (peer.status.ok()) {
      book_.Put(PassageId(passage), peer.lane, std::move(peer.scores));
    } else {
      failures_[peer.lane] = peer.status;
    }
  }
  return book_.Save();
}

void PeerScorer::Feed(const Chunk& chunk, OpenPeer& peer) {
  if (!peer.status.ok()) return;
  const auto logits = peer.peer->Feed(chunk.tokens, chunk.targets.size());
  peer.status = logits.ok() ? CompareFinite(exact_logits_, *logits, peer.scores) : logits.status();
}

}  // namespace

std::string LaneOf(const LlamaCacheType& type) {
  return fmt::format("llama.cpp {} {}", llama_version(), ToString(type));
}

Result<LaneFailures> ScorePeers(const LlamaWeights& weights, int threads, const Shape& shape,
                                std::span<const Passage> passages,
                                std::span<const LlamaCacheType> types, ScoreBook& book,
                                const ScoreOptions& options) {
  PeerScorer scorer(weights, threads, shape, book, options);
  if (Status status = scorer.Run(passages, types); !status.ok()) return status;
  return scorer.TakeFailures();
}

Contender ContenderOf(const Shape& shape, const LlamaCacheType& type,
                      const LaneFailures& failures) {
  const double bits = BitsOf(shape, type);
  Contender contender = {.program = Program::kLlama,
                         .lane = LaneOf(type),
                         .canonical = ToString(type),
                         .bits = bits,
                         .true_bits = bits};
  if (const auto failure = failures.find(contender.lane); failure != failures.end()) {
    contender.status = failure->second;
  }
  return contender;
}

}  // namespace shorthand
