// The options of commands that show a slice of a model's keys or values.
// Thread-safety: one thread.
#ifndef SHORTHAND_TOOLS_SLICE_OPTIONS_H_
#define SHORTHAND_TOOLS_SLICE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "model_slice.h"

namespace shorthand {

// Which text of which model.
struct CaptureOptions {
  CaptureRequest request;
  std::string tokens = "1024";
};
// Without the model.
void AddCaptureOptions(CLI::App& app, CaptureOptions& options);
// Errors: those of ParseTokens.
Result<CaptureRequest> ReadCaptureOptions(const CaptureOptions& options);

struct SliceOptions {
  CaptureOptions capture;
  SliceText slice;
};
// The model, too. What `options` holds before is the default.
void AddSliceOptions(CLI::App& app, SliceOptions& options);

// Checks the command line, then captures. kExitDone, or the code of what was wrong and has been
// said.
int ReadSlice(const SliceOptions& options, ModelSlice* slice);

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_SLICE_OPTIONS_H_
