// The calibration that a command's recipes use: a file, or else the built-in probe of the model.
// Thread-safety: as Calibrate.
#ifndef SHORTHAND_TOOLS_MODEL_CALIBRATION_H_
#define SHORTHAND_TOOLS_MODEL_CALIBRATION_H_

#include <optional>
#include <span>
#include <string>

#include "model/model.h"
#include "shorthand/calibration.h"
#include "shorthand/recipe.h"
#include "shorthand/status.h"

namespace shorthand {

// Errors: kNotFound for a file that cannot be read; those of Calibration::Parse, naming the file.
Result<Calibration> ReadCalibration(const std::string& path);

// Nothing if no recipe needs one. `file`: empty for the probe, which is said on stderr while it is
// made. Errors: those of ReadCalibration, ProbeModel and Calibration::CheckFits.
Result<std::optional<Calibration>> CalibrationFor(Model& model, const std::string& model_path,
                                                  std::span<const Recipe> recipes,
                                                  const std::string& file);

// What Cache::Open takes.
inline const Calibration* PointerTo(const std::optional<Calibration>& calibration) {
  return calibration ? &*calibration : nullptr;
}

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_MODEL_CALIBRATION_H_
