#include "model/vocab.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <limits>
#include <unordered_set>
#include <utility>

#include "model/utf8.h"

namespace shorthand {
namespace {

constexpr int64_t kMaxTokens = 1 << 24;

Status Damaged(const GgufFile& file, std::string_view what) {
  return DataLoss(fmt::format("{}: the vocabulary is damaged: {}", file.path(), what));
}

// "<0x0A>", as SentencePiece writes tokens of single bytes.
bool IsByteText(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  return text.size() == 6 && text.substr(0, 3) == "<0x" && text[5] == '>' &&
         kHex.find(text[3]) != kHex.npos && kHex.find(text[4]) != kHex.npos;
}

Status CheckTokens(const GgufFile& file, std::span<const std::string_view> tokens) {
  const TensorInfo* embedding = file.Tensor("token_embd.weight");
  if (tokens.empty() || tokens.size() > kMaxTokens ||
      (embedding != nullptr && embedding->dims[1] != static_cast<int64_t>(tokens.size()))) {
    return Damaged(file, fmt::format("{} tokens for {} rows of the embedding", tokens.size(),
                                     embedding == nullptr ? 0 : embedding->dims[1]));
  }
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty()) return Damaged(file, fmt::format("token {} is empty", i));
    if (!seen.insert(tokens[i]).second) {
      return Damaged(file, fmt::format("token {} has the text of another one", i));
    }
    if (FirstInvalidUtf8(tokens[i]).has_value()) {
      return Damaged(file, fmt::format("token {} is not UTF-8", i));
    }
  }
  return OkStatus();
}

Status CheckTokenTypes(const GgufFile& file, std::span<const std::string_view> tokens) {
  const std::string scores_key = "tokenizer.ggml.scores";
  if (file.Has(scores_key)) {
    const Result<int64_t> scores = file.FloatCount(scores_key);
    if (!scores.ok() || *scores != static_cast<int64_t>(tokens.size())) {
      return Damaged(file, "not one score for each token");
    }
  }
  const std::string types_key = "tokenizer.ggml.token_type";
  if (!file.Has(types_key)) return OkStatus();
  const Result<std::vector<int64_t>> types = file.Integers(types_key);
  if (!types.ok() || types->size() != tokens.size()) {
    return Damaged(file, "not one type for each token");
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int64_t type = (*types)[i];
    if (type < LLAMA_TOKEN_TYPE_UNDEFINED || type > LLAMA_TOKEN_TYPE_BYTE) {
      return Damaged(file, fmt::format("token {} has type {}", i, type));
    }
    if (type == LLAMA_TOKEN_TYPE_BYTE && !IsByteText(tokens[i])) {
      return Damaged(file, fmt::format("token {} is no byte, but is said to be", i));
    }
  }
  return OkStatus();
}

Status CheckSpecialTokens(const GgufFile& file, int64_t tokens) {
  constexpr std::array kNames = {"bos",     "eos",       "eot",     "eom",
                                 "unknown", "seperator", "padding", "mask"};
  for (const char* name : kNames) {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    if (!file.Has(key)) continue;
    const Result<int64_t> id = file.Integer(key);
    const bool none = id.ok() && *id == std::numeric_limits<uint32_t>::max();
    if (!id.ok() || (!none && (*id < -1 || *id >= tokens))) {
      return Damaged(file, fmt::format("the {} token is none of {} tokens", name, tokens));
    }
  }
  return OkStatus();
}

Status CheckVocab(const GgufFile& file) {
  const Result<std::string> kind = file.Text("tokenizer.ggml.model");
  if (!kind.ok()) return Damaged(file, kind.status().message());
  if (*kind != "llama" && *kind != "gpt2") {
    return Unimplemented(fmt::format(
        "{}: tokenizer '{}' is not supported; supported are llama and gpt2", file.path(), *kind));
  }
  const Result<std::vector<std::string_view>> tokens = file.Texts("tokenizer.ggml.tokens");
  if (!tokens.ok()) return Damaged(file, tokens.status().message());
  if (Status status = CheckTokens(file, *tokens); !status.ok()) return status;
  if (Status status = CheckTokenTypes(file, *tokens); !status.ok()) return status;
  if (*kind == "gpt2") {
    const Result<std::vector<std::string_view>> merges = file.Texts("tokenizer.ggml.merges");
    if (!merges.ok()) return Damaged(file, merges.status().message());
    for (const std::string_view merge : *merges) {
      if (FirstInvalidUtf8(merge).has_value() || merge.find(' ', 1) == merge.npos) {
        return Damaged(file, "a merge that is not two texts");
      }
    }
  }
  return CheckSpecialTokens(file, static_cast<int64_t>(tokens->size()));
}

}  // namespace

