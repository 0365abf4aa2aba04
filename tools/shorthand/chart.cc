#include "chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "svg.h"

namespace shorthand {
namespace {

constexpr double kWidth = 720;

// 1, 2 or 5 times a power of ten: about five of them reach `top`.
double NiceStep(double top) {
  const double power = std::pow(10, std::floor(std::log10(top / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor * 5 >= top) return power * factor;
  }
  return power * 10;
}

constexpr double kScatterLeft = 64;  // of the plot itself
constexpr double kScatterHead = 48;  // what titles take at the top

// Where a name stands.
struct Box {
  double left, top, width, height;

  bool Meets(const Box& other) const {
    return left < other.left + other.width && other.left < left + width &&
           top < other.top + other.height && other.top < top + height;
  }
};

// A place beside the dot at (x, y) that meets none of `taken`, if there is one; nearer ones first,
// those on the right before those on the left.
Box PlaceName(double x, double y, const std::string& name, const std::vector<Box>& taken) {
  constexpr double kLetter = 6.6, kHeight = 13;
  const double width = kLetter * static_cast<double>(name.size());
  const auto right = [&](double dy) { return Box{x + 8, y - kHeight / 2 + dy, width, kHeight}; };
  for (int step = 0; step < 12; ++step) {
    const double dy = (step % 2 == 0 ? 1 : -1) * (step + 1) / 2 * (kHeight - 1);
    const Box left = {x - 8 - width, y - kHeight / 2 + dy, width, kHeight};
    for (const Box& box : {right(dy), left}) {
      const bool inside =
          box.left > kScatterLeft && box.left + box.width < kWidth && box.top > kScatterHead;
      const auto meets = [&](const Box& other) { return box.Meets(other); };
      if (inside && std::none_of(taken.begin(), taken.end(), meets)) return box;
    }
  }
  return right(0);
}

// Of those for which no other is as low and as far to the left, the places, from left to right.
std::vector<size_t> Frontier(std::span<const Dot> dots) {
  std::vector<size_t> order(dots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(dots[a].x, dots[a].y) < std::pair(dots[b].x, dots[b].y);
  });
  std::vector<size_t> frontier;
  for (const size_t i : order) {
    if (frontier.empty() || dots[i].y < dots[frontier.back()].y) frontier.push_back(i);
  }
  return frontier;
}

}  // namespace

std::string BarChart(const std::string& title, const std::string& subtitle,
                     std::span<const Bar> bars) {
  constexpr double kTop = 60, kBar = 22, kLeft = 230, kRight = kWidth - 70;
  double low = INFINITY, high = 0;
  for (const Bar& bar : bars) {
    low = std::min(low, bar.value);
    high = std::max(high, bar.value);
  }
  const double base = bars.empty() ? 0 : std::floor(std::log10(low) - 0.1);
  const double decades = bars.empty() ? 1 : std::ceil(std::log10(high) + 0.01) - base;
  std::string body = SvgText(16, 44, "start", subtitle);
  for (size_t i = 0; i < bars.size(); ++i) {
    const double y = kTop + kBar * static_cast<double>(i);
    const double length = (std::log10(bars[i].value) - base) / decades * (kRight - kLeft);
    const bool peer = bars[i].name.starts_with("ggml ");
    body += SvgText(kLeft - 8, y + 15, "end", bars[i].name);
    body += SvgRect(kLeft, y + 3, length, kBar - 6, peer ? "#b0b0b0" : kChartColors[0]);
    body += SvgText(kLeft + length + 6, y + 15, "start", fmt::format("{:.2f}", bars[i].value));
  }
  return SvgDocument(kWidth, kTop + kBar * static_cast<double>(bars.size()) + 16, title, body);
}

std::string LineChart(const std::string& title, const std::string& x_title,
                      std::span<const Line> lines) {
  constexpr double kTop = 44, kBottom = 400, kLeft = 64, kRight = kWidth - 190;
  double x_top = 1, y_top = 1e-9;
  for (const Line& line : lines) {
    for (const Point& point : line.points) {
      x_top = std::max(x_top, point.x);
      y_top = std::max(y_top, point.y);
    }
  }
  const auto x_of = [&](double x) { return kLeft + x / x_top * (kRight - kLeft); };
  const auto y_of = [&](double y) { return kBottom - y / (y_top * 1.05) * (kBottom - kTop); };

  std::string body = fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"black\"/>\n",
                                 kLeft, kTop, kBottom, kRight);
  for (double y = 0; y <= y_top * 1.05; y += NiceStep(y_top)) {
    body += SvgText(kLeft - 6, y_of(y) + 4, "end", fmt::format("{:g}", y));
  }
  for (double x = 0; x <= x_top; x += NiceStep(x_top)) {
    body += SvgText(x_of(x), kBottom + 18, "middle", fmt::format("{:g}", x));
  }
  body += SvgText((kLeft + kRight) / 2, kBottom + 38, "middle", x_title);
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* color = kChartColors[i % kChartColors.size()];
    std::string path;
    for (const Point& point : lines[i].points) {
      path +=
          fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_of(point.x), y_of(point.y));
    }
    const double y = kTop + 20 * static_cast<double>(i);
    body += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", path,
                        color);
    body += SvgRect(kRight + 16, y, 14, 4, color);
    body += SvgText(kRight + 36, y + 6, "start", lines[i].name);
  }
  return SvgDocument(kWidth, kBottom + 56, title, body);
}

