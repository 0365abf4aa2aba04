#include "model/hyperparams.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "model/rope.h"
#include "model/utf8.h"

namespace shorthand {
namespace {

constexpr std::array<Architecture, 4> kArchitectures = {{
    {.name = "llama", .rope_style = GGML_ROPE_TYPE_NORMAL},
    {.name = "qwen2", .rope_style = GGML_ROPE_TYPE_NEOX, .qkv_bias = true},
    {.name = "qwen3", .rope_style = GGML_ROPE_TYPE_NEOX, .qk_norm = true},
    {.name = "gemma3",
     .rope_style = GGML_ROPE_TYPE_NEOX,
     .qk_norm = true,
     .post_norms = true,
     .scaled_embedding = true,
     .activation = Activation::kGelu,
     .full_attention_period = 6,
     .window_rope_base = 10000.0f},
}};

// Larger than any model; smaller than what would overflow a product of three.
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 4096;
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxContext = std::numeric_limits<int32_t>::max();

// Gemma 3 27B scales scores by its width per head instead of its head dim; its number of layers
// tells it apart (Gemma 3 technical report; google/gemma-3-27b-it config, query_pre_attn_scalar).
constexpr int kGemma27bLayers = 62;

// Reads metadata of one architecture and keeps the first failure.
class Reader {
 public:
  Reader(const GgufFile& file, std::string_view prefix) : file_(file), prefix_(prefix) {}

  const Status& status() const { return status_; }
  std::string Key(std::string_view name) const { return fmt::format("{}.{}", prefix_, name); }
  bool Has(std::string_view name) const { return file_.Has(Key(name)); }

  int Integer(std::string_view name, int64_t low, int64_t high,
              std::optional<int64_t> absent = {}) {
    const std::string key = Key(name);
    const Result<int64_t> value =
        absent.has_value() ? file_.IntegerOr(key, *absent) : file_.Integer(key);
    if (!value.ok()) {
      Fail(value.status());
      return static_cast<int>(low);
    }
    return InRange(key, *value, low, high);
  }

  // One value for all layers, or an array with one for each.
  std::vector<int> PerLayer(std::string_view name, int layers, int64_t low, int64_t high) {
    const std::string key = Key(name);
    if (const Result<int64_t> one = file_.Integer(key); one.ok()) {
      return std::vector<int>(layers, InRange(key, *one, low, high));
    }
    std::vector<int> values(layers, static_cast<int>(low));
    const Result<std::vector<int64_t>> all = file_.Integers(key);
    if (!all.ok() || static_cast<int>(all->size()) != layers) {
      Fail(DataLoss(
          fmt::format("metadata '{}' is not one integer for each of the {} layers", key, layers)));
      return values;
    }
    for (int i = 0; i < layers; ++i) values[i] = InRange(key, (*all)[i], low, high);
    return values;
  }

  float Number(std::string_view name, double low, double high, std::optional<double> absent = {}) {
    const std::string key = Key(name);
    const Result<double> value =
        absent.has_value() ? file_.NumberOr(key, *absent) : file_.Number(key);
    if (!value.ok()) {
      Fail(value.status());
      return static_cast<float>(low);
    }
    if (!(*value >= low && *value <= high)) {
      Fail(DataLoss(
          fmt::format("metadata '{}' is {}; {} to {} is accepted", key, *value, low, high)));
      return static_cast<float>(low);
    }
    return static_cast<float>(*value);
  }

  std::string Text(std::string_view name, std::string_view absent) {
    if (!Has(name)) return std::string(absent);
    Result<std::string> value = file_.Text(Key(name));
    if (!value.ok()) Fail(value.status());
    return value.ok() ? *value : std::string(absent);
  }

  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

 private:
  int InRange(std::string_view key, int64_t value, int64_t low, int64_t high) {
    if (value < low || value > high) {
      Fail(DataLoss(
          fmt::format("metadata '{}' is {}; {} to {} is accepted", key, value, low, high)));
      return static_cast<int>(low);
    }
    return static_cast<int>(value);
  }

