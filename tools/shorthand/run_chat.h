// The chat of `shorthand run`: reads a line, lets the model answer, until /exit or the input's end.
// Thread-safety: one thread; takes SIGINT over while it runs.
#ifndef SHORTHAND_TOOLS_RUN_CHAT_H_
#define SHORTHAND_TOOLS_RUN_CHAT_H_

#include <cstdint>
#include <string>

#include "model/generate.h"

namespace shorthand {

struct ChatOptions {
  int64_t max_tokens = 0;     // of an answer; 0: to the context's end
  std::string first_message;  // asked before the first line is read; may be empty
};

// Returns the exit code.
int RunChat(Session& session, Sampler& sampler, const ChatOptions& options);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_RUN_CHAT_H_
