// Status and Result<T>: how every call in Shorthand reports failure.
//
// A failure carries a code and one sentence that says what was wrong, what was given and what is
// accepted. The library throws nothing, prints nothing and never exits.
// Thread-safety: values; distinct objects may be used from distinct threads.
#ifndef SHORTHAND_STATUS_H_
#define SHORTHAND_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace shorthand {

enum class StatusCode : uint8_t {
  kOk,
  kInvalidArgument,     // the caller's input is wrong whatever the state
  kNotFound,            // a file, model, sequence or name does not exist
  kOutOfRange,          // a position or length beyond what exists
  kResourceExhausted,   // the budget or the system has no memory for it
  kFailedPrecondition,  // right in itself, but not in this state
  kDataLoss,            // a file is truncated or corrupted
  kUnimplemented,       // understood, but not supported by this build
  kCancelled,           // the caller asked to stop
  kInternal,            // our own bug
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return Status(); }
inline Status InvalidArgument(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}
inline Status NotFound(std::string message) {
  return Status(StatusCode::kNotFound, std::move(message));
}
inline Status OutOfRange(std::string message) {
  return Status(StatusCode::kOutOfRange, std::move(message));
}
inline Status ResourceExhausted(std::string message) {
  return Status(StatusCode::kResourceExhausted, std::move(message));
}
inline Status FailedPrecondition(std::string message) {
  return Status(StatusCode::kFailedPrecondition, std::move(message));
}
inline Status DataLoss(std::string message) {
  return Status(StatusCode::kDataLoss, std::move(message));
}
inline Status Unimplemented(std::string message) {
  return Status(StatusCode::kUnimplemented, std::move(message));
}
inline Status Internal(std::string message) {
  return Status(StatusCode::kInternal, std::move(message));
}

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // REQUIRES: ok().
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace shorthand

#endif  // SHORTHAND_STATUS_H_
