// The machine under a measurement: threads, their clock, streaming read, load.
// Thread-safety: one thread drives these objects.
#ifndef SHORTHAND_TOOLS_BENCH_MACHINE_H_
#define SHORTHAND_TOOLS_BENCH_MACHINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace shorthand {

// Threads that wait between calls, so that none is started while the clock runs.
class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  // Calls work(worker) for every worker in [0, size()) at once; worker 0 is the caller. Returns
  // when all have.
  void Run(const std::function<void(int)>& work);

 private:
  void Serve(int worker);

  std::vector<std::thread> threads_;
  const std::function<void(int)>* work_ = nullptr;  // null: the threads end
  std::atomic<uint32_t> call_{0};
  std::atomic<int> busy_{0};
};

// Seconds for work on `threads` threads: processor time of the calling thread if it works alone, so
// that other programs do not count; else time on the wall.
double WorkSeconds(int threads);

// Memory larger than any cache, on huge pages where the system has them.
class StreamBuffer {
 public:
  StreamBuffer();
  ~StreamBuffer();
  StreamBuffer(const StreamBuffer&) = delete;
  StreamBuffer& operator=(const StreamBuffer&) = delete;

  bool ok() const { return base_ != nullptr; }
  // GB/s of one pass that adds all of it up, cut among the team. REQUIRES: ok().
  double ReadGbPerSecond(ThreadTeam& team) const;

 private:
  uint64_t* base_ = nullptr;
};

// Programs that were running in the last minute, on average. 0 if unknown.
double LoadAverage();
// Says on stderr if others are working on this machine. Asked before the measurement.
void WarnIfBusy();

uint64_t PhysicalMemoryBytes();

// REQUIRES: `values` is not empty.
double Median(std::vector<double> values);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_BENCH_MACHINE_H_
