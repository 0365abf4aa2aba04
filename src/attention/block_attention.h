// BlockAttention: the attention of one block of rows of one KV head over splits of its sequence.
//
// Rows are the (token, query head) pairs that share the KV head, tokens outer. A page is read once
// for all rows that see it in one representation: exact pages by the kernels as they are, sealed
// pages unpacked to f32 in the worker's scratch first.
// Thread-safety: one object belongs to one worker.
#ifndef SHORTHAND_ATTENTION_BLOCK_ATTENTION_H_
#define SHORTHAND_ATTENTION_BLOCK_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "attention/plan_impl.h"
#include "attention/softmax_state.h"
#include "cache/exact_rows.h"

namespace shorthand {

// Entries of a split: fixed, so that results do not depend on anything else.
inline constexpr int kSplitEntries = 4;

// Memory that a worker keeps between units.
struct AttentionScratch {
  std::vector<float> q_model, q_coded;  // [rows][padded D of K]
  std::vector<float> keys, values;      // an unpacked page
  std::vector<float> scales, offsets, mean;
  std::vector<float> scores;         // [kMaxPassRows][128]
  std::vector<float> joined, split;  // states
};

class BlockAttention {
 public:
  BlockAttention(const BatchImpl& batch, const KernelTable& kernels, const AttentionArgs& args,
                 const RowBlock& block, int kv_head, AttentionScratch* scratch);

  int rows() const { return rows_; }
  // Copies, pads and transforms the block's queries. False if one is not finite.
  bool GatherQueries();
  // The states of one split, from nothing.
  void RunSplit(int split, SoftmaxStates states);
  void Finish(SoftmaxStates states);

 private:
  // A run of the block's tokens and how they see an entry.
  struct TokenRange {
    int first, end;
  };
  // Rows of keys and values in the form that kernels read, and the place they have in an entry.
  struct Rows {
    Element k_element, v_element;
    const void* k;
    const void* v;
    int first_slot, end_slot;
    bool coded;         // queries in the space of the codes
    const float* mean;  // null: none
    SoftmaxStates::Space space;
  };

  void RunEntry(int entry, SoftmaxStates states);
  TokenRange TokensThatSee(const Entry& entry) const;
  void RunExact(const GroupEntry& entry, int64_t start, int count, TokenRange tokens,
                SoftmaxStates states);
  void RunSinks(const Block& block, int64_t start, int count, TokenRange tokens,
                SoftmaxStates states);
  void RunSealed(const Block& block, int64_t start, int count, TokenRange tokens,
                 SoftmaxStates states);
  void RunRows(const Rows& rows, int64_t start, TokenRange tokens, SoftmaxStates states);
  void RunPass(const Rows& rows, int64_t start, int first_row, int pass_rows, SoftmaxStates states);
  const void* UnpackSide(const SideFormat& format, const SidePart& part, const uint8_t* page,
                         const PageDescriptor& descriptor, std::vector<float>* unpacked);
  int64_t PositionOf(int token) const { return first_position_ + token; }

  const BatchImpl& batch_;
  const KernelTable& kernels_;
  const AttentionArgs& args_;
  const RowBlock& block_;
  const LayerShape& shape_;
  const GroupStore& store_;
  const LayerPlace& place_;
  const LayerFormat& format_;
  const Sequence& sequence_;
  int kv_head_;
  int query_heads_;  // that share the KV head
  int rows_;
  int64_t first_position_;
  ScoreParams params_;
  AttentionScratch* scratch_;
};

}  // namespace shorthand

#endif  // SHORTHAND_ATTENTION_BLOCK_ATTENTION_H_
