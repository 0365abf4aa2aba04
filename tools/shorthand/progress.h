// Progress: a line on stderr that says how far a long task is and how long it will still take. It
// is silent unless stderr is a terminal, and leaves nothing behind.
// Thread-safety: one thread.
#ifndef SHORTHAND_TOOLS_PROGRESS_H_
#define SHORTHAND_TOOLS_PROGRESS_H_

#include <chrono>
#include <string>

namespace shorthand {

class Progress {
 public:
  explicit Progress(std::string task);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `share` of the work is done, 0 to 1.
  void Update(double share);

 private:
  using Clock = std::chrono::steady_clock;

  std::string task_;
  bool visible_;
  Clock::time_point begin_;
  Clock::time_point shown_;
};

// "0:42 left", "1:02:03 left": what remains after `seconds` for `share` of the work.
std::string TimeLeft(double seconds, double share);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_PROGRESS_H_
