// StepGraph: one forward step of a model as a ggml graph, built once for a number of rows and run
// for any batch of that size.
//
// Per layer three custom nodes stand where attention would: write stores the keys and values, seal
// quantizes the pages that became complete, attend reads them. Each takes the one before it as a
// source, so ggml's barriers between nodes keep their order; every ggml worker takes part in each.
// Weights and Hyperparams outlive the graph.
// Thread-safety: one thread at a time.
#ifndef SHORTHAND_MODEL_GRAPH_H_
#define SHORTHAND_MODEL_GRAPH_H_

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/hyperparams.h"
#include "model/observer.h"
#include "model/weights.h"
#include "shorthand/attention.h"
#include "shorthand/cache.h"
#include "shorthand/status.h"

namespace shorthand {

class StepGraph {
 public:
  // `rows` tokens, of which `outputs` rows yield logits. With 0 outputs the graph ends when the
  // last layer's keys and values are stored. Matrices are multiplied by at least `product_rows`
  // rows; those beyond the step's own are idle. Errors: kResourceExhausted.
  static Result<std::unique_ptr<StepGraph>> Build(const Hyperparams& hyper,
                                                  const WeightTable& weights,
                                                  ggml_gallocr_t allocator, int product_rows,
                                                  int rows, int outputs);
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  int rows() const { return rows_; }
  int outputs() const { return outputs_; }

  // REQUIRES: batch.rows() == tokens.size() == rows(); output_rows.size() == outputs(); every token
  // lies in the vocabulary, every output row in the batch. An empty `observer` is not called.
  // Returns logits [outputs][vocabulary], valid until the next step or allocation.
  // Errors: kInternal if ggml fails. The batch keeps its own status.
  Result<std::span<const float>> Run(ggml_backend_t backend, Batch& batch, AttentionPlan& plan,
                                     std::span<const int32_t> tokens,
                                     std::span<const int32_t> output_rows,
                                     const StepObserver& observer);

 private:
  // What the custom nodes work on; set for each run.
  struct Step {
    Batch* batch = nullptr;
    AttentionPlan* plan = nullptr;
    const StepObserver* observer = nullptr;  // null: nobody observes

    // Worker 0 shows `rows`, [rows][heads][dim], to the observer, if there is one.
    void Show(AttentionInput input, int layer, const ggml_tensor& rows, int worker) const;
  };
  struct LayerNode {
    const Step* step = nullptr;
    int layer = 0;
  };
  class Builder;

  StepGraph(int product_rows, int rows, int outputs)
      : product_rows_(product_rows), rows_(rows), outputs_(outputs) {}
  // With the idle ones; of outputs where there are any.
  int computed_rows() const { return std::max(rows_, product_rows_); }
  int computed_outputs() const { return std::max(outputs_, product_rows_); }

  static void WriteNode(ggml_tensor* node, int worker, int workers, void* layer_node);
  static void SealNode(ggml_tensor* node, int worker, int workers, void* layer_node);
  static void AttendNode(ggml_tensor* node, int worker, int workers, void* layer_node);

  const int product_rows_;
  const int rows_;
  const int outputs_;
  Step step_;
  std::vector<LayerNode> layer_nodes_;
  ggml_context_ptr context_;
  ggml_cgraph* graph_ = nullptr;
  ggml_tensor* tokens_ = nullptr;
  ggml_tensor* positions_ = nullptr;
  ggml_tensor* output_rows_ = nullptr;  // null if all rows are outputs or none is
  ggml_tensor* logits_ = nullptr;       // null without outputs
};

}  // namespace shorthand

#endif  // SHORTHAND_MODEL_GRAPH_H_
