// ScoreBook: the scores of passages over lanes (the caches that are compared), and texts that a
// model wrote, in memory and, if it has a file, on disk, so that a long evaluation can be stopped,
// continued and added to.
//
// The file is replaced as a whole: written beside its place, then renamed. It names the facts under
// which it was measured and is refused under others. docs/evaluation.md has its format.
// Thread-safety: one thread at a time; one process at a time for a file.
#ifndef SHORTHAND_EVAL_SCORE_BOOK_H_
#define SHORTHAND_EVAL_SCORE_BOOK_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "eval/metrics.h"
#include "model/vocab.h"
#include "shorthand/status.h"

namespace shorthand {

// What scores depend on besides the passage and the lane: names for people, and values.
using ScoreFacts = std::vector<std::pair<std::string, std::string>>;

class ScoreBook {
 public:
  // In memory alone.
  ScoreBook() = default;
  // With the file at `path`; empty if there is none yet. Errors: kDataLoss for what is no such file
  // or is damaged; kFailedPrecondition if it was measured under other facts.
  static Result<ScoreBook> Open(std::string path, ScoreFacts facts);

  // Null if there are none.
  const std::vector<PositionScore>* Find(const std::string& passage, const std::string& lane) const;
  void Put(const std::string& passage, const std::string& lane, std::vector<PositionScore> scores);

  // The tokens of a text; null if there are none.
  const std::vector<Token>* FindText(const std::string& name) const;
  void PutText(const std::string& name, std::vector<Token> tokens);

  // Writes the file, if there is one. Errors: kInternal, the old file being as it was.
  Status Save() const;

 private:
  using Key = std::pair<std::string, std::string>;  // passage, lane

  Status Load();
  std::string Serialize() const;

  std::string path_;
  ScoreFacts facts_;
  std::map<Key, std::vector<PositionScore>> scores_;
  std::map<std::string, std::vector<Token>> texts_;
};

}  // namespace shorthand

#endif  // SHORTHAND_EVAL_SCORE_BOOK_H_
