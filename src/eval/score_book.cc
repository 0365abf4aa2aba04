#include "eval/score_book.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/checksum.h"
#include "base/replace_file.h"

namespace shorthand {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Bytes = std::vector<uint8_t>;

constexpr std::string_view kMagic = "shorthand eval 1\n";
constexpr size_t kChecksumBytes = 8;
constexpr size_t kHeaderBytes = kMagic.size() + kChecksumBytes;

// Three doubles in the machine's order (little-endian on all that are supported), then the flag.
constexpr size_t kScoreBytes = 3 * sizeof(double) + 1;

Bytes PackScores(const std::vector<PositionScore>& scores) {
  Bytes bytes;
  bytes.reserve(scores.size() * kScoreBytes);
  for (const PositionScore& score : scores) {
    const double values[3] = {score.kl, score.nll_exact, score.nll};
    const auto* begin = reinterpret_cast<const uint8_t*>(values);
    bytes.insert(bytes.end(), begin, begin + sizeof(values));
    bytes.push_back(score.same_top ? 1 : 0);
  }
  return bytes;
}

std::vector<PositionScore> UnpackScores(const Bytes& bytes) {
  std::vector<PositionScore> scores(bytes.size() / kScoreBytes);
  for (size_t i = 0; i < scores.size(); ++i) {
    double values[3];
    std::memcpy(values, bytes.data() + i * kScoreBytes, sizeof(values));
    scores[i] = {.kl = values[0],
                 .nll_exact = values[1],
                 .nll = values[2],
                 .same_top = bytes[i * kScoreBytes + sizeof(values)] != 0};
  }
  return scores;
}

Status Damaged(const std::string& path) {
  return DataLoss(fmt::format(
      "{} is not a whole file of results of shorthand eval; give another name, or remove it",
      path));
}

Status CheckFacts(const std::string& path, const Json& held, const ScoreFacts& facts) {
  for (const auto& [name, value] : facts) {
    const std::string other = held.value(name, "unknown");
    if (other == value) continue;
    return FailedPrecondition(fmt::format(
        "the results in {} were measured with {} {}, this run has {}; give another file", path,
        name, other, value));
  }
  return OkStatus();
}

}  // namespace

Result<ScoreBook> ScoreBook::Open(std::string path, ScoreFacts facts) {
  ScoreBook book;
  book.path_ = std::move(path);
  book.facts_ = std::move(facts);
  std::error_code error;
  if (fs::exists(book.path_, error)) {
    if (Status status = book.Load(); !status.ok()) return status;
  }
  return book;
}

Status ScoreBook::Load() {
  std::ifstream file(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!text.starts_with(kMagic) || text.size() < kHeaderBytes) return Damaged(path_);
  uint64_t checksum;
  std::memcpy(&checksum, text.data() + kMagic.size(), kChecksumBytes);
  const std::string_view payload = std::string_view(text).substr(kHeaderBytes);
  if (Xxh3(payload.data(), payload.size()) != checksum) return Damaged(path_);
  try {
    const Json held = Json::from_cbor(payload.begin(), payload.end());
    if (Status status = CheckFacts(path_, held.at("facts"), facts_); !status.ok()) return status;
    for (const Json& entry : held.at("scores")) {
      scores_[{entry.at("passage"), entry.at("lane")}] =
          UnpackScores(entry.at("positions").get_binary());
    }
    for (const Json& text : held.value("texts", Json::array())) {
      texts_[text.at("name")] = text.at("tokens").get<std::vector<Token>>();
    }
  } catch (const Json::exception&) {
    return Damaged(path_);
  }
  return OkStatus();
}

const std::vector<PositionScore>* ScoreBook::Find(const std::string& passage,
                                                  const std::string& lane) const {
  const auto found = scores_.find({passage, lane});
  return found == scores_.end() ? nullptr : &found->second;
}

void ScoreBook::Put(const std::string& passage, const std::string& lane,
                    std::vector<PositionScore> scores) {
  scores_[{passage, lane}] = std::move(scores);
}

const std::vector<Token>* ScoreBook::FindText(const std::string& name) const {
  const auto found = texts_.find(name);
  return found == texts_.end() ? nullptr : &found->second;
}

void ScoreBook::PutText(const std::string& name, std::vector<Token> tokens) {
  texts_[name] = std::move(tokens);
}

std::string ScoreBook::Serialize() const {
  Json facts = Json::object();
  for (const auto& [name, value] : facts_) facts[name] = value;
  Json scores = Json::array();
  for (const auto& [key, positions] : scores_) {
    scores.push_back({{"passage", key.first},
                      {"lane", key.second},
                      {"positions", Json::binary(PackScores(positions))}});
  }
  Json texts = Json::array();
  for (const auto& [name, tokens] : texts_) texts.push_back({{"name", name}, {"tokens", tokens}});
  Json all = {{"facts", std::move(facts)}, {"scores", std::move(scores)}};
  all["texts"] = std::move(texts);
  std::string payload;
  Json::to_cbor(all, payload);
  const uint64_t checksum = Xxh3(payload.data(), payload.size());
  std::string text(kMagic);
  text.append(reinterpret_cast<const char*>(&checksum), kChecksumBytes);
  return text + payload;
}

Status ScoreBook::Save() const {
  if (path_.empty()) return OkStatus();
  return ReplaceFile(path_, Serialize());
}

}  // namespace shorthand
