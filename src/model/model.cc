#include "model/model.h"

#include <fmt/format.h>
#include <ggml-cpp.h>
#include <ggml-cpu.h>
#include <llama.h>

#include <thread>
#include <utility>

#include "model/gguf_file.h"
#include "model/graph.h"

namespace shorthand {
namespace {

constexpr int kMaxThreads = GGML_MAX_N_THREADS;

// ggml multiplies a lone row in another order of sums than rows in company. In f32, where every
// other order is the same, company makes results independent of how tokens are cut into steps.
int ProductRows(Precision precision) { return precision == Precision::kF32 ? 2 : 1; }

void Discard(ggml_log_level level, const char* text, void* user_data) {}

// llama.cpp passes its setting on to ggml.
void SetLog(BackendLog log) {
  llama_log_set(log == BackendLog::kSilent ? Discard : nullptr, nullptr);
}

}  // namespace

class ModelImpl {
 public:
  Status Load(const std::string& path, const ModelOptions& options) {
    if (options.threads < 0 || options.threads > kMaxThreads) {
      return InvalidArgument(
          fmt::format("{} threads; 1 to {} are accepted", options.threads, kMaxThreads));
    }
    precision_ = options.precision;
    threads_ =
        options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    SetLog(options.log);
    Result<std::unique_ptr<GgufFile>> file = GgufFile::Open(path);
    if (!file.ok()) return file.status();
    file_ = std::move(*file);
    Result<Hyperparams> hyper = ReadHyperparams(*file_);
    if (!hyper.ok()) return hyper.status();
    hyper_ = std::move(*hyper);
    Result<std::unique_ptr<Vocab>> vocab = Vocab::Load(*file_);
    if (!vocab.ok()) return vocab.status();
    vocab_ = std::move(*vocab);
    return StartBackend(options.precision);
  }

  Result<std::span<const float>> Forward(Batch& batch, std::span<const Token> tokens,
                                         std::span<const int32_t> output_rows) {
    if (Status status = CheckInput(batch, tokens, output_rows); !status.ok()) return status;
    Result<std::unique_ptr<AttentionPlan>> plan = AttentionPlan::Create(batch);
    if (!plan.ok()) return plan.status();
    if (Status status = PrepareGraph(batch.rows(), static_cast<int>(output_rows.size()));
        !status.ok()) {
      return status;
    }
    Result<std::span<const float>> logits =
        graph_->Run(backend_.get(), batch, **plan, tokens, output_rows, observer_);
    if (logits.ok() && !batch.status().ok()) return batch.status();
    return logits;
  }

  void Observe(StepObserver observer) { observer_ = std::move(observer); }

  const Shape& shape() const { return hyper_.shape; }
  const Vocab& vocab() const { return *vocab_; }
  Precision precision() const { return precision_; }
  int threads() const { return threads_; }
  uint64_t tensor_bytes() const {
    uint64_t bytes = 0;
    for (const TensorInfo& tensor : file_->tensors()) bytes += tensor.bytes.size();
    return bytes;
  }

 private:
  Status StartBackend(Precision precision) {
    backend_.reset(ggml_backend_cpu_init());
    allocator_.reset(ggml_gallocr_new(ggml_backend_cpu_buffer_type()));
    ggml_threadpool_params params = ggml_threadpool_params_default(threads_);
    threadpool_.reset(ggml_threadpool_new(&params));
    if (backend_ == nullptr || allocator_ == nullptr || threadpool_ == nullptr) {
      return ResourceExhausted(fmt::format("cannot start {} compute threads", threads_));
    }
    ggml_backend_cpu_set_n_threads(backend_.get(), threads_);
    ggml_backend_cpu_set_threadpool(backend_.get(), threadpool_.get());
    Result<std::unique_ptr<Weights>> weights = Weights::Load(*file_, hyper_, precision);
    if (!weights.ok()) return weights.status();
    weights_ = std::move(*weights);
    product_rows_ = ProductRows(precision);
    return OkStatus();
  }

  Status CheckInput(const Batch& batch, std::span<const Token> tokens,
                    std::span<const int32_t> output_rows) const {
    if (batch.rows() < 1 || static_cast<size_t>(batch.rows()) != tokens.size()) {
      return InvalidArgument(
          fmt::format("{} tokens for a batch of {} rows", tokens.size(), batch.rows()));
    }
    for (const Token token : tokens) {
      if (token < 0 || token >= hyper_.vocabulary) {
        return InvalidArgument(
            fmt::format("token {} of a vocabulary of {}", token, hyper_.vocabulary));
      }
    }
    int32_t previous = -1;
    for (const int32_t row : output_rows) {
      if (row <= previous || row >= batch.rows()) {
        return InvalidArgument(
            fmt::format("output row {} after {} in a batch of {} rows; ascending rows are accepted",
                        row, previous, batch.rows()));
      }
      previous = row;
    }
    return OkStatus();
  }

  // The last graph is kept: decoding runs the same one token after token.
  Status PrepareGraph(int rows, int outputs) {
    if (graph_ != nullptr && graph_->rows() == rows && graph_->outputs() == outputs) {
      return OkStatus();
    }
    graph_.reset();
    Result<std::unique_ptr<StepGraph>> graph =
        StepGraph::Build(hyper_, weights_->table(), allocator_.get(), product_rows_, rows, outputs);
    if (!graph.ok()) return graph.status();
    graph_ = std::move(*graph);
    return OkStatus();
  }

  struct FreeThreadpool {
    void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
  };

  Precision precision_ = Precision::kNative;
  int threads_ = 1;
  int product_rows_ = 1;
  std::unique_ptr<GgufFile> file_;
  Hyperparams hyper_;
  std::unique_ptr<Vocab> vocab_;
  std::unique_ptr<ggml_threadpool, FreeThreadpool> threadpool_;
  ggml_backend_ptr backend_;
  std::unique_ptr<Weights> weights_;
  ggml_gallocr_ptr allocator_;
  std::unique_ptr<StepGraph> graph_;
  StepObserver observer_;
};

Result<std::unique_ptr<Model>> Model::Load(const std::string& path, const ModelOptions& options) {
  auto impl = std::make_unique<ModelImpl>();
  if (Status status = impl->Load(path, options); !status.ok()) return status;
  return std::unique_ptr<Model>(new Model(std::move(impl)));
}

Model::Model(std::unique_ptr<ModelImpl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

const Shape& Model::shape() const { return impl_->shape(); }
const Vocab& Model::vocab() const { return impl_->vocab(); }
Precision Model::precision() const { return impl_->precision(); }
int Model::threads() const { return impl_->threads(); }
uint64_t Model::tensor_bytes() const { return impl_->tensor_bytes(); }

Result<std::span<const float>> Model::Forward(Batch& batch, std::span<const Token> tokens,
                                              std::span<const int32_t> output_rows) {
  return impl_->Forward(batch, tokens, output_rows);
}

void Model::Observe(StepObserver observer) { impl_->Observe(std::move(observer)); }

}  // namespace shorthand
