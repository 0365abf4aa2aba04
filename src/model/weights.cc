#include "model/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ggml-alloc.h>
#include <ggml-cpp.h>
#include <ggml-cpu.h>

#include <initializer_list>
#include <map>
#include <string>
#include <utility>

namespace shorthand {
namespace {

// Rows of the product that a buffer type is asked about: any number that is a prompt chunk.
constexpr int64_t kProbeRows = 512;

// How a tensor is used decides where it may live and in which type.
enum class Use { kProduct, kLookup, kElementwise };

enum class Presence { kRequired, kOptional };

struct Placement {
  ggml_tensor* tensor = nullptr;
  const TensorInfo* source = nullptr;
};

ggml_context_ptr NewContext(size_t tensors) {
  return ggml_context_ptr(ggml_init(
      {.mem_size = tensors * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
}

// The backend's own buffer types, best first; empty if it has none.
std::vector<ggml_backend_buffer_type_t> RepackingBufferTypes(ggml_backend_dev_t device) {
  std::vector<ggml_backend_buffer_type_t> types;
  const auto get =
      reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
          ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
  if (get == nullptr) return types;
  ggml_backend_buffer_type_t* list = get(device);
  for (; list != nullptr && *list != nullptr; ++list) types.push_back(*list);
  return types;
}

// Whether the device multiplies by a matrix like `info` held in a buffer of `type`.
bool CanMultiply(ggml_backend_dev_t device, ggml_backend_buffer_type_t type,
                 const TensorInfo& info) {
  const ggml_context_ptr context = NewContext(4);
  const ggml_backend_buffer_ptr empty(ggml_backend_buft_alloc_buffer(type, 0));
  if (context == nullptr || empty == nullptr) return false;
  ggml_tensor* weight = ggml_new_tensor_2d(context.get(), info.type, info.dims[0], info.dims[1]);
  ggml_tensor* input = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, info.dims[0], kProbeRows);
  ggml_tensor* product = ggml_mul_mat(context.get(), weight, input);
  weight->buffer = empty.get();
  const bool supported = ggml_backend_dev_supports_op(device, product);
  weight->buffer = nullptr;
  return supported;
}

bool CanCompute(ggml_type type, Use use) {
  const bool expands = type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float != nullptr;
  if (use != Use::kProduct) return expands;
  return expands && ggml_get_type_traits_cpu(type)->vec_dot != nullptr;
}

}  // namespace

class WeightsImpl {
 public:
  WeightsImpl(const GgufFile& file, const Hyperparams& hyper, Precision precision)
      : file_(file), hyper_(hyper), precision_(precision) {}

  Status Load() {
    device_ = ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0);
    if (precision_ == Precision::kNative) repacking_ = RepackingBufferTypes(device_);
    const std::span<const uint8_t> bytes = file_.bytes();
    mapped_.reset(
        ggml_backend_cpu_buffer_from_ptr(const_cast<uint8_t*>(bytes.data()), bytes.size()));
    if (mapped_ == nullptr) return ResourceExhausted("no memory for the model's buffers");
    ggml_backend_buffer_set_usage(mapped_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    AddTensors();
    if (!status_.ok()) return status_;
    return FillCopies();
  }

  const WeightTable& table() const { return table_; }
  uint64_t copied_bytes() const {
    uint64_t bytes = 0;
    for (const ggml_backend_buffer_ptr& buffer : buffers_) {
      bytes += ggml_backend_buffer_get_size(buffer.get());
    }
    return bytes;
  }

 private:
  // All tensors that go to one buffer type.
  struct Group {
    ggml_context_ptr context;
    std::vector<Placement> placements;
  };
  using Dims = std::initializer_list<int64_t>;

  void AddTensors() {
    const int64_t width = hyper_.width;
    const int64_t vocabulary = hyper_.vocabulary;
    table_.embedding = Add("token_embd.weight", {width, vocabulary}, Use::kLookup);
    table_.output_norm = Add("output_norm.weight", {width}, Use::kElementwise);
    const bool tied = file_.Tensor("output.weight") == nullptr;
    table_.output =
        Add(tied ? "token_embd.weight" : "output.weight", {width, vocabulary}, Use::kProduct);
    table_.rope_factors =
        Add("rope_freqs.weight", {hyper_.rope[0].dims / 2}, Use::kElementwise, Presence::kOptional);
    for (size_t i = 0; i < hyper_.shape.layers.size() && status_.ok(); ++i) {
      table_.layers.push_back(AddLayer(static_cast<int>(i)));
    }
  }

  LayerWeights AddLayer(int layer) {
    const LayerShape& shape = hyper_.shape.layers[layer];
    const Architecture& architecture = *hyper_.architecture;
    const int64_t width = hyper_.width;
    const int64_t q_width = int64_t{shape.query_heads} * shape.k_dim;
    const int64_t k_width = int64_t{shape.kv_heads} * shape.k_dim;
    const int64_t v_width = int64_t{shape.kv_heads} * shape.v_dim;
    const int64_t out_width = int64_t{shape.query_heads} * shape.v_dim;
    const auto name = [layer](std::string_view part) {
      return fmt::format("blk.{}.{}", layer, part);
    };
    const TensorInfo* up = file_.Tensor(name("ffn_up.weight"));
    const int64_t hidden = up == nullptr ? 0 : up->dims[1];

    LayerWeights w;
    w.attention_norm = Add(name("attn_norm.weight"), {width}, Use::kElementwise);
    w.q = Add(name("attn_q.weight"), {width, q_width}, Use::kProduct);
    w.k = Add(name("attn_k.weight"), {width, k_width}, Use::kProduct);
    w.v = Add(name("attn_v.weight"), {width, v_width}, Use::kProduct);
    w.attention_out = Add(name("attn_output.weight"), {out_width, width}, Use::kProduct);
    if (architecture.qkv_bias) {
      w.q_bias = Add(name("attn_q.bias"), {q_width}, Use::kElementwise);
      w.k_bias = Add(name("attn_k.bias"), {k_width}, Use::kElementwise);
      w.v_bias = Add(name("attn_v.bias"), {v_width}, Use::kElementwise);
    }
    if (architecture.qk_norm) {
      w.q_norm = Add(name("attn_q_norm.weight"), {shape.k_dim}, Use::kElementwise);
      w.k_norm = Add(name("attn_k_norm.weight"), {shape.k_dim}, Use::kElementwise);
    }
    w.ffn_norm = Add(name("ffn_norm.weight"), {width}, Use::kElementwise);
    w.ffn_up = Add(name("ffn_up.weight"), {width, hidden}, Use::kProduct);
    w.ffn_gate = Add(name("ffn_gate.weight"), {width, hidden}, Use::kProduct);
    w.ffn_down = Add(name("ffn_down.weight"), {hidden, width}, Use::kProduct);
    if (architecture.post_norms) {
      w.attention_post_norm = Add(name("post_attention_norm.weight"), {width}, Use::kElementwise);
      w.ffn_post_norm = Add(name("post_ffw_norm.weight"), {width}, Use::kElementwise);
    }
    return w;
  }

  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const TensorInfo* Find(const std::string& name, Dims dims, Use use, Presence presence) {
    const TensorInfo* info = file_.Tensor(name);
    if (info == nullptr) {
      if (presence == Presence::kRequired) {
        Fail(DataLoss(fmt::format("{} has no tensor '{}'", file_.path(), name)));
      }
      return nullptr;
    }
    std::array<int64_t, GGML_MAX_DIMS> expected = {1, 1, 1, 1};
    std::copy(dims.begin(), dims.end(), expected.begin());
    if (info->dims != expected) {
      Fail(DataLoss(fmt::format("{}: tensor '{}' is {}, expected {}", file_.path(), name,
                                fmt::join(info->dims, " x "), fmt::join(expected, " x "))));
      return nullptr;
    }
    if (!CanCompute(info->type, use)) {
      Fail(Unimplemented(fmt::format("{}: tensor '{}' has type {}, which cannot be computed with",
                                     file_.path(), name, ggml_type_name(info->type))));
      return nullptr;
    }
    return info;
  }

  ggml_tensor* Add(const std::string& name, Dims dims, Use use,
                   Presence presence = Presence::kRequired) {
    const TensorInfo* info = Find(name, dims, use, presence);
    if (info == nullptr || !status_.ok()) return nullptr;
    const bool expand =
        info->type != GGML_TYPE_F32 && (precision_ == Precision::kF32 || use == Use::kElementwise);
    if (expand) return AddCopy(ggml_backend_cpu_buffer_type(), *info, GGML_TYPE_F32);
    if (use == Use::kProduct) {
      for (ggml_backend_buffer_type_t type : repacking_) {
        if (CanMultiply(device_, type, *info)) return AddCopy(type, *info, info->type);
      }
    }
    return AddMapped(*info);
  }

  ggml_tensor* NewTensor(ggml_context* context, const TensorInfo& info, ggml_type type) {
    ggml_tensor* tensor = ggml_new_tensor(context, type, GGML_MAX_DIMS, info.dims.data());
    ggml_set_name(tensor, info.name.c_str());
    return tensor;
  }

  ggml_tensor* AddMapped(const TensorInfo& info) {
    if (mapped_context_ == nullptr) mapped_context_ = NewContext(file_.tensors().size() + 1);
    ggml_tensor* tensor = NewTensor(mapped_context_.get(), info, info.type);
    if (ggml_backend_tensor_alloc(mapped_.get(), tensor, const_cast<uint8_t*>(info.bytes.data())) !=
        GGML_STATUS_SUCCESS) {
      Fail(ResourceExhausted(fmt::format("no memory for tensor '{}'", info.name)));
    }
    return tensor;
  }

  // A tied embedding that is expanded serves lookups and products alike.
  ggml_tensor* AddCopy(ggml_backend_buffer_type_t buffer_type, const TensorInfo& info,
                       ggml_type type) {
    Group& group = groups_[buffer_type];
    for (const Placement& placement : group.placements) {
      if (placement.source == &info) return placement.tensor;
    }
    if (group.context == nullptr) group.context = NewContext(file_.tensors().size() + 1);
    ggml_tensor* tensor = NewTensor(group.context.get(), info, type);
    group.placements.push_back({tensor, &info});
    return tensor;
  }

  Status FillCopies() {
    for (auto& [buffer_type, group] : groups_) {
      ggml_backend_buffer_ptr buffer(
          ggml_backend_alloc_ctx_tensors_from_buft(group.context.get(), buffer_type));
      if (buffer == nullptr) return ResourceExhausted("no memory for a copy of the weights");
      ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
      for (const Placement& placement : group.placements) Fill(placement);
      buffers_.push_back(std::move(buffer));
    }
    return OkStatus();
  }

  void Fill(const Placement& placement) {
    const TensorInfo& source = *placement.source;
    if (placement.tensor->type == source.type) {
      ggml_backend_tensor_set(placement.tensor, source.bytes.data(), 0, source.bytes.size());
      return;
    }
    ggml_get_type_traits(source.type)
        ->to_float(source.bytes.data(), static_cast<float*>(placement.tensor->data),
                   source.elements());
  }

  const GgufFile& file_;
  const Hyperparams& hyper_;
  const Precision precision_;
  ggml_backend_dev_t device_ = nullptr;
  std::vector<ggml_backend_buffer_type_t> repacking_;
  ggml_context_ptr mapped_context_;
  ggml_backend_buffer_ptr mapped_;
  std::map<ggml_backend_buffer_type_t, Group> groups_;
  std::vector<ggml_backend_buffer_ptr> buffers_;
  WeightTable table_;
  Status status_;
};

Result<std::unique_ptr<Weights>> Weights::Load(const GgufFile& file, const Hyperparams& hyper,
                                               Precision precision) {
  auto impl = std::make_unique<WeightsImpl>(file, hyper, precision);
  if (Status status = impl->Load(); !status.ok()) return status;
  return std::unique_ptr<Weights>(new Weights(std::move(impl)));
}

Weights::Weights(std::unique_ptr<WeightsImpl> impl) : impl_(std::move(impl)) {}
Weights::~Weights() = default;
const WeightTable& Weights::table() const { return impl_->table(); }
uint64_t Weights::copied_bytes() const { return impl_->copied_bytes(); }

}  // namespace shorthand