  const GgufFile& file_;
  std::string_view prefix_;
  Status status_;
};

Result<const Architecture*> FindArchitecture(const GgufFile& file) {
  const Result<std::string> name = file.Text("general.architecture");
  if (!name.ok()) {
    return Status(name.status().code(),
                  fmt::format("{}: {}", file.path(), name.status().message()));
  }
  std::vector<std::string_view> known;
  for (const Architecture& row : kArchitectures) {
    if (row.name == *name) return &row;
    known.push_back(row.name);
  }
  return Unimplemented(fmt::format("{}: architecture '{}' is not supported; supported are {}",
                                   file.path(), *name, fmt::join(known, ", ")));
}

RopeParams ReadRope(Reader& reader, const Architecture& architecture, int head_dim, int context) {
  RopeParams rope;
  rope.style = architecture.rope_style;
  rope.dims = reader.Integer("rope.dimension_count", 2, head_dim, head_dim);
  if (rope.dims % 2 != 0) {
    reader.Fail(DataLoss(fmt::format("'{}' is odd", reader.Key("rope.dimension_count"))));
  }
  rope.base = reader.Number("rope.freq_base", 1, 1e12, 10000);
  rope.original_context_tokens =
      reader.Integer("rope.scaling.original_context_length", 1, kMaxContext, context);
  const std::string scaling = reader.Text("rope.scaling.type", "none");
  if (scaling == "linear" || scaling == "yarn") {
    // rope.scale_linear is the older name.
    const double older = reader.Number("rope.scale_linear", 0.001, 1e6, 1);
    rope.scale = 1 / reader.Number("rope.scaling.factor", 0.001, 1e6, older);
    rope.attention_factor = reader.Number("rope.scaling.attn_factor", 0, 1e6, 1);
    rope.extrapolation = scaling == "yarn" ? 1 : 0;
  } else if (scaling != "none") {
    reader.Fail(Unimplemented(fmt::format(
        "RoPE scaling '{}' is not supported; supported are none, linear and yarn", scaling)));
  }
  return rope;
}

// Empty if the model has none; a tensor that does not fit is found when weights are loaded.
std::vector<float> ReadRopeFactors(const GgufFile& file, Reader& reader, int pairs) {
  const TensorInfo* tensor = file.Tensor("rope_freqs.weight");
  std::vector<float> factors(pairs);
  const size_t bytes = factors.size() * sizeof(float);
  if (tensor == nullptr || tensor->type != GGML_TYPE_F32 || tensor->bytes.size() != bytes)
    return {};
  std::memcpy(factors.data(), tensor->bytes.data(), bytes);
  for (const float factor : factors) {
    if (factor > 0 && std::isfinite(factor)) continue;
    reader.Fail(DataLoss(fmt::format("'{}' has a factor of {}", tensor->name, factor)));
    return {};
  }
  return factors;
}

void AddLayers(const GgufFile& file, Reader& reader, const Architecture& architecture, int layers,
               Hyperparams& hyper) {
  const std::vector<int> heads = reader.PerLayer("attention.head_count", layers, 1, kMaxHeads);
  const std::vector<int> kv_heads =
      reader.Has("attention.head_count_kv")
          ? reader.PerLayer("attention.head_count_kv", layers, 1, kMaxHeads)
          : heads;
  const int k_dim = reader.Integer("attention.key_length", 1, kMaxHeadDim, hyper.width / heads[0]);
  const int v_dim =
      reader.Integer("attention.value_length", 1, kMaxHeadDim, hyper.width / heads[0]);
  const bool windowed = architecture.full_attention_period > 1;
  const int window = windowed ? reader.Integer("attention.sliding_window", 0, kMaxContext, 0) : 0;
  const float softcap = reader.Number("attn_logit_softcapping", 0, 1e6, 0);
  if (!reader.status().ok()) return;
  const RopeParams rope =
      ReadRope(reader, architecture, k_dim, static_cast<int>(hyper.shape.max_context_tokens));
  const std::vector<float> factors = ReadRopeFactors(file, reader, rope.dims / 2);
  for (int i = 0; i < layers; ++i) {
    if (heads[i] % kv_heads[i] != 0) {
      reader.Fail(DataLoss(
          fmt::format("layer {} has {} query heads for {} KV heads", i, heads[i], kv_heads[i])));
    }
    LayerShape layer = {.query_heads = heads[i],
                        .kv_heads = kv_heads[i],
                        .k_dim = k_dim,
                        .v_dim = v_dim,
                        .softcap = softcap};
    RopeParams layer_rope = rope;
    if (window > 0 && (i + 1) % architecture.full_attention_period != 0) {
      layer.window = window;
      layer_rope.base = architecture.window_rope_base;
      layer_rope.scale = 1;
    }
    if (architecture.name == "gemma3" && layers == kGemma27bLayers) {
      layer.scale = 1 / std::sqrt(static_cast<float>(hyper.width) / heads[i]);
    }
    layer.rope = RopeOf(layer_rope, factors);
    hyper.shape.layers.push_back(layer);
    hyper.rope.push_back(layer_rope);
  }
}

}  // namespace

Result<Hyperparams> ReadHyperparams(const GgufFile& file) {
  const Result<const Architecture*> architecture = FindArchitecture(file);
  if (!architecture.ok()) return architecture.status();
  const TensorInfo* embedding = file.Tensor("token_embd.weight");
  if (embedding == nullptr) {
    return DataLoss(fmt::format("{} has no tensor 'token_embd.weight'", file.path()));
  }
  Reader reader(file, (*architecture)->name);
  Hyperparams hyper;
  hyper.architecture = *architecture;
  hyper.width = reader.Integer("embedding_length", 1, kMaxWidth);
  const int layers = reader.Integer("block_count", 1, kMaxLayers);
  hyper.norm_epsilon = reader.Number("attention.layer_norm_rms_epsilon", 0, 1);
  hyper.final_softcap = reader.Number("final_logit_softcapping", 0, 1e6, 0);
  hyper.shape.max_context_tokens = reader.Integer("context_length", 1, kMaxContext);
  if (reader.Integer("expert_count", 0, kMaxContext, 0) > 0) {
    reader.Fail(Unimplemented("models with experts (expert_count) are not supported"));
  }
  AddLayers(file, reader, **architecture, layers, hyper);
  if (!reader.status().ok()) {
    return Status(reader.status().code(),
                  fmt::format("{}: {}", file.path(), reader.status().message()));
  }
  if (embedding->dims[1] > std::numeric_limits<int32_t>::max()) {
    return DataLoss(fmt::format("{}: a vocabulary of {} tokens", file.path(), embedding->dims[1]));
  }
  hyper.vocabulary = static_cast<int>(embedding->dims[1]);
  hyper.shape.name = std::string((*architecture)->name);
  const Result<std::string> name = file.Text("general.name");
  if (name.ok() && !FirstInvalidUtf8(*name).has_value()) hyper.shape.name = *name;
  for (const TensorInfo& tensor : file.tensors()) hyper.shape.parameters += tensor.elements();
  return hyper;
}

Result<GgufSummary> ShapeFromGguf(const std::string& path) {
  const Result<std::unique_ptr<GgufFile>> file = GgufFile::Open(path);
  if (!file.ok()) return file.status();
  Result<Hyperparams> hyper = ReadHyperparams(**file);
  if (!hyper.ok()) return hyper.status();
  GgufSummary summary = {.shape = std::move(hyper->shape)};
  for (const TensorInfo& tensor : (*file)->tensors()) summary.tensor_bytes += tensor.bytes.size();
  return summary;
}

}  // namespace shorthand
