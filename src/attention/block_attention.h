// BlockAttention: the attention of one block of rows of one KV head over splits of its sequence.
//
// Rows are the (token, query head) pairs that share the KV head, tokens outer. Some of them
// (KernelTable::max_rows) pass over a page together: exact pages by the float kernels, sides of
// sealed pages by the integer kernels or, where these do not fit the format, by the float kernels
// on elements unpacked into the worker's scratch, 32 tokens at a time or, for several passes, the
// page; sides that no kernel reads (SideFormat::plain) by the float kernels on what UnsealSide
// makes of the page, in model space. Thread-safety: one object belongs to one worker.
#ifndef SHORTHAND_ATTENTION_BLOCK_ATTENTION_H_
#define SHORTHAND_ATTENTION_BLOCK_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/plan_impl.h"
#include "attention/softmax_state.h"
#include "base/aligned_vector.h"
#include "cache/exact_rows.h"

namespace shorthand {

// Entries of a split: fixed, so that results do not depend on anything else.
inline constexpr int kSplitEntries = 4;

// What is kept of one side of the page at hand.
struct SideScratch {
  AlignedVector<float> meta;  // widened
  AlignedVector<uint8_t> flips;
  AlignedVector<float> unpacked;  // tokens of it
  AlignedVector<float> unsealed;  // [128][dim]
  AlignedVector<uint8_t> bytes;   // TileKernels
};

// Memory that a worker keeps between units.
struct AttentionScratch {
  AlignedVector<float> q_model, q_coded;  // [rows][padded D of K]
  AlignedVector<float> mean;
  SideScratch k, v;
  FoldedQueries queries;
  FoldedWeights weights;
  AlignedVector<int8_t> query_bytes;
  AlignedVector<uint8_t> weight_bytes;
  AlignedVector<float> scores;         // [kMaxPassRows][128]
  AlignedVector<float> joined, split;  // states
  ReadAhead ahead;
};

// Memory of a page; empty where there is none.
struct PageBytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
  const PageDescriptor* descriptor = nullptr;  // of a sealed page
};

// What an entry of an item's sequence is read from.
PageBytes PageAt(const BatchImpl& batch, const LayerPlace& place, int item, int kv_head, int entry);

class BlockAttention {
 public:
  BlockAttention(const BatchImpl& batch, const KernelTable& kernels, const AttentionArgs& args,
                 const LayerPaths& paths, const RowBlock& block, int kv_head,
                 AttentionScratch* scratch);

  int rows() const { return rows_; }
  // Copies, pads and transforms the block's queries. False if one is not finite.
  bool GatherQueries();
  // The states of one split, from nothing. `following`: the page that this worker reads next.
  void RunSplit(int split, PageBytes following, SoftmaxStates states);
  // Writes the outputs. False if one is not finite.
  bool Finish(SoftmaxStates states);

 private:
  // A run of the block's tokens and how they see an entry.
  struct TokenRange {
    int first, end;
  };
  // One side of rows in the form that kernels read: elements, codes that become elements (the
  // generic path), or codes as they are.
  struct SideRows {
    Element element;
    const void* elements;             // null: codes
    CodedSide8 codes;                 // unless packed
    std::optional<UnpackJob> packed;  // elements may be there already
    const uint8_t* bytes = nullptr;   // of the codes, where passes multiply tiles
  };
  // Rows of keys and values, and the place they have in an entry.
  struct Rows {
    SideRows k, v;
    int first_slot, end_slot;
    bool coded;         // queries in the space of the codes
    const float* mean;  // null: none
    SoftmaxStates::Space space;
  };

  void CodeQueries();
  ReadAhead ReadingOf(PageBytes page) const;
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
  float MeanScore(const Rows& rows, const float* q) const;
  void Score(const Rows& rows, const float* q, int pass_rows, int least, int most);
  void Accumulate(const Rows& rows, const float* shrink, int pass_rows, int least, int most,
                  float* out);
  Rows ExactRowsAt(const uint8_t* memory, int memory_rows, int end_slot) const;
  SideRows SealedSide(const SideFormat& format, const HeadTables& tables, const SidePart& part,
                      const IntegerPath& path, const uint8_t* page,
                      const PageDescriptor& descriptor, SideScratch* scratch);
  UnpackJob PackedSide(const SideFormat& format, const HeadTables& tables, const SidePart& part,
                       const uint8_t* page, const PageDescriptor& descriptor,
                       AlignedVector<float>* meta);
  // Bytes of codes for tiles; other sides stay as they are.
  void Expand(void (*expand)(const CodedSide8& codes, uint8_t* bytes), SideRows* side,
              SideScratch* scratch);
  const float* Unpack(const SideFormat& format, const UnpackJob& job, SideScratch* scratch);
  const float* Unseal(const SideFormat& format, const HeadTables& tables, const SidePart& part,
                      const uint8_t* page, const PageDescriptor& descriptor, SideScratch* scratch);
  int64_t PositionOf(int token) const { return first_position_ + token; }

  const BatchImpl& batch_;
  const KernelTable& kernels_;
  const AttentionArgs& args_;
  const LayerPaths& paths_;
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
