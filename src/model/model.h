// Model: a language model whose attention reads a quantized cache.
//
// The model owns weights, vocabulary and compute threads, the caller owns the cache: it is opened
// with shape(), and one forward step appends the rows of one batch to it. Many caches and sequences
// may use one model, one step at a time.
// Thread-safety: Forward and Observe one thread at a time; everything else is immutable once
// loaded.
#ifndef SHORTHAND_MODEL_MODEL_H_
#define SHORTHAND_MODEL_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "model/hyperparams.h"
#include "model/observer.h"
#include "model/vocab.h"
#include "model/weights.h"
#include "shorthand/cache.h"
#include "shorthand/shape.h"
#include "shorthand/status.h"

namespace shorthand {

enum class BackendLog { kSilent, kStderr };

struct ModelOptions {
  Precision precision = Precision::kNative;  // with kF32 logits do not depend on batch sizes
  int threads = 0;                           // 0: one for each core
  BackendLog log = BackendLog::kSilent;      // of ggml and llama.cpp; one setting for the process
};

class ModelImpl;

class Model {
 public:
  // Errors: kNotFound, kDataLoss, kUnimplemented with what is wrong with the file; kInvalidArgument
  // for the number of threads; kResourceExhausted.
  static Result<std::unique_ptr<Model>> Load(const std::string& path,
                                             const ModelOptions& options = {});
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Shape& shape() const;
  const Vocab& vocab() const;
  Precision precision() const;
  int threads() const;
  uint64_t tensor_bytes() const;  // as in the file

  // Appends `tokens`, one for each row of `batch`, and returns the logits after `output_rows`
  //   [output_rows][vocabulary], valid until the next call.
  // The batch is left for the caller to commit. `output_rows` are in ascending order.
  // Errors: kInvalidArgument for a token outside the vocabulary, a wrong number of tokens or a row
  // outside the batch; those of AttentionPlan::Create; the batch's own status; kResourceExhausted.
  Result<std::span<const float>> Forward(Batch& batch, std::span<const Token> tokens,
                                         std::span<const int32_t> output_rows);

  // Shows every later step to `observer`, until another takes its place; an empty one ends it.
  void Observe(StepObserver observer);

 private:
  explicit Model(std::unique_ptr<ModelImpl> impl);
  std::unique_ptr<ModelImpl> impl_;
};

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_MODEL_H_
