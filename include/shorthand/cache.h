// Cache: the keys and values of many sequences, paged and quantized.
//
// A cache holds sequences. A sequence grows by batches: Begin reserves the memory of a batch or
// refuses it, Write stores the rows of one layer, Seal quantizes the pages that became complete,
// attention (attention.h) reads; Commit keeps the tokens and Abort, or destroying the batch, leaves
// the cache as it was. Sequences share complete pages by reference: Fork copies no page.
//
// A query sees a page exact or sealed by its place in the sequence and the recipe alone, never by
// how the tokens were chunked, batched or forked.
//
// Thread-safety: one thread at a time calls Cache and Begin/Commit/Abort; Write and Seal of one
// layer may run on many workers at once, each with its own `worker`. Complete pages are immutable.
#ifndef SHORTHAND_CACHE_H_
#define SHORTHAND_CACHE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shorthand/calibration.h"
#include "shorthand/recipe.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

struct CacheOptions {
  uint64_t budget_bytes = 0;  // of allocated bytes; 0: no limit
  // Of the model, for recipes that need one. Read by Open only.
  const Calibration* calibration = nullptr;
};

using SequenceId = int32_t;

struct BatchItem {
  SequenceId sequence = 0;
  int tokens = 0;  // to append, at least 1
};

// Bytes, never mixed up: codes and metadata of all tokens; everything in the pages in use; what was
// taken from the system.
struct CacheStats {
  int64_t sequences = 0;
  int64_t tokens = 0;  // over all sequences, shared ones counted once for each
  uint64_t logical_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t allocated_bytes = 0;
  uint64_t f16_bytes = 0;  // the same tokens in f16
};

class Batch;
class CacheImpl;
class BatchImpl;

class Cache {
 public:
  // Errors: kInvalidArgument or kUnimplemented if the recipe does not fit the shape;
  // kFailedPrecondition if it needs a calibration and there is none, or names another.
  static Result<std::unique_ptr<Cache>> Open(const Shape& shape, const Recipe& recipe,
                                             const CacheOptions& options = {});
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const Shape& shape() const;
  // As opened; it names the calibration that it uses.
  const Recipe& recipe() const;

  // An empty sequence.
  SequenceId Create();
  // A sequence with the same tokens, sharing every page; the page being written is copied when
  // either writes on. Errors: kNotFound.
  Result<SequenceId> Fork(SequenceId sequence);
  // Keeps the first `tokens` tokens. Errors: kNotFound; kOutOfRange beyond the end, or before what
  // a sliding window has already dropped (the sentence names the nearest length that works).
  Status Crop(SequenceId sequence, int64_t tokens);
  // Errors: kNotFound.
  Status Release(SequenceId sequence);
  // Errors: kNotFound.
  Result<int64_t> Tokens(SequenceId sequence) const;

  // Reserves memory for `items`, each sequence at most once. One batch at a time; it must not
  // outlive the cache. Until it is committed or aborted, Fork, Crop and Release are refused.
  // Errors: kInvalidArgument; kNotFound; kFailedPrecondition while a batch is open;
  // kResourceExhausted with what is needed and what is left, the cache being as before.
  Result<std::unique_ptr<Batch>> Begin(std::span<const BatchItem> items);

  CacheStats Stats() const;

  CacheImpl* impl() const { return impl_.get(); }

 private:
  explicit Cache(std::unique_ptr<CacheImpl> impl);
  std::unique_ptr<CacheImpl> impl_;
};

// Rows of a batch are numbered over its items in order: item 0's tokens, then item 1's.
class Batch {
 public:
  ~Batch();  // aborts unless committed
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  int rows() const;
  // The ordinal in its sequence of row `row`. REQUIRES: 0 <= row < rows().
  int64_t Position(int row) const;

  // Stores the keys and values of all rows of one layer, RoPE applied.
  //   k  [rows][kv_heads][k_dim], v  [rows][kv_heads][v_dim]
  // Every worker in [0, workers) calls it once. Non-finite input makes the batch fail: status()
  // says where, Commit refuses.
  void Write(int layer, const float* k, const float* v, int worker, int workers);

  // Seals the pages of one layer that the batch completes. REQUIRES: every worker's Write of the
  // layer has returned.
  void Seal(int layer, int worker, int workers);

  // The first failure, sticky.
  Status status() const;

  // Keeps the rows. Errors: those of status(); then the batch is aborted.
  Status Commit();
  void Abort();

  BatchImpl* impl() const { return impl_.get(); }

 private:
  friend class Cache;
  friend class CacheImpl;
  explicit Batch(std::unique_ptr<BatchImpl> impl);
  std::unique_ptr<BatchImpl> impl_;
};

}  // namespace shorthand

#endif  // SHORTHAND_CACHE_H_
