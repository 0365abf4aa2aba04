#include "model/hyperparams.h"
#include "model_shape.h"

namespace shorthand {

Result<ModelShape> ShapeFromGgufFile(const std::string& path) {
  Result<GgufSummary> summary = ShapeFromGguf(path);
  if (!summary.ok()) return summary.status();
  ModelShape model;
  model.shape = std::move(summary->shape);
  model.tensor_bytes = summary->tensor_bytes;
  return model;
}

}  // namespace shorthand