Result<std::unique_ptr<Vocab>> Vocab::Load(const GgufFile& file) {
  if (Status status = CheckVocab(file); !status.ok()) return status;
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model_ptr model(llama_model_load_from_file(file.path().c_str(), params));
  if (model == nullptr) return Damaged(file, "llama.cpp cannot read it");
  const int size = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
  Result<std::string> chat_template = file.Text("tokenizer.chat_template");
  return std::unique_ptr<Vocab>(
      new Vocab(std::move(model), chat_template.ok() ? *chat_template : std::string(), size));
}

Vocab::Vocab(llama_model_ptr model, std::string chat_template, int size)
    : model_(std::move(model)),
      vocab_(llama_model_get_vocab(model_.get())),
      chat_template_(std::move(chat_template)),
      size_(size) {}

bool Vocab::IsEnd(Token token) const { return llama_vocab_is_eog(vocab_, token); }

Result<std::vector<Token>> Vocab::Tokenize(std::string_view text, Place place,
                                           Markup markup) const {
  if (const std::optional<size_t> bad = FirstInvalidUtf8(text); bad.has_value()) {
    return InvalidArgument(fmt::format("the text is not valid UTF-8 at byte {}", *bad));
  }
  if (text.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max() / 2)) {
    return InvalidArgument(
        fmt::format("a text of {} bytes; at most 1 GiB is accepted", text.size()));
  }
  const auto tokenize = [&](std::vector<Token>& tokens) {
    return llama_tokenize(vocab_, text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                          static_cast<int32_t>(tokens.size()), place == Place::kBegin,
                          markup == Markup::kParse);
  };
  std::vector<Token> tokens(text.size() / 2 + 8);
  try {
    int32_t count = tokenize(tokens);
    if (count < 0 && count != std::numeric_limits<int32_t>::min()) {
      tokens.resize(static_cast<size_t>(-count));
      count = tokenize(tokens);
    }
    if (count < 0) return InvalidArgument("the text has more tokens than a sequence can hold");
    tokens.resize(static_cast<size_t>(count));
  } catch (const std::exception& error) {
    return InvalidArgument(fmt::format("this vocabulary cannot spell the text: {}", error.what()));
  }
  return tokens;
}

std::string Vocab::Piece(Token token) const {
  std::string piece(16, '\0');
  const auto convert = [&] {
    return llama_token_to_piece(vocab_, token, piece.data(), static_cast<int32_t>(piece.size()), 0,
                                false);
  };
  int32_t bytes = convert();
  if (bytes < 0) {
    piece.resize(static_cast<size_t>(-bytes));
    bytes = convert();
  }
  piece.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return piece;
}

std::string Vocab::Text(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) text += Piece(token);
  return text;
}

Result<std::string> Vocab::FormatChat(std::span<const ChatMessage> messages, ChatEnd end) const {
  if (chat_template_.empty()) {
    return FailedPrecondition("this model has no chat template; give it a plain prompt");
  }
  std::vector<llama_chat_message> list;
  size_t bytes = 256;
  for (const ChatMessage& message : messages) {
    list.push_back({message.role.c_str(), message.text.c_str()});
    bytes += 2 * message.text.size() + 64;
  }
  std::string text(bytes, '\0');
  const auto format = [&] {
    return llama_chat_apply_template(chat_template_.c_str(), list.data(), list.size(),
                                     end == ChatEnd::kAssistantTurn, text.data(),
                                     static_cast<int32_t>(text.size()));
  };
  int32_t length = format();
  if (length > static_cast<int32_t>(text.size())) {
    text.resize(static_cast<size_t>(length));
    length = format();
  }
  if (length < 0) return Unimplemented("llama.cpp does not know this model's chat template");
  text.resize(static_cast<size_t>(length));
  return text;
}

}  // namespace shorthand
