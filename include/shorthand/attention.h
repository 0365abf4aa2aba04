// Attention over the pages of a batch.
//
// A plan is made once for a batch and run once for each layer, after the layer's rows are written
// and sealed. The caller brings the threads: each of its workers calls Run. Work is cut at absolute
// positions and merged in position order, so output bits depend neither on the number of workers
// nor on how the tokens were chunked.
//
// Thread-safety: Run of one layer may be entered by many workers at once; layers run one after
// another with a barrier of the caller's between them.
#ifndef SHORTHAND_ATTENTION_H_
#define SHORTHAND_ATTENTION_H_

#include <memory>
#include <string>

#include "shorthand/cache.h"
#include "shorthand/status.h"

namespace shorthand {

struct AttentionArgs {
  int layer = 0;
  const float* q = nullptr;            // [rows][query_heads][k_dim], RoPE applied
  float* out = nullptr;                // [rows][query_heads][v_dim]
  const float* sink_logits = nullptr;  // [query_heads], joins the denominator; may be null
};

class AttentionPlanImpl;

class AttentionPlan {
 public:
  // REQUIRES: `batch` outlives the plan. Errors: kResourceExhausted.
  static Result<std::unique_ptr<AttentionPlan>> Create(const Batch& batch);
  ~AttentionPlan();
  AttentionPlan(const AttentionPlan&) = delete;
  AttentionPlan& operator=(const AttentionPlan&) = delete;

  // Every worker in [0, workers) calls it once a layer. Rows with non-finite queries get zeros and
  // make the batch fail.
  void Run(const AttentionArgs& args, int worker, int workers);

 private:
  explicit AttentionPlan(std::unique_ptr<AttentionPlanImpl> impl);
  std::unique_ptr<AttentionPlanImpl> impl_;
};

// The instruction set the kernels were chosen for ("scalar", "neon", "avx2", "avxvnni", "avx512")
// and, in words, why. SHORTHAND_TARGET overrides the choice; a name that this CPU cannot run is an
// error of Open.
struct TargetInfo {
  std::string name;
  std::string reason;
};
Result<TargetInfo> ActiveTarget();

}  // namespace shorthand

#endif  // SHORTHAND_ATTENTION_H_
