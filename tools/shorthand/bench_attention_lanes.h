// Lanes of `shorthand bench attention`: attention of one token, or of a stretch of a prompt, ours
// over a cache and ggml's over its own tensors, of the same shape and length.
//
// A lane rotates over layers of its own, so that what it reads has left the caches by the time it
// comes round again; layers beyond that are not made.
// Thread-safety: one thread drives a lane, which works with the team's threads.
#ifndef SHORTHAND_TOOLS_BENCH_ATTENTION_LANES_H_
#define SHORTHAND_TOOLS_BENCH_ATTENTION_LANES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench_data.h"
#include "bench_machine.h"
#include "shorthand/cache.h"

namespace shorthand {

enum class WorkingSet { kStreamed, kResident };  // many layers, or one

struct AttentionCase {
  int dim = 0;
  int rows = 0;  // query heads that share a KV head
  int kv_heads = 0;
  int64_t length = 0;  // tokens before those of the queries
  int queries = 1;     // tokens that attend at once; the first sees `length` others
  WorkingSet working_set = WorkingSet::kStreamed;

  // `layers` layers of this case.
  Shape ShapeOf(int layers) const;
};

// ggml's cache type that a recipe is compared with.
enum class PeerType { kF16, kQ8_0, kQ4_0 };
const char* NameOf(PeerType type);

class CacheLane {
 public:
  // Errors: those of Cache::Open and Cache::Begin.
  static Result<std::unique_ptr<CacheLane>> Open(const AttentionCase& what, const Recipe& recipe,
                                                 const SyntheticRows& data, ThreadTeam& team,
                                                 const std::function<void(double)>& on_progress);

  // A plan and attention over every layer, as often as it takes to be timed; the tokens that attend
  // are not kept. Errors: those of Cache::Begin and AttentionPlan::Create.
  Result<double> SecondsPerLayer();

  int layers() const { return static_cast<int>(cache_->shape().layers.size()); }
  uint64_t bytes_per_layer() const { return cache_->Stats().logical_bytes / layers(); }
  // "exact", "integer", "generic" or "unsealed": how the sealed pages of K and of V are read.
  std::string k_path() const;
  std::string v_path() const;
  PeerType peer() const;

 private:
  CacheLane(std::unique_ptr<Cache> cache, int queries, const SyntheticRows& data, ThreadTeam& team);

  std::unique_ptr<Cache> cache_;
  int queries_;
  const SyntheticRows& data_;
  ThreadTeam& team_;
  SequenceId sequence_;
  std::vector<float> q_, out_;
};

// Relative error (root mean square) of our attention against double precision over what the pages
// hold, on a cache of at most 1000 tokens. Errors: those of CacheLane.
Result<double> ArithmeticError(const AttentionCase& what, const Recipe& recipe,
                               const SyntheticRows& data, ThreadTeam& team);

class GgmlLane {
 public:
  // Errors: kInvalidArgument if the type has no rows of this head dim; kResourceExhausted.
  static Result<std::unique_ptr<GgmlLane>> Open(const AttentionCase& what, PeerType type,
                                                const SyntheticRows& data, int threads);
  ~GgmlLane();
  // Errors: kInternal if ggml fails.
  Result<double> SecondsPerLayer();

 private:
  struct Impl;
  explicit GgmlLane(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_BENCH_ATTENTION_LANES_H_
