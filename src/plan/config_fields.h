// ConfigFields: typed, bounded reading of one object of a config.json, which is untrusted.
//
// Readers return a value that is always within its bounds; the first thing that was missing or
// wrong is kept in status(), so that a caller reads everything it needs and asks once.
//
// Thread-safety: one thread.
#ifndef SHORTHAND_PLAN_CONFIG_FIELDS_H_
#define SHORTHAND_PLAN_CONFIG_FIELDS_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "shorthand/status.h"

namespace shorthand {

// Parses text that may hold Python's NaN and Infinity, which many published files do; they read as
// null.
// Errors: kInvalidArgument if it is not a JSON object.
Result<nlohmann::json> ParseConfig(std::string_view text);

struct Bounds {
  int64_t low;
  int64_t high;
};

// Spellings of one key in different model families, tried in order.
using Keys = std::initializer_list<const char*>;

class ConfigFields {
 public:
  // REQUIRES: `object` is an object and outlives this.
  explicit ConfigFields(const nlohmann::json& object) : object_(object) {}

  // True if one of the keys is there and not null.
  bool Has(Keys keys) const { return Find(keys) != nullptr; }

  int64_t Int(Keys keys, Bounds bounds);
  int64_t IntOr(Keys keys, int64_t fallback, Bounds bounds);
  bool BoolOr(Keys keys, bool fallback);
  std::string TextOr(Keys keys, std::string_view fallback);
  // Empty if absent.
  std::vector<std::string> Texts(const char* key, size_t length);
  std::vector<int64_t> Ints(const char* key, size_t length, Bounds bounds);

  // Records a failure unless there is one already.
  void Fail(std::string message);
  const Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(Keys keys) const;
  int64_t Checked(const char* key, const nlohmann::json& value, Bounds bounds);
  const nlohmann::json* List(const char* key, size_t length);

  const nlohmann::json& object_;
  Status status_;
};

}  // namespace shorthand

#endif  // SHORTHAND_PLAN_CONFIG_FIELDS_H_