std::string ScatterChart(const std::string& title, const std::string& x_title,
                         const std::string& y_title, std::span<const Dot> dots) {
  constexpr double kTop = 60, kBottom = 520, kLeft = kScatterLeft, kRight = kWidth - 24;
  double x_low = INFINITY, x_high = 0, y_low = INFINITY, y_high = 0;
  for (const Dot& dot : dots) {
    x_low = std::min(x_low, std::floor(dot.x));
    x_high = std::max(x_high, std::ceil(dot.x + 0.5));
    y_low = std::min(y_low, std::floor(std::log10(dot.y)));
    y_high = std::max(y_high, std::ceil(std::log10(dot.y)));
  }
  if (dots.empty()) x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  y_high = std::max(y_high, y_low + 1);
  const auto x_of = [&](double x) {
    return kLeft + (x - x_low) / (x_high - x_low) * (kRight - kLeft);
  };
  const auto y_of = [&](double y) {
    return kBottom - (std::log10(y) - y_low) / (y_high - y_low) * (kBottom - kTop);
  };

  std::string body = SvgText(16, 44, "start", y_title);
  for (double decade = y_low; decade <= y_high; ++decade) {
    const double y = y_of(std::pow(10, decade));
    body += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"#dddddd\"/>\n", kLeft, y, kRight);
    body += SvgText(kLeft - 6, y + 4, "end", fmt::format("{:g}", std::pow(10, decade)));
  }
  for (double x = x_low; x <= x_high; ++x) {
    body += SvgText(x_of(x), kBottom + 18, "middle", fmt::format("{:g}", x));
  }
  body += SvgText((kLeft + kRight) / 2, kBottom + 38, "middle", x_title);
  std::string path;
  for (const size_t i : Frontier(dots)) {
    path +=
        fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_of(dots[i].x), y_of(dots[i].y));
  }
  body +=
      fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#bbbbbb\" stroke-width=\"2\"/>\n", path);
  std::vector<Box> taken;
  for (const Dot& dot : dots) taken.push_back({x_of(dot.x) - 4, y_of(dot.y) - 4, 8, 8});
  for (const Dot& dot : dots) {
    const char* color = kChartColors[dot.series % kChartColors.size()];
    body += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n", x_of(dot.x),
                        y_of(dot.y), color);
    const Box box = PlaceName(x_of(dot.x), y_of(dot.y), dot.name, taken);
    taken.push_back(box);
    // To the end of the name that is nearer.
    const bool on_right = box.left > x_of(dot.x);
    body += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"#888888\"/>\n",
                        x_of(dot.x), y_of(dot.y), on_right ? box.left : box.left + box.width,
                        box.top + box.height / 2);
    body += SvgText(on_right ? box.left + 1 : box.left + box.width - 1, box.top + box.height - 3,
                    on_right ? "start" : "end", dot.name);
  }
  return SvgDocument(kWidth, kBottom + 56, title, body);
}

}  // namespace shorthand
