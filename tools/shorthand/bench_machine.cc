#include "bench_machine.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"

namespace shorthand {
namespace {

constexpr size_t kStreamBytes = size_t{1} << 30;
constexpr double kBusyLoad = 1;

// Sums that do not wait for each other, so that the loads set the pace.
uint64_t Sum(const uint64_t* words, size_t count) {
  constexpr size_t kLanes = 32;
  std::array<uint64_t, kLanes> sums{};
  for (size_t i = 0; i + kLanes <= count; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) sums[j] += words[i + j];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) {
  for (int worker = 1; worker < threads; ++worker) {
    threads_.emplace_back([this, worker] { Serve(worker); });
  }
}

ThreadTeam::~ThreadTeam() {
  work_ = nullptr;
  call_.fetch_add(1, std::memory_order_release);
  call_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::Run(const std::function<void(int)>& work) {
  work_ = &work;
  busy_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
  call_.fetch_add(1, std::memory_order_release);
  call_.notify_all();
  work(0);
  for (int busy; (busy = busy_.load(std::memory_order_acquire)) != 0;) busy_.wait(busy);
}

void ThreadTeam::Serve(int worker) {
  for (uint32_t seen = 0;; ++seen) {
    call_.wait(seen, std::memory_order_acquire);
    if (work_ == nullptr) return;
    (*work_)(worker);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

double WorkSeconds(int threads) {
  return Seconds(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
}

StreamBuffer::StreamBuffer() {
  void* memory =
      mmap(nullptr, kStreamBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  madvise(memory, kStreamBytes, MADV_HUGEPAGE);  // advice only
  base_ = static_cast<uint64_t*>(memory);
  std::fill_n(base_, kStreamBytes / sizeof(uint64_t), uint64_t{1});
}

StreamBuffer::~StreamBuffer() {
  if (base_ != nullptr) munmap(base_, kStreamBytes);
}

double StreamBuffer::ReadGbPerSecond(ThreadTeam& team) const {
  const size_t part = kStreamBytes / sizeof(uint64_t) / team.size();
  std::atomic<uint64_t> total{0};
  const double begin = WorkSeconds(team.size());
  team.Run([&](int worker) { total += Sum(base_ + worker * part, part); });
  return static_cast<double>(kStreamBytes) / (WorkSeconds(team.size()) - begin) / 1e9;
}

double LoadAverage() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

void WarnIfBusy() {
  const double load = LoadAverage();
  if (load <= kBusyLoad) return;
  fmt::print(stderr,
             "shorthand: this machine is busy (load average {:.1f}); the figures will be worse "
             "than they could be\n",
             load);
}

uint64_t PhysicalMemoryBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace shorthand
