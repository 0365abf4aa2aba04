// SVG: the pieces that charts and pictures share.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_SVG_H_
#define SHORTHAND_TOOLS_SVG_H_

#include <array>
#include <string>

namespace shorthand {

inline constexpr std::array<const char*, 8> kChartColors = {
    "#4269d0", "#ff725c", "#3ca951", "#efb118", "#a463f2", "#6cc5b0", "#97bbf5", "#9c6b4e"};

// `anchor`: start, middle or end, what of the text stands at x.
std::string SvgText(double x, double y, const char* anchor, const std::string& text);
std::string SvgRect(double x, double y, double width, double height, const std::string& fill);
// Its outline alone.
std::string SvgFrame(double x, double y, double width, double height, const char* stroke);

// A white sheet with its title at the top, 32 high.
std::string SvgDocument(double width, double height, const std::string& title,
                        const std::string& body);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_SVG_H_
