// Calibrate: runs a text through a model and keeps what its keys, values and queries look
// like.
//
// The text is one sequence over the exact cache, read page by page (model/statistics.h). Then the
// rows of its first pages go through caches of the widths that are compared (attention/noise.h).
// Thread-safety: one thread at a time for a model, which must have no other observer.
#ifndef SHORTHAND_MODEL_CALIBRATE_H_
#define SHORTHAND_MODEL_CALIBRATE_H_

#include <functional>
#include <span>
#include <stop_token>
#include <string>

#include "model/model.h"
#include "shorthand/calibration.h"
#include "shorthand/status.h"

namespace shorthand {

// Fewer tokens make statistics that are worse than none. Of a model whose context is shorter, all
// of it will do.
inline constexpr int64_t kLeastCalibrationTokens = 256;

struct CalibrateOptions {
  std::string model_name;
  std::string source;                            // the text's name
  std::function<void(double)> on_progress = {};  // the share that is done; may be empty
  std::stop_token stop = {};                     // ends it behind a page or a width
};

// Whole pages of 128 tokens are used, a rest is not. Numbers are rounded as the text form has them.
// Errors: kInvalidArgument for too few tokens; kOutOfRange for more than the model's context;
// kDataLoss for statistics that are not finite, naming the layer; kCancelled if it was stopped;
// those of Model::Forward and AttentionNoise.
Result<Calibration> Calibrate(Model& model, std::span<const Token> tokens,
                              const CalibrateOptions& options);

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_CALIBRATE_H_
