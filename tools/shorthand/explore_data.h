// What `shorthand explore` knows: the keys and values of a model on a text, and made-up ones.
// Thread-safety: immutable once made.
#ifndef SHORTHAND_TOOLS_EXPLORE_DATA_H_
#define SHORTHAND_TOOLS_EXPLORE_DATA_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model_slice.h"
#include "shorthand/plan.h"

namespace shorthand {

// What a scale for each token and one for each channel make of a whole head in 2 bits: relative
// errors.
struct HeadContrast {
  int layer = 0;
  int head = 0;
  SideKind kind = SideKind::kKey;
  int dim = 0;
  double token_error = 0;
  double channel_error = 0;
  int64_t first_channel = 0;  // of 16, among them the loudest
};

// Where heads come from.
struct HeadSource {
  std::string name;  // "model" or "synthetic"
  CapturedText captured;
  std::vector<HeadContrast> heads;
};

struct ExploreData {
  std::string model;                    // as it was asked for; empty: none
  std::optional<ModelShape> shape;      // of the model
  std::vector<HeadSource> sources;      // the model, if there is one; the synthetic head
  nlohmann::ordered_json results = {};  // as ResultsOf has them
};

// request.model may be empty. Errors: those of CaptureModel and ShapeFromGgufFile.
Result<ExploreData> ExploreModel(const CaptureRequest& request);

// {"kl": reports of eval, "speed": reports of bench model}, each with the name of its file and the
// fields that the page shows; rows without figures are left out. Errors: those of ReadResults.
Result<nlohmann::ordered_json> ResultsOf(const std::vector<std::string>& files);
// One report of eval among them.
nlohmann::ordered_json ShownKl(const nlohmann::ordered_json& report, const std::string& file);

// One head of 64 channels over 1024 tokens: normal keys of which two channels are large in every
// token, and normal values of which some tokens are larger. The same every time; tokens 64 to 87 of
// keys' channels 0 to 15 in 2 bits, the last 4 tokens exact, lose 48 % by token and 16 % by
// channel.
HeadSource SyntheticSource();

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EXPLORE_DATA_H_
