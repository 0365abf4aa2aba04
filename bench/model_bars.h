// The parts of model_bars: each measures one promise on a model and prints its bars.
// Thread-safety: one thread at a time.
#ifndef SHORTHAND_BENCH_MODEL_BARS_H_
#define SHORTHAND_BENCH_MODEL_BARS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bar.h"
#include "eval/windows.h"
#include "model/model.h"
#include "shorthand/status.h"

namespace shorthand {

// Over the f16 cache, on the f32 copy `f32_path` from which `model` was loaded: perplexity and
// likeliest tokens are llama.cpp's own, on the second half of every window.
// REQUIRES: `windows` as CutWindows makes them, at least one.
Status MeasureAgreement(Model& model, const std::string& f32_path, std::span<const Window> windows,
                        BarReport& report);

// The likeliest tokens in the last quarter of `text` do not depend on the chunks it was fed in,
// over a 4-bit cache. REQUIRES: `model` has f32 weights.
Status MeasureViews(Model& model, std::span<const Token> text, BarReport& report);

// Resident memory grows as the cache says it does while `model` reads up to `text_tokens` tokens.
// REQUIRES: `chunk` is not empty; it is fed again and again.
Status MeasureResidentMemory(Model& model, std::span<const Token> chunk, int64_t text_tokens,
                             BarReport& report);

// A cache to which `tokens` tokens were appended singly has allocated what the planner says.
Status MeasureAllocation(const Shape& shape, int64_t tokens, BarReport& report);

// Attention of captured queries over captured keys and values of every layer of `model` is as near
// to double precision as docs/numerics.md says, for every preset, format and target.
// REQUIRES: `text` has kErrorTextTokens tokens.
inline constexpr int kErrorTextTokens = 640;
Status MeasureErrors(Model& model, std::span<const Token> text, BarReport& report);

}  // namespace shorthand

#endif  // SHORTHAND_BENCH_MODEL_BARS_H_
