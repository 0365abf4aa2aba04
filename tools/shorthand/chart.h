// Charts of `shorthand bench` and `shorthand eval` as SVG.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_CHART_H_
#define SHORTHAND_TOOLS_CHART_H_

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

struct Dot {
  std::string name;
  double x = 0, y = 0;
  int series = 0;  // its colour
};

// Named dots on a scale of powers of ten upwards, and the line that those make for which no other
// is lower and further to the left. REQUIRES: y is positive.
std::string ScatterChart(const std::string& title, const std::string& x_title,
                         const std::string& y_title, std::span<const Dot> dots);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_CHART_H_
