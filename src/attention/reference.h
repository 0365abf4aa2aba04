// Attention in double precision, straight from its definition, over what the pages of a batch hold.
//
// Slow and simple: every kernel, split and merge is judged against it. It shares the view function
// and the page reader with the fast path and nothing else.
// Thread-safety: reads the batch; one call at a time.
#ifndef SHORTHAND_ATTENTION_REFERENCE_H_
#define SHORTHAND_ATTENTION_REFERENCE_H_

#include "shorthand/attention.h"

namespace shorthand {

// out [rows][query_heads][v_dim]. REQUIRES: the layer's rows are written and sealed.
void ReferenceAttention(const Batch& batch, const AttentionArgs& args, double* out);

}  // namespace shorthand

#endif  // SHORTHAND_ATTENTION_REFERENCE_H_
