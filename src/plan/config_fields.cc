#include "plan/config_fields.h"

#include <fmt/format.h>

namespace shorthand {
namespace {

// Python writes NaN, Infinity and -Infinity, which JSON does not have.
std::string NonFiniteToNull(std::string_view text) {
  constexpr std::string_view kNames[] = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    if (!in_string) {
      size_t skipped = 0;
      for (std::string_view name : kNames) {
        if (text.substr(i, name.size()) == name) {
          skipped = name.size();
          break;
        }
      }
      if (skipped > 0) {
        out += "null";
        i += skipped;
        continue;
      }
    }
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    out += text[i++];
  }
  return out;
}

// Containers by their kind alone: untrusted nesting can be deeper than the stack.
std::string Shown(const nlohmann::json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

}  // namespace

Result<nlohmann::json> ParseConfig(std::string_view text) {
  nlohmann::json parsed = nlohmann::json::parse(NonFiniteToNull(text), nullptr, false);
  if (parsed.is_discarded()) return InvalidArgument("the text is no valid JSON; is it cut short?");
  if (!parsed.is_object()) {
    return InvalidArgument(fmt::format(
        "the JSON is {} instead of an object with the model's dimensions", parsed.type_name()));
  }
  return parsed;
}

void ConfigFields::Fail(std::string message) {
  if (status_.ok()) status_ = InvalidArgument(std::move(message));
}

const nlohmann::json* ConfigFields::Find(Keys keys) const {
  for (const char* key : keys) {
    auto it = object_.find(key);
    if (it != object_.end() && !it->is_null()) return &*it;
  }
  return nullptr;
}

int64_t ConfigFields::Checked(const char* key, const nlohmann::json& value, Bounds bounds) {
  // A value beyond int64 is unsigned or a float to the parser.
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  const int64_t number = fits ? value.get<int64_t>() : 0;
  if (!fits || number < bounds.low || number > bounds.high) {
    Fail(fmt::format("{} is {}; a whole number from {} to {} is expected", key, Shown(value),
                     bounds.low, bounds.high));
    return bounds.low;
  }
  return number;
}

int64_t ConfigFields::Int(Keys keys, Bounds bounds) {
  if (!Has(keys)) {
    Fail(fmt::format("{} is missing", *keys.begin()));
    return bounds.low;
  }
  return Checked(*keys.begin(), *Find(keys), bounds);
}

int64_t ConfigFields::IntOr(Keys keys, int64_t fallback, Bounds bounds) {
  const nlohmann::json* value = Find(keys);
  return value == nullptr ? fallback : Checked(*keys.begin(), *value, bounds);
}

bool ConfigFields::BoolOr(Keys keys, bool fallback) {
  const nlohmann::json* value = Find(keys);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    Fail(fmt::format("{} is {}; true or false is expected", *keys.begin(), Shown(*value)));
    return fallback;
  }
  return value->get<bool>();
}

std::string ConfigFields::TextOr(Keys keys, std::string_view fallback) {
  const nlohmann::json* value = Find(keys);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) {
    Fail(fmt::format("{} is {}; a text is expected", *keys.begin(), Shown(*value)));
    return std::string(fallback);
  }
  return value->get<std::string>();
}

const nlohmann::json* ConfigFields::List(const char* key, size_t length) {
  const nlohmann::json* value = Find({key});
  if (value == nullptr) return nullptr;
  if (!value->is_array() || value->size() != length) {
    Fail(fmt::format("{} is {}; a list with one entry for each of the {} layers is expected", key,
                     value->is_array() ? fmt::format("a list of {}", value->size()) : Shown(*value),
                     length));
    return nullptr;
  }
  return value;
}

std::vector<std::string> ConfigFields::Texts(const char* key, size_t length) {
  std::vector<std::string> texts;
  const nlohmann::json* list = List(key, length);
  if (list == nullptr) return texts;
  for (const auto& entry : *list) {
    if (!entry.is_string()) Fail(fmt::format("{} holds {}, which is no text", key, Shown(entry)));
    texts.push_back(entry.is_string() ? entry.get<std::string>() : std::string());
  }
  return texts;
}

std::vector<int64_t> ConfigFields::Ints(const char* key, size_t length, Bounds bounds) {
  std::vector<int64_t> numbers;
  const nlohmann::json* list = List(key, length);
  if (list == nullptr) return numbers;
  for (const auto& entry : *list) numbers.push_back(Checked(key, entry, bounds));
  return numbers;
}

}  // namespace shorthand
