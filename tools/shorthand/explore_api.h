// The API of `shorthand explore`, without HTTP: a question in, an answer out. docs/explore.md lists
// the routes.
// Thread-safety: that of what they ask; otherwise pure functions.
#ifndef SHORTHAND_TOOLS_EXPLORE_API_H_
#define SHORTHAND_TOOLS_EXPLORE_API_H_

#include <map>
#include <string>

#include "explore_data.h"
#include "explore_live.h"

namespace shorthand {

struct ApiReply {
  // Of HTTP; 400 with {"error": a sentence} for what cannot be answered, 409 for what cannot now.
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

using ApiParameters = std::multimap<std::string, std::string>;

// Parameters that a route does not know are refused, like values it cannot read.
ApiReply InfoReply(const ExploreData& data, const ApiParameters& parameters);
ApiReply PlanReply(const ExploreData& data, const ApiParameters& parameters);
ApiReply ResultsReply(const ExploreData& data, const ApiParameters& parameters);
// The numbers as one binary body: the length of the JSON in 4 bytes, the JSON padded with spaces to
// 4 bytes, then f32 [tokens][channels] of the values and of what every code makes of them, all
// little-endian.
ApiReply SliceReply(const ExploreData& data, const ApiParameters& parameters);

// All answer with the state.
ApiReply LiveReply(LiveRuns& live, const ApiParameters& parameters);
ApiReply StartLiveReply(LiveRuns& live, const ApiParameters& parameters);
ApiReply StopLiveReply(LiveRuns& live, const ApiParameters& parameters);

ApiReply ErrorReply(int status, const std::string& sentence);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EXPLORE_API_H_
