// A model's layers in numbers and in words.
// Thread-safety: pure functions.
#ifndef SHORTHAND_TOOLS_SHAPE_SUMMARY_H_
#define SHORTHAND_TOOLS_SHAPE_SUMMARY_H_

#include <string>
#include <vector>

#include "shorthand/shape.h"

namespace shorthand {

// Counts of layers, and the first layer that keeps keys and values, which stands for the others in
// short descriptions.
struct ShapeSummary {
  int full_layers = 0;
  int windowed_layers = 0;
  int shared_layers = 0;  // read the keys and values of another layer
  int window = 0;
  LayerShape typical;
};

ShapeSummary Summarize(const Shape& shape);

// "32 layers, 32 query heads, 8 KV heads, head dim 128".
std::string ShapeLine(const Shape& shape);

// What sharing heads and looking back a window only saves, a sentence each.
std::vector<std::string> SavingsOf(const Shape& shape);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_SHAPE_SUMMARY_H_
