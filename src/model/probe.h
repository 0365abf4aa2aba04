// The probe: a calibration from a text of our own, for models that come without one.
//
// About 1000 tokens of prose, code and two other scripts, run through the model once and kept in a
// folder by what they depend on: the model's file, the precision of its weights, the text and the
// kernels. docs/quality.md says how it compares with a longer text.
// Thread-safety: as Calibrate; several processes may share the folder.
#ifndef SHORTHAND_MODEL_PROBE_H_
#define SHORTHAND_MODEL_PROBE_H_

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "model/model.h"
#include "shorthand/calibration.h"
#include "shorthand/status.h"

namespace shorthand {

inline constexpr int kMostProbeTokens = 1024;

// The text, written for this purpose.
std::string_view ProbeText();

struct ProbeOptions {
  std::string model_path;  // the file it was loaded from
  std::string folder;      // where probes are kept; empty: nowhere
  std::function<void(double)> on_progress = {};
  std::stop_token stop = {};
};

// Reads the probe of a model from the folder, or makes it and puts it there; a folder that cannot
// be written only costs the time of the next probe.
// Errors: those of Calibrate.
Result<Calibration> ProbeModel(Model& model, const ProbeOptions& options);

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_PROBE_H_
