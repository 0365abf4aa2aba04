#include "model/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace shorthand {
namespace {

// Nodes and leaves: per layer and for the rest, generously.
constexpr size_t kNodesPerLayer = 48;
constexpr size_t kNodesElsewhere = 64;

// Zeros for the idle rows.
void SetInput(ggml_tensor* tensor, std::span<const int32_t> values) {
  auto* data = static_cast<int32_t*>(tensor->data);
  std::fill(std::copy(values.begin(), values.end(), data), data + tensor->ne[0], 0);
}

}  // namespace

void StepGraph::Step::Show(AttentionInput input, int layer, const ggml_tensor& rows,
                           int worker) const {
  if (observer == nullptr || worker != 0) return;
  (*observer)({.input = input,
               .layer = layer,
               .heads = static_cast<int>(rows.ne[1]),
               .dim = static_cast<int>(rows.ne[0]),
               .rows = {static_cast<const float*>(rows.data),
                        static_cast<size_t>(batch->rows() * rows.ne[0] * rows.ne[1])}});
}

// Custom nodes: sources are in the order in which Builder passes them.
void StepGraph::WriteNode(ggml_tensor* node, int worker, int workers, void* layer_node) {
  const auto& [step, layer] = *static_cast<const LayerNode*>(layer_node);
  step->Show(AttentionInput::kKeys, layer, *node->src[0], worker);
  step->Show(AttentionInput::kValues, layer, *node->src[1], worker);
  step->batch->Write(layer, static_cast<const float*>(node->src[0]->data),
                     static_cast<const float*>(node->src[1]->data), worker, workers);
}

void StepGraph::SealNode(ggml_tensor* node, int worker, int workers, void* layer_node) {
  const auto& [step, layer] = *static_cast<const LayerNode*>(layer_node);
  step->batch->Seal(layer, worker, workers);
}

void StepGraph::AttendNode(ggml_tensor* node, int worker, int workers, void* layer_node) {
  const auto& [step, layer] = *static_cast<const LayerNode*>(layer_node);
  step->Show(AttentionInput::kQueries, layer, *node->src[0], worker);
  const AttentionArgs args = {.layer = layer,
                              .q = static_cast<const float*>(node->src[0]->data),
                              .out = static_cast<float*>(node->data)};
  step->plan->Run(args, worker, workers);
}

// Adds nodes to a graph. Shapes in comments are [rows][...], row-major, as in the rest of the code;
// ggml's order is the reverse.
class StepGraph::Builder {
 public:
  Builder(const Hyperparams& hyper, const WeightTable& weights, StepGraph& graph)
      : hyper_(hyper), weights_(weights), graph_(graph), context_(graph.context_.get()) {}

  void Build() {
    AddInputs();
    ggml_tensor* x = ggml_get_rows(context_, weights_.embedding, graph_.tokens_);
    if (hyper_.architecture->scaled_embedding) {
      x = ggml_scale(context_, x, std::sqrt(static_cast<float>(hyper_.width)));
    }
    const int layers = static_cast<int>(hyper_.shape.layers.size());
    for (int layer = 0; layer < layers; ++layer) {
      const bool last = layer + 1 == layers;
      x = Layer(layer, x, last);
      if (x == nullptr) return;
    }
    AddLogits(x);
  }

 private:
  ggml_tensor* Input(int64_t count) {
    ggml_tensor* tensor = ggml_new_tensor_1d(context_, GGML_TYPE_I32, count);
    ggml_set_input(tensor);
    return tensor;
  }

  void AddInputs() {
    graph_.tokens_ = Input(graph_.computed_rows());
    graph_.positions_ = Input(graph_.computed_rows());
    if (graph_.outputs_ > 0 && graph_.outputs_ < graph_.rows_) {
      graph_.output_rows_ = Input(graph_.computed_outputs());
    }
  }

  ggml_tensor* Norm(ggml_tensor* x, ggml_tensor* weight) {
    return ggml_mul(context_, ggml_rms_norm(context_, x, hyper_.norm_epsilon), weight);
  }

  // Projects x  [rows][width] to [rows][heads][dim].
  ggml_tensor* Heads(ggml_tensor* x, ggml_tensor* weight, ggml_tensor* bias, int dim, int heads) {
    ggml_tensor* y = ggml_mul_mat(context_, weight, x);
    if (bias != nullptr) y = ggml_add(context_, y, bias);
    return ggml_reshape_3d(context_, y, dim, heads, graph_.computed_rows());
  }

  ggml_tensor* Rope(ggml_tensor* x, int layer) {
    const RopeParams& rope = hyper_.rope[layer];
    return ggml_rope_ext(context_, x, graph_.positions_, weights_.rope_factors, rope.dims,
                         rope.style, rope.original_context_tokens, rope.base, rope.scale,
                         rope.extrapolation, rope.attention_factor, rope.beta_fast, rope.beta_slow);
  }

  ggml_tensor* Custom(std::array<int64_t, 2> dims, std::array<ggml_tensor*, 2> sources,
                      int source_count, ggml_custom_op_t run, int layer) {
    return ggml_custom_4d(context_, GGML_TYPE_F32, dims[0], dims[1], 1, 1, sources.data(),
                          source_count, run, GGML_N_TASKS_MAX, &graph_.layer_nodes_[layer]);
  }

