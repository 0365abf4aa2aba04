// Vocab: the tokenizer and the chat template of a model, by llama.cpp.
//
// The vocabulary's metadata is checked before llama.cpp reads it, since it may end the process on
// what it does not expect.
// Thread-safety: immutable once loaded.
#ifndef SHORTHAND_MODEL_VOCAB_H_
#define SHORTHAND_MODEL_VOCAB_H_

#include <llama-cpp.h>
#include <llama.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_file.h"
#include "shorthand/status.h"

namespace shorthand {

using Token = int32_t;

// Whether a text opens a sequence, so that the model's begin token goes before it.
enum class Place { kBegin, kContinue };
// Whether texts of control tokens, such as <|im_end|>, become these tokens.
enum class Markup { kIgnore, kParse };

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string text;
};
// Whether a formatted chat ends with the opening of the assistant's turn.
enum class ChatEnd { kClosed, kAssistantTurn };

class Vocab {
 public:
  // Errors: kDataLoss for a vocabulary that is missing or damaged; kUnimplemented for a tokenizer
  // that is not supported.
  static Result<std::unique_ptr<Vocab>> Load(const GgufFile& file);

  int size() const { return size_; }
  bool IsEnd(Token token) const;

  // Errors: kInvalidArgument with the byte where `text` is not UTF-8.
  Result<std::vector<Token>> Tokenize(std::string_view text, Place place, Markup markup) const;

  // The bytes of a token; empty for control tokens. A character may span tokens.
  // REQUIRES: 0 <= token < size().
  std::string Piece(Token token) const;
  std::string Text(std::span<const Token> tokens) const;

  // Errors: kFailedPrecondition if the model has no chat template; kUnimplemented if llama.cpp does
  // not know it.
  Result<std::string> FormatChat(std::span<const ChatMessage> messages, ChatEnd end) const;

 private:
  Vocab(llama_model_ptr model, std::string chat_template, int size);

  llama_model_ptr model_;  // vocabulary only
  const llama_vocab* vocab_;
  std::string chat_template_;
  int size_;
};

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_VOCAB_H_
