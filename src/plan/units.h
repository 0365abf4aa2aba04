// Units: sizes and counts as people write and read them. GB is 10^9 bytes and GiB is 2^30; the two
// are never mixed up.
// Thread-safety: pure functions.
#ifndef SHORTHAND_PLAN_UNITS_H_
#define SHORTHAND_PLAN_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "shorthand/status.h"

namespace shorthand {

// "24GB" = 24e9, "24GiB" = 24 * 2^30, "1.5MiB", "4096": bytes. Units: B KB MB GB TB (powers of
// 1000), KiB MiB GiB TiB (powers of 1024), in any case.
// Errors: kInvalidArgument; 0 and more than 1 PiB are refused.
Result<uint64_t> ParseSize(std::string_view text);

// "32k" = 32 * 1024, "1M" = 1024 * 1024, "4096": tokens.
// Errors: kInvalidArgument; what is not in 1..limit is refused.
Result<int64_t> ParseTokens(std::string_view text, int64_t limit);

// "14.1 GiB", "128 KiB", "34.1 KiB", "96 B": one decimal from KiB up, none for a whole number of
// KiB.
std::string FormatSize(uint64_t bytes);
// "24 GB": two decimals at most, powers of 1000.
std::string FormatDecimalSize(uint64_t bytes);
// "8.03 billion", "135 million".
std::string FormatParameters(int64_t count);
// "32k" for whole multiples of 1024 (up to 1024k = "1M"), else the number.
std::string FormatTokens(int64_t tokens);

}  // namespace shorthand

#endif  // SHORTHAND_PLAN_UNITS_H_