  // [rows][query_heads * v_dim]; null where only the keys and values of the layer are wanted.
  ggml_tensor* Attention(int layer, ggml_tensor* x, bool store_only) {
    const LayerWeights& w = weights_.layers[layer];
    const LayerShape& shape = hyper_.shape.layers[layer];
    ggml_tensor* k = Heads(x, w.k, w.k_bias, shape.k_dim, shape.kv_heads);
    if (w.k_norm != nullptr) k = Norm(k, w.k_norm);
    ggml_tensor* v = Heads(x, w.v, w.v_bias, shape.v_dim, shape.kv_heads);
    ggml_tensor* written = Custom({1, 1}, {Rope(k, layer), v}, 2, WriteNode, layer);
    ggml_tensor* sealed = Custom({1, 1}, {written, nullptr}, 1, SealNode, layer);
    if (store_only) {
      ggml_build_forward_expand(graph_.graph_, sealed);
      return nullptr;
    }
    ggml_tensor* q = Heads(x, w.q, w.q_bias, shape.k_dim, shape.query_heads);
    if (w.q_norm != nullptr) q = Norm(q, w.q_norm);
    return Custom({int64_t{shape.query_heads} * shape.v_dim, graph_.computed_rows()},
                  {Rope(q, layer), sealed}, 2, AttendNode, layer);
  }

  ggml_tensor* FeedForward(const LayerWeights& w, ggml_tensor* x) {
    ggml_tensor* up = ggml_mul_mat(context_, w.ffn_up, x);
    ggml_tensor* gate = ggml_mul_mat(context_, w.ffn_gate, x);
    ggml_tensor* hidden = hyper_.architecture->activation == Activation::kGelu
                              ? ggml_geglu_split(context_, gate, up)
                              : ggml_swiglu_split(context_, gate, up);
    return ggml_mul_mat(context_, w.ffn_down, hidden);
  }

  // The last layer goes on with the output rows only.
  ggml_tensor* Layer(int layer, ggml_tensor* x, bool last) {
    const LayerWeights& w = weights_.layers[layer];
    const bool store_only = last && graph_.outputs_ == 0;
    ggml_tensor* attended = Attention(layer, Norm(x, w.attention_norm), store_only);
    if (store_only) return nullptr;
    if (last && graph_.output_rows_ != nullptr) {
      attended = ggml_get_rows(context_, attended, graph_.output_rows_);
      x = ggml_get_rows(context_, x, graph_.output_rows_);
    }
    ggml_tensor* y = ggml_mul_mat(context_, w.attention_out, attended);
    if (w.attention_post_norm != nullptr) y = Norm(y, w.attention_post_norm);
    x = ggml_add(context_, y, x);
    y = FeedForward(w, Norm(x, w.ffn_norm));
    if (w.ffn_post_norm != nullptr) y = Norm(y, w.ffn_post_norm);
    return ggml_add(context_, y, x);
  }

  void AddLogits(ggml_tensor* x) {
    ggml_tensor* logits = ggml_mul_mat(context_, weights_.output, Norm(x, weights_.output_norm));
    if (hyper_.final_softcap > 0) {
      logits = ggml_scale(context_, logits, 1 / hyper_.final_softcap);
      logits = ggml_scale(context_, ggml_tanh(context_, logits), hyper_.final_softcap);
    }
    ggml_set_output(logits);
    graph_.logits_ = logits;
    ggml_build_forward_expand(graph_.graph_, logits);
  }

  const Hyperparams& hyper_;
  const WeightTable& weights_;
  StepGraph& graph_;
  ggml_context* context_;
};

Result<std::unique_ptr<StepGraph>> StepGraph::Build(const Hyperparams& hyper,
                                                    const WeightTable& weights,
                                                    ggml_gallocr_t allocator, int product_rows,
                                                    int rows, int outputs) {
  std::unique_ptr<StepGraph> graph(new StepGraph(product_rows, rows, outputs));
  const size_t layers = hyper.shape.layers.size();
  const size_t nodes = layers * kNodesPerLayer + kNodesElsewhere;
  graph->context_.reset(ggml_init(
      {.mem_size = nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false),
       .mem_buffer = nullptr,
       .no_alloc = true}));
  if (graph->context_ == nullptr) return ResourceExhausted("no memory for the model's graph");
  graph->graph_ = ggml_new_graph_custom(graph->context_.get(), nodes, false);
  for (size_t layer = 0; layer < layers; ++layer) {
    graph->layer_nodes_.push_back({&graph->step_, static_cast<int>(layer)});
  }
  Builder(hyper, weights, *graph).Build();
  if (!ggml_gallocr_alloc_graph(allocator, graph->graph_)) {
    return ResourceExhausted(fmt::format(
        "no memory for the activations of {} tokens at once; smaller prompt chunks need less",
        rows));
  }
  return graph;
}

Result<std::span<const float>> StepGraph::Run(ggml_backend_t backend, Batch& batch,
                                              AttentionPlan& plan, std::span<const int32_t> tokens,
                                              std::span<const int32_t> output_rows,
                                              const StepObserver& observer) {
  step_ = {&batch, &plan, observer ? &observer : nullptr};
  SetInput(tokens_, tokens);
  std::vector<int32_t> positions(rows_);
  for (int row = 0; row < rows_; ++row) {
    positions[row] = static_cast<int32_t>(batch.Position(row));
  }
  SetInput(positions_, positions);
  if (output_rows_ != nullptr) SetInput(output_rows_, output_rows);
  const ggml_status status = ggml_backend_graph_compute(backend, graph_);
  step_ = {};
  if (status != GGML_STATUS_SUCCESS) {
    return Internal(
        fmt::format("ggml could not compute the graph: {}", ggml_status_to_string(status)));
  }
  if (logits_ == nullptr) return std::span<const float>();
  return std::span<const float>(static_cast<const float*>(logits_->data),
                                static_cast<size_t>(logits_->ne[0]) * outputs_);
}

}  // namespace shorthand
