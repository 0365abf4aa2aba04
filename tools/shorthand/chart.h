// Charts of `shorthand bench` as SVG.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_BENCH_CHART_H_
#define SHORTHAND_TOOLS_BENCH_CHART_H_

#include <span>
#include <string>
#include <vector>

namespace shorthand {

struct Bar {
  std::string name;
  double value = 0;
};

// One horizontal bar each, on a scale of powers of ten. REQUIRES: values are positive.
std::string BarChart(const std::string& title, const std::string& subtitle,
                     std::span<const Bar> bars);

struct Point {
  double x = 0, y = 0;
};
struct Line {
  std::string name;
  std::vector<Point> points;
};

// Lines over axes that begin at zero.
std::string LineChart(const std::string& title, const std::string& x_title,
                      std::span<const Line> lines);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_BENCH_CHART_H_
