#include "run_chat.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <vector>

#include "command.h"
#include "run_report.h"
#include "terminal.h"

namespace shorthand {
namespace {

constexpr const char* kHelp =
    "/clear forgets the conversation, /stats shows the cache, /exit ends; Ctrl-C stops an answer\n";

std::atomic<bool> interrupted = false;

// While it lives, Ctrl-C sets `interrupted` and wakes up a read.
class InterruptHandler {
 public:
  InterruptHandler() {
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = true; };
    sigaction(SIGINT, &action, &previous_);
  }
  ~InterruptHandler() { sigaction(SIGINT, &previous_, nullptr); }

 private:
  struct sigaction previous_ = {};
};

class Chat {
 public:
  Chat(Session& session, Sampler& sampler, const ChatOptions& options)
      : session_(session), sampler_(sampler), options_(options) {}

  // Errors: what the user can go on after (text that is not UTF-8, a full context) and what not.
  Status Answer(const std::string& message) {
    messages_.push_back({"user", message});
    const auto prompt = NextPrompt();
    if (!prompt.ok()) return Undo(prompt.status());
    interrupted = false;
    const auto generation =
        Generate(session_, sampler_, *prompt,
                 {.max_tokens = options_.max_tokens, .on_text = [](std::string_view piece) {
                    fmt::print("{}", piece);
                    return std::fflush(stdout) == 0 && !interrupted;
                  }});
    if (!generation.ok()) {
      // Part of the message may be held; the next one reads the conversation again.
      const Status cleared = Forget();
      return Undo(cleared.ok() ? generation.status() : cleared);
    }
    fmt::print("\n");
    if (generation->stop == StopReason::kContextFull) {
      fmt::print("{}\n", Styled(Style::kBad, "The context is full: /clear starts anew."));
    }
    messages_.push_back({"assistant", generation->text});
    held_ += generation->text.substr(0, generation->cached_text_bytes);
    return OkStatus();
  }

  Status Clear() {
    messages_.clear();
    return Forget();
  }

 private:
  Status Forget() {
    held_.clear();
    return session_.Clear();
  }

  Status Undo(Status status) {
    messages_.pop_back();
    return status;
  }

  // What the template adds to the text that the cache holds already.
  Result<std::vector<Token>> NextPrompt() {
    const Vocab& vocab = session_.model().vocab();
    const auto formatted = vocab.FormatChat(messages_, ChatEnd::kAssistantTurn);
    if (!formatted.ok()) return formatted.status();
    if (!formatted->starts_with(held_)) {
      // The template rewrites what was said before, so the conversation is read again.
      if (Status status = Forget(); !status.ok()) return status;
    }
    auto tokens =
        vocab.Tokenize(std::string_view(*formatted).substr(held_.size()),
                       session_.tokens() == 0 ? Place::kBegin : Place::kContinue, Markup::kParse);
    if (!tokens.ok()) return tokens;
    const int64_t room = session_.context_tokens() - session_.tokens();
    if (static_cast<int64_t>(tokens->size()) > room) {
      return OutOfRange(fmt::format(
          "the message has {} tokens, but only {} of the context's {} are left; /clear starts anew",
          tokens->size(), room, session_.context_tokens()));
    }
    held_ = *formatted;
    return tokens;
  }

  Session& session_;
  Sampler& sampler_;
  const ChatOptions& options_;
  std::vector<ChatMessage> messages_;
  std::string held_;  // the conversation as text, as far as the cache holds it
};

bool ReadLine(std::string* line) {
  if (isatty(STDIN_FILENO) == 1) {
    fmt::print("{} ", Styled(Style::kStrong, ">"));
    std::fflush(stdout);
  }
  return static_cast<bool>(std::getline(std::cin, *line));
}

}  // namespace

int RunChat(Session& session, Sampler& sampler, const ChatOptions& options) {
  const InterruptHandler handler;
  Chat chat(session, sampler, options);
  if (isatty(STDIN_FILENO) == 1) fmt::print("{}", kHelp);
  std::string line = options.first_message;
  while (!line.empty() || ReadLine(&line)) {
    Status status;
    if (line == "/exit" || line == "/quit") break;
    if (line == "/clear") {
      status = chat.Clear();
    } else if (line == "/stats") {
      PrintCacheReport(session.cache());
    } else if (line.starts_with('/')) {
      fmt::print("{}", kHelp);
    } else if (!line.empty()) {
      status = chat.Answer(line);
    }
    line.clear();
    if (status.ok()) continue;
    Fail(status);
    const bool can_go_on = status.code() == StatusCode::kInvalidArgument ||
                           status.code() == StatusCode::kOutOfRange ||
                           status.code() == StatusCode::kResourceExhausted;
    if (!can_go_on) return kExitFailed;
  }
  fmt::print("\n");
  return kExitDone;
}

}  // namespace shorthand
