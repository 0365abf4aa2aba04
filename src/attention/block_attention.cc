#include "attention/block_attention.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "attention/unpack_job.h"
#include "cache/view.h"

namespace shorthand {
namespace {

// Tokens that one pass unpacks at a time, so that they stay in L1.
constexpr int kPieceTokens = 32;
constexpr int kPieceTiles = kPieceTokens / 16;

UnpackJob Piece(UnpackJob job, int first_token) {
  job.first_token = first_token;
  job.end_token = first_token + kPieceTokens;
  return job;
}

}  // namespace

PageBytes PageAt(const BatchImpl& batch, const LayerPlace& place, int item, int kv_head,
                 int entry) {
  const GroupStore& store = batch.cache().stores()[place.group];
  const std::vector<GroupEntry>& entries = batch.items()[item].next.groups[place.group].entries;
  if (entry >= static_cast<int>(entries.size()) || entries[entry].block == kNoBlock) return {};
  const Block& block = store.block(entries[entry].block);
  const LayerFormat& format = batch.cache().format(place);
  if (block.sealed == kNoSlot) {
    return {store.exact().Page(place.index, kv_head, block.exact), format.exact.bytes};
  }
  return {store.sealed().Page(place.index, kv_head, block.sealed), format.sealed.bytes,
          store.sealed().Descriptor(place.index, kv_head, block.sealed)};
}

BlockAttention::BlockAttention(const BatchImpl& batch, const KernelTable& kernels,
                               const AttentionArgs& args, const LayerPaths& paths,
                               const RowBlock& block, int kv_head, AttentionScratch* scratch)
    : batch_(batch),
      kernels_(kernels),
      args_(args),
      paths_(paths),
      block_(block),
      shape_(batch.cache().shape().layers[args.layer]),
      store_(batch.cache().stores()[batch.cache().place(args.layer).group]),
      place_(batch.cache().place(args.layer)),
      format_(batch.cache().format(place_)),
      sequence_(batch.items()[block.item].next),
      kv_head_(kv_head),
      query_heads_(shape_.query_heads / shape_.kv_heads),
      rows_(block.tokens * query_heads_),
      first_position_(batch.Position(batch.rows()[block.first_row])),
      params_{shape_.scale != 0 ? shape_.scale : 1 / std::sqrt(static_cast<float>(shape_.k_dim)),
              shape_.softcap, &scratch->ahead},
      scratch_(scratch) {
  scratch_->scores.resize(kMaxPassRows * kPageTokens);
}

bool BlockAttention::GatherQueries() {
  const int dim = format_.k.dim;
  const int padded = format_.k.padded_dim;
  scratch_->q_model.resize(static_cast<size_t>(rows_) * padded);
  uint32_t overflow = 0;  // the top bit: some exponent has all bits set
  for (int row = 0; row < rows_; ++row) {
    const size_t token = block_.first_row + row / query_heads_;
    const size_t head = kv_head_ * query_heads_ + row % query_heads_;
    const float* q = args_.q + (token * shape_.query_heads + head) * dim;
    float* to = scratch_->q_model.data() + static_cast<size_t>(row) * padded;
    for (int c = 0; c < dim; ++c) {
      to[c] = q[c];
      overflow |= (std::bit_cast<uint32_t>(q[c]) & 0x7f800000u) + 0x00800000u;
    }
    std::fill(to + dim, to + padded, 0.0f);
  }
  if (store_.has_sealed() && format_.k.plain() && format_.k.transformed()) CodeQueries();
  return overflow >> 31 == 0;
}

// The queries in the space of the codes: the transpose of what codes go through to become keys.
void BlockAttention::CodeQueries() {
  const int dim = format_.k.dim, padded = format_.k.padded_dim;
  const HeadTables& tables = format_.k_tables[kv_head_];
  scratch_->q_coded = scratch_->q_model;
  std::vector<float> from(padded);
  for (int row = 0; row < rows_; ++row) {
    float* q = scratch_->q_coded.data() + static_cast<size_t>(row) * padded;
    if (format_.k.balance) {
      for (int c = 0; c < dim; ++c) q[c] *= tables.balance[c];
    }
    if (format_.k.hadamard > 0) kernels_.hadamard(q, dim, format_.k.hadamard);
    if (tables.order.empty()) continue;
    std::copy_n(q, padded, from.begin());
    for (int place = 0; place < padded; ++place) q[place] = from[tables.order[place]];
  }
}

// So that a page's steps ask for a whole page. A step is eight tiles of codes, or 16 lanes of up to
// four rows in each of the two loops of softmax and of folding.
ReadAhead BlockAttention::ReadingOf(PageBytes page) const {
  const int code_steps = (format_.k.padded_dim + format_.v.padded_dim) * kPageTokens / 512;
  const int row_steps = (std::min(rows_, kernels_.max_rows()) + 3) / 4 * 4 * kPageTokens / 16;
  const int lines = static_cast<int>(page.size / kLineBytes);
  const int parts = lines / (code_steps + row_steps) + 1;
  const int part_bytes = (lines + parts - 1) / parts * static_cast<int>(kLineBytes);
  return {page.data, page.data + part_bytes, parts, static_cast<size_t>(part_bytes)};
}

void BlockAttention::RunSplit(int split, PageBytes following, SoftmaxStates states) {
  states.Clear();
  const int last_entry = batch_.rows()[block_.first_row + block_.tokens - 1].entry;
  const int end = std::min((split + 1) * kSplitEntries, last_entry + 1);
  for (int entry = split * kSplitEntries; entry < end; ++entry) {
    const PageBytes next =
        entry + 1 < end ? PageAt(batch_, place_, block_.item, kv_head_, entry + 1) : following;
    __builtin_prefetch(next.descriptor);
    scratch_->ahead = ReadingOf(next);
    RunEntry(entry, states);
  }
}

// Causality and window cut off the block's first and last tokens.
BlockAttention::TokenRange BlockAttention::TokensThatSee(const Entry& entry) const {
  TokenRange range{0, block_.tokens};
  range.first =
      static_cast<int>(std::clamp<int64_t>(entry.start - first_position_, 0, block_.tokens));
  if (shape_.window > 0) {
    range.end = static_cast<int>(std::clamp<int64_t>(
        shape_.window + entry.end() - 1 - first_position_, range.first, block_.tokens));
  }
  return range;
}

void BlockAttention::RunEntry(int index, SoftmaxStates states) {
  const Entry& entry = sequence_.entries[index];
  const GroupEntry& table_entry = sequence_.groups[place_.group].entries[index];
  const TokenRange seen = TokensThatSee(entry);
  if (seen.first >= seen.end || table_entry.block == kNoBlock) return;
  // Query entries grow with the tokens: the first of them see the entry exact, the others sealed.
  int sealed_from = seen.first;
  while (table_entry.holds_exact && sealed_from < seen.end &&
         ViewOf(store_.group(), index, batch_.rows()[block_.first_row + sealed_from].entry) ==
             View::kExact) {
    ++sealed_from;
  }
  if (seen.first < sealed_from) {
    RunExact(table_entry, entry.start, entry.count, {seen.first, sealed_from}, states);
  }
  if (sealed_from < seen.end) {
    const Block& block = store_.block(table_entry.block);
    const TokenRange tokens{sealed_from, seen.end};
    if (block.sinks != kNoSlot) RunSinks(block, entry.start, entry.count, tokens, states);
    RunSealed(block, entry.start, entry.count, tokens, states);
  }
}

BlockAttention::Rows BlockAttention::ExactRowsAt(const uint8_t* memory, int memory_rows,
                                                 int end_slot) const {
  return {
      {ElementOf(format_.exact_k), memory, {}, {}},
      {ElementOf(format_.exact_v), memory + ExactRows(format_).ValueOffset(memory_rows), {}, {}},
      0,
      end_slot,
      false,
      nullptr,
      SoftmaxStates::kModel};
}

void BlockAttention::RunExact(const GroupEntry& entry, int64_t start, int count, TokenRange tokens,
                              SoftmaxStates states) {
  const uint8_t* page =
      store_.exact().Page(place_.index, kv_head_, store_.block(entry.block).exact);
  RunRows(ExactRowsAt(page, kPageTokens, count), start, tokens, states);
}

void BlockAttention::RunSinks(const Block& block, int64_t start, int count, TokenRange tokens,
                              SoftmaxStates states) {
  const int sinks = store_.group().sink_tokens;
  const uint8_t* memory = store_.sinks().Page(place_.index, kv_head_, block.sinks);
  RunRows(ExactRowsAt(memory, (sinks + 15) / 16 * 16, std::min(sinks, count)), start, tokens,
          states);
}

// The generic path. `meta` keeps what the job refers to.
UnpackJob BlockAttention::PackedSide(const SideFormat& format, const HeadTables& tables,
                                     const SidePart& part, const uint8_t* page,
                                     const PageDescriptor& descriptor, AlignedVector<float>* meta) {
  const size_t count =
      static_cast<size_t>(format.groups()) * std::max(kPageTokens, format.padded_dim);
  meta->resize(2 * count);
  float* scales = meta->data();
  float* offsets = format.has_offset ? scales + count : nullptr;
  ReadMeta(format, part, page, descriptor, scales, offsets, nullptr);
  UnpackJob job = UnpackJobOf(format, tables, page + part.codes_offset, scales, offsets);
  job.ahead = &scratch_->ahead;
  return job;
}

BlockAttention::SideRows BlockAttention::SealedSide(const SideFormat& format,
                                                    const HeadTables& tables, const SidePart& part,
                                                    const IntegerPath& path, const uint8_t* page,
                                                    const PageDescriptor& descriptor,
                                                    SideScratch* scratch) {
  SideRows side{Element::kF32, nullptr, {}, {}};
  if (format.exact) {
    side.element = ElementOf(format);
    side.elements = page + part.codes_offset;
  } else if (!format.plain()) {
    side.elements = Unseal(format, tables, part, page, descriptor, scratch);
  } else if (!path.usable()) {
    side.packed = PackedSide(format, tables, part, page, descriptor, &scratch->meta);
  } else {
    scratch->meta.resize(path.meta_count());
    scratch->flips.resize(path.meta_count());
    const KeyPlanes* planes = format.planes() ? &paths_.planes[kv_head_] : nullptr;
    path.Open(kernels_, planes, page + part.meta_offset, page + part.codes_offset,
              scratch->meta.data(), scratch->flips.data(), &side.codes);
    side.codes.ahead = &scratch_->ahead;
  }
  return side;
}

const float* BlockAttention::Unpack(const SideFormat& format, const UnpackJob& job,
                                    SideScratch* scratch) {
  scratch->unpacked.resize(static_cast<size_t>(job.end_token - job.first_token) * job.dim);
  const auto unpack = format.kind == SideKind::kKey ? kernels_.unpack_k : kernels_.unpack_v;
  unpack(job, scratch->unpacked.data());
  return scratch->unpacked.data();
}

// The page's side as an exact page would hold it.
const float* BlockAttention::Unseal(const SideFormat& format, const HeadTables& tables,
                                    const SidePart& part, const uint8_t* page,
                                    const PageDescriptor& descriptor, SideScratch* scratch) {
  scratch->unsealed.resize(static_cast<size_t>(kPageTokens) * format.dim);
  scratch->unpacked.resize(static_cast<size_t>(kPageTokens) * format.padded_dim);
  UnsealSide(format, tables, part, page, descriptor, scratch->unsealed.data());
  const auto write = format.kind == SideKind::kKey ? kernels_.write_keys : kernels_.write_values;
  write(Element::kF32, scratch->unsealed.data(), format.dim, kPageTokens, format.dim, 0,
        scratch->unpacked.data());
  return scratch->unpacked.data();
}

void BlockAttention::RunSealed(const Block& block, int64_t start, int count, TokenRange tokens,
                               SoftmaxStates states) {
  const uint8_t* page = store_.sealed().Page(place_.index, kv_head_, block.sealed);
  const PageDescriptor& descriptor =
      *store_.sealed().Descriptor(place_.index, kv_head_, block.sealed);
  const int first_slot = static_cast<int>(descriptor.first_token);
  if (first_slot >= count) return;  // a cut entry of sinks only
  const SideFormat& k = format_.k;
  const SideFormat& v = format_.v;
  const float* mean = nullptr;
  if (k.mean && k.plain()) {
    scratch_->mean.resize(k.padded_dim);
    ReadMeta(k, format_.sealed.k, page, descriptor, nullptr, nullptr, scratch_->mean.data());
    mean = scratch_->mean.data();
  } else if (k.head_mean && k.plain()) {
    mean = format_.k_tables[kv_head_].mean.data();
  }
  Rows rows{SealedSide(k, format_.k_tables[kv_head_], format_.sealed.k, paths_.k, page, descriptor,
                       &scratch_->k),
            SealedSide(v, format_.v_tables[kv_head_], format_.sealed.v, paths_.v, page, descriptor,
                       &scratch_->v),
            first_slot,
            count,
            k.transformed() && k.plain(),
            mean,
            v.hadamard > 0 && v.plain() ? SoftmaxStates::kRotated : SoftmaxStates::kModel};
  // What several passes read is unpacked once for all of them.
  const int all_rows = (tokens.end - tokens.first) * query_heads_;
  if (all_rows > kernels_.max_rows()) {
    if (rows.k.packed) rows.k.elements = Unpack(k, *rows.k.packed, &scratch_->k);
    if (rows.v.packed) rows.v.elements = Unpack(v, *rows.v.packed, &scratch_->v);
  }
  if (kernels_.tiles != nullptr && all_rows > kVectorRows) {
    Expand(kernels_.tiles->expand_k, &rows.k, &scratch_->k);
    Expand(kernels_.tiles->expand_v, &rows.v, &scratch_->v);
  }
  RunRows(rows, start, tokens, states);
}

void BlockAttention::Expand(void (*expand)(const CodedSide8& codes, uint8_t* bytes), SideRows* side,
                            SideScratch* scratch) {
  if (side->elements != nullptr || side->packed) return;
  scratch->bytes.resize(static_cast<size_t>(kPageTokens) * side->codes.dim);
  expand(side->codes, scratch->bytes.data());
  side->bytes = scratch->bytes.data();
}

void BlockAttention::RunRows(const Rows& rows, int64_t start, TokenRange tokens,
                             SoftmaxStates states) {
  const int end = tokens.end * query_heads_, most = kernels_.max_rows();
  for (int row = tokens.first * query_heads_; row < end; row += most) {
    RunPass(rows, start, row, std::min(most, end - row), states);
  }
}

void BlockAttention::RunPass(const Rows& rows, int64_t start, int first_row, int pass_rows,
                             SoftmaxStates states) {
  const int dim = format_.k.padded_dim;
  const float* q_model = scratch_->q_model.data() + static_cast<size_t>(first_row) * dim;
  RowView views[kMaxPassRows];
  int least = kPageTokens, most = 0;
  for (int r = 0; r < pass_rows; ++r) {
    const int64_t position = PositionOf((first_row + r) / query_heads_);
    const int64_t window_start = shape_.window > 0 ? position - shape_.window + 1 - start : 0;
    RowView& view = views[r];
    view = {static_cast<int>(std::clamp<int64_t>(window_start, rows.first_slot, kPageTokens)),
            static_cast<int>(std::clamp<int64_t>(position + 1 - start, 0, rows.end_slot)),
            MeanScore(rows, q_model + static_cast<size_t>(r) * dim)};
    if (view.first >= view.end) continue;
    least = std::min(least, view.first);
    most = std::max(most, view.end);
  }
  if (least >= most) return;

  const float* q =
      rows.coded ? scratch_->q_coded.data() + static_cast<size_t>(first_row) * dim : q_model;
  float shrink[kMaxPassRows];
  Score(rows, q, pass_rows, least, most);
  kernels_.softmax(params_, views, pass_rows, scratch_->scores.data(),
                   states.state(rows.space, first_row), shrink);
  Accumulate(rows, shrink, pass_rows, least, most, states.out(rows.space, first_row));
}

// The part of a row's scaled scores that the page's mean key makes.
float BlockAttention::MeanScore(const Rows& rows, const float* q) const {
  if (rows.mean == nullptr) return 0;
  double sum = 0;
  for (int c = 0; c < format_.k.padded_dim; ++c) sum += static_cast<double>(q[c]) * rows.mean[c];
  return static_cast<float>(sum * params_.scale);
}

// Scores of rows q [pass_rows][D] for slots [least, most).
void BlockAttention::Score(const Rows& rows, const float* q, int pass_rows, int least, int most) {
  const int dim = format_.k.padded_dim;
  const int first_tile = least / 16, end_tile = (most + 15) / 16;
  float* scores = scratch_->scores.data();
  if (rows.k.elements != nullptr) {
    kernels_.score(rows.k.element, rows.k.elements, q, dim, pass_rows, first_tile, end_tile,
                   scores);
    return;
  }
  if (rows.k.packed) {
    for (int tile = first_tile / kPieceTiles * kPieceTiles; tile < end_tile; tile += kPieceTiles) {
      const float* keys = Unpack(format_.k, Piece(*rows.k.packed, 16 * tile), &scratch_->k);
      kernels_.score(Element::kF32, keys, q, dim, pass_rows, std::max(first_tile - tile, 0),
                     std::min(end_tile - tile, kPieceTiles), scores + 16 * tile);
    }
    return;
  }
  const CodedSide8& codes = rows.k.codes;
  FoldedQueries& folded = scratch_->queries;
  const int folds = codes.per_channel ? kPageTokens / codes.group : 1;
  scratch_->query_bytes.resize(static_cast<size_t>(folds) * kMaxLimbs * kMaxPassRows * dim);
  folded.bytes = scratch_->query_bytes.data();
  kernels_.fold_query(codes, q, paths_.k.code_rms(), pass_rows, &folded);
  if (rows.k.bytes != nullptr) {
    kernels_.tiles->score(codes, rows.k.bytes, folded, pass_rows, first_tile, end_tile, scores);
    return;
  }
  kernels_.score_codes(codes, folded, pass_rows, first_tile, end_tile, scores);
}

// Adds the values of slots [least, most), weighted by the scores that softmax made weights.
void BlockAttention::Accumulate(const Rows& rows, const float* shrink, int pass_rows, int least,
                                int most, float* out) {
  const int dim = format_.v.padded_dim;
  const float* weights = scratch_->scores.data();
  if (rows.v.elements != nullptr) {
    kernels_.accumulate(rows.v.element, rows.v.elements, weights, shrink, least, most, dim,
                        pass_rows, out);
    return;
  }
  if (rows.v.packed) {
    constexpr std::array<float, kMaxPassRows> kKept = [] {
      std::array<float, kMaxPassRows> kept;
      kept.fill(1);
      return kept;
    }();
    for (int token = least / kPieceTokens * kPieceTokens; token < most; token += kPieceTokens) {
      const float* values = Unpack(format_.v, Piece(*rows.v.packed, token), &scratch_->v);
      kernels_.accumulate(Element::kF32, values, weights + token,
                          token <= least ? shrink : kKept.data(), std::max(least - token, 0),
                          std::min(most - token, kPieceTokens), dim, pass_rows, out);
    }
    return;
  }
  const CodedSide8& codes = rows.v.codes;
  FoldedWeights& folded = scratch_->weights;
  const int groups = codes.per_channel ? 1 : dim / codes.group;
  scratch_->weight_bytes.resize(static_cast<size_t>(groups) * kMaxLimbs * kMaxPassRows *
                                kPageTokens);
  folded.bytes = scratch_->weight_bytes.data();
  folded.limbs = paths_.v.weight_limbs();
  kernels_.fold_weights(codes, weights, pass_rows, &folded);
  if (rows.v.bytes != nullptr) {
    kernels_.tiles->accumulate(codes, rows.v.bytes, folded, shrink, pass_rows, out);
    return;
  }
  kernels_.accumulate_codes(codes, folded, shrink, least, most, pass_rows, out);
}

bool BlockAttention::Finish(SoftmaxStates states) {
  bool finite = true;
  for (int row = 0; row < rows_; ++row) {
    const size_t token = block_.first_row + row / query_heads_;
    const size_t head = kv_head_ * query_heads_ + row % query_heads_;
    const float sink_logit = args_.sink_logits != nullptr ? args_.sink_logits[head]
                                                          : -std::numeric_limits<float>::infinity();
    finite &= states.Finish(kernels_, row, format_.v.hadamard, sink_logit, format_.v.dim,
                            args_.out + (token * shape_.query_heads + head) * format_.v.dim);
  }
  return finite;
}

}  // namespace shorthand
