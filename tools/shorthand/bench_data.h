// Synthetic keys, values and queries, and sequences filled with them.
//
// About normal, the same in every run; keys have a few loud channels, as those of real models do.
// Thread-safety: SyntheticRows is immutable once made.
#ifndef SHORTHAND_TOOLS_BENCH_DATA_H_
#define SHORTHAND_TOOLS_BENCH_DATA_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "bench_machine.h"
#include "shorthand/cache.h"

namespace shorthand {

class SyntheticRows {
 public:
  SyntheticRows();

  // `stream` names the numbers: the same stream, the same numbers.
  std::vector<float> Plain(uint64_t stream, size_t count) const;
  // Rows of `dim` channels.
  std::vector<float> Keys(uint64_t stream, size_t rows, int dim) const;

 private:
  std::vector<float> noise_;
};

// Stores the keys and values of all rows of a batch, every layer that keeps its own, and seals.
void WriteRows(Batch& batch, const Shape& shape, const SyntheticRows& data, ThreadTeam& team);

// Appends rows to a sequence until it has `tokens`. `on_progress` is given the share that is done.
// Errors: those of Cache::Begin and Batch::Commit.
Status FillTo(Cache& cache, SequenceId sequence, int64_t tokens, const SyntheticRows& data,
              ThreadTeam& team, const std::function<void(double)>& on_progress);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_BENCH_DATA_H_
