// Turns: what does not fit into memory beside the exact cache at once runs one part after another;
// and how much of all the work is done.
// Thread-safety: one thread at a time.
#ifndef SHORTHAND_EVAL_TURNS_H_
#define SHORTHAND_EVAL_TURNS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <utility>
#include <vector>

#include "eval/passage.h"
#include "shorthand/status.h"

namespace shorthand {

// Lanes beside the exact one. What an interrupted run loses is one turn; what a turn costs in
// addition is the exact lane.
inline constexpr size_t kLanesAtOnce = 8;

// Cuts a list into turns, in order. One lane always fits.
template <typename Lane>
class Turns {
 public:
  // `always_bytes` are taken in every turn.
  Turns(uint64_t memory_bytes, uint64_t always_bytes)
      : memory_bytes_(memory_bytes), always_bytes_(always_bytes) {}

  void Add(Lane lane, uint64_t bytes) {
    if (turns_.empty() || turns_.back().size() == kLanesAtOnce || bytes_ + bytes > memory_bytes_) {
      turns_.emplace_back();
      bytes_ = always_bytes_;
    }
    turns_.back().push_back(std::move(lane));
    bytes_ += bytes;
  }
  std::vector<std::vector<Lane>> Take() { return std::move(turns_); }

 private:
  uint64_t memory_bytes_;
  uint64_t always_bytes_;
  uint64_t bytes_ = 0;  // of the last turn
  std::vector<std::vector<Lane>> turns_;
};

// Work in tokens fed to lanes.
class WorkDone {
 public:
  void Expect(const Passage& passage, size_t lanes) {
    all_ += static_cast<double>((passage.tokens.size() - 1) * lanes);
  }
  // One lane has read `chunk`. `on_progress` may be empty. Errors: kCancelled if a stop is
  // requested.
  Status Report(const Chunk& chunk, const std::function<void(double)>& on_progress,
                const std::stop_token& stop) {
    done_ += static_cast<double>(chunk.tokens.size());
    if (on_progress) on_progress(std::min(1.0, done_ / all_));
    return stop.stop_requested() ? Status(StatusCode::kCancelled, "it was stopped") : OkStatus();
  }

 private:
  double done_ = 0;
  double all_ = 0;
};

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_TURNS_H_
