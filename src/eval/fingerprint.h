// Fingerprint: 64 bits that tell whether two pieces of data are the same. It guards against
// mix-ups, not against someone who wants to deceive. Thread-safety: pure functions.
#ifndef SHORTHAND_EVAL_FINGERPRINT_H_
#define SHORTHAND_EVAL_FINGERPRINT_H_

#include <cstdint>
#include <span>
#include <string>

#include "shorthand/status.h"

namespace shorthand {

uint64_t Fingerprint(std::span<const uint8_t> bytes);

// Of a file's bytes, as 16 hexadecimal digits. Errors: those of MappedFile::Open.
Result<std::string> FileFingerprint(const std::string& path);

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_FINGERPRINT_H_
