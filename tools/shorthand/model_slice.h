// A slice of one head's keys or values, as a model has them on a text: what `inspect slice` and
// `plot slice` show.
// Thread-safety: one thread; loads a model, reads files, says on stderr how far it is.
#ifndef SHORTHAND_TOOLS_MODEL_SLICE_H_
#define SHORTHAND_TOOLS_MODEL_SLICE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "quant/slice.h"
#include "shorthand/recipe.h"
#include "shorthand/status.h"

namespace shorthand {

// As on the command line.
struct SliceOptions {
  std::string model;
  std::string text_file;
  std::string text_tokens = "1024";
  int layer = -1;  // the one in the middle
  int head = 0;
  std::string side = "K";
  std::string tokens = "64..87";
  std::string channels;  // empty: so many, among them the loudest
  int shown_channels = 16;
  std::vector<std::string> codes = {"u2/tok", "u2/ch"};
  int64_t exact = 0;
  int64_t sinks = 0;
  int threads = 0;
};
// What `options` holds before is the default.
void AddSliceOptions(CLI::App& app, SliceOptions& options);

// A first and a last, both included.
struct Span {
  int64_t first = 0;
  int64_t last = 0;
  int64_t count() const { return last - first + 1; }
};

struct CodedSlice {
  std::string code;
  Slice slice;
  double head_error = 0;  // of all tokens and channels of the head, coded alike
};

struct ModelSlice {
  int layer = 0;
  int head = 0;
  SideKind kind = SideKind::kKey;
  int dim = 0;              // channels of the head
  int64_t text_tokens = 0;  // that were captured
  Span tokens, channels;
  std::vector<float> x;  // [tokens][channels]
  std::vector<CodedSlice> codes;
};

// What the command line alone says wrong. Errors: kInvalidArgument; those of Recipe::Parse.
Status CheckSliceOptions(const SliceOptions& options);

// Errors: kOutOfRange for layers, heads, tokens and channels that there are none of; those of
// loading the model, of the text and of QuantizeSlice.
Result<ModelSlice> SliceOfModel(const SliceOptions& options);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_MODEL_SLICE_H_
