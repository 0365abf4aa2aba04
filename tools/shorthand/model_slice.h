// A slice of one head's keys or values, as a model has them on a text: what `inspect slice`, `plot`
// and `explore` show.
// Thread-safety: CaptureModel one thread at a time: it loads a model, reads files, says on stderr
// how far it is. The rest are pure functions.
#ifndef SHORTHAND_TOOLS_MODEL_SLICE_H_
#define SHORTHAND_TOOLS_MODEL_SLICE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/layers.h"
#include "quant/slice.h"
#include "shorthand/recipe.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

struct CaptureRequest {
  std::string model;
  std::string text_file;  // empty: the project's documents
  int64_t tokens = 1024;  // of the text at most
  int threads = 0;
};

// What a model keeps of a text.
struct CapturedText {
  Shape shape;
  std::string text;  // its name
  LayerCapture capture;
};

// Errors: those of loading the model and of reading the text.
Result<CapturedText> CaptureModel(const CaptureRequest& request);

// A first and a last, both included.
struct Span {
  int64_t first = 0;
  int64_t last = 0;
  int64_t count() const { return last - first + 1; }
};

// What is asked for, as people write it.
struct SliceText {
  int layer = -1;  // the one in the middle
  int head = 0;
  std::string side = "K";
  std::string tokens = "64..87";
  std::string channels;  // empty: so many, among them the loudest
  int shown_channels = 16;
  std::vector<std::string> codes = {"u2/tok", "u2/ch"};
  int64_t exact = 0;
  int64_t sinks = 0;
};

// A side of a recipe; or, to compare, uB with a scale for a page ("u4/page") or for all heads of
// the layer ("u4/layer"), which no cache has.
struct SliceCode {
  std::string text;
  Side side;
  bool by_layer = false;
};

struct SliceRequest {
  int layer = -1;
  int head = 0;
  SideKind kind = SideKind::kKey;
  Span tokens;
  Span channels = {0, -1};  // empty: as in SliceText
  int shown_channels = 16;
  std::vector<SliceCode> codes;
  ExactTokens exact;
};

// Errors: kInvalidArgument for spans and sides that are none; those of Recipe::Parse.
Result<SliceRequest> ParseSliceRequest(const SliceText& text);

struct CodedSlice {
  std::string code;
  Slice slice;
  // Of all tokens and channels of the head, coded alike.
  double head_error = 0;
  int64_t head_group = 0;   // numbers that share a scale, at most
  int64_t head_scales = 0;  // that are stored
};

struct ModelSlice {
  int layer = 0;
  int head = 0;
  SideKind kind = SideKind::kKey;
  int dim = 0;              // channels of the head
  int64_t text_tokens = 0;  // that were captured
  Span tokens, channels;
  ExactTokens exact;
  std::vector<float> x;  // [tokens][channels]
  std::vector<CodedSlice> codes;
};

// Errors: kOutOfRange for layers, heads, tokens and channels that there are none of; those of
// QuantizeSlice.
Result<ModelSlice> SliceOf(const CapturedText& captured, const SliceRequest& request);

// One head's rows, [tokens][dim]. REQUIRES: there is such a head, and the layer keeps keys.
std::vector<float> HeadRows(const CapturedText& captured, int layer, int head, SideKind kind);

// Of rows [..][dim], `shown` channels from a multiple of it on: those among which the channel lies
// that is largest on the whole.
Span LoudestChannels(std::span<const float> rows, int dim, int shown);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_MODEL_SLICE_H_
