#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace shorthand {
namespace {

constexpr int kBarCells = 30;
constexpr std::chrono::milliseconds kBetweenUpdates{200};
constexpr double kEstimateFromSeconds = 2;
constexpr const char* kClearLine = "\r\033[K";

}  // namespace

std::string TimeLeft(double seconds, double share) {
  const auto left = static_cast<int64_t>(std::ceil(seconds / share * (1 - share)));
  const int64_t hours = left / 3600, minutes = left / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02} left", hours, minutes, left % 60);
  return fmt::format("{}:{:02} left", minutes, left % 60);
}

Progress::Progress(std::string task)
    : task_(std::move(task)),
      visible_(isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      shown_(begin_) {
  if (visible_) fmt::print(stderr, "{}...", task_);
}

Progress::~Progress() {
  if (visible_) fmt::print(stderr, "{}", kClearLine);
}

void Progress::Update(double share) {
  const Clock::time_point now = Clock::now();
  if (!visible_ || now - shown_ < kBetweenUpdates) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBarCells);
  const std::string left =
      share > 0 && seconds > kEstimateFromSeconds ? TimeLeft(seconds, share) : "";
  fmt::print(stderr, "{}{} [{:#<{}}{:.<{}}] {:3.0f} %  {}", kClearLine, task_, "", filled, "",
             kBarCells - filled, share * 100, left);
  std::fflush(stderr);
}

}  // namespace shorthand
