#include "cache/page_sealer.h"

#include <algorithm>
#include <cstring>

#include "quant/clip_search.h"
#include "quant/groups.h"
#include "quant/levels.h"

namespace shorthand {
namespace {

std::optional<SealRule> RuleOf(Code code) {
  switch (code) {
    case Code::kUint:
      return SealRule::kUnsigned;
    case Code::kWater:
      return SealRule::kWater;
    case Code::kInt:
      return SealRule::kSigned;
    case Code::kNf:
      return SealRule::kNormalFloat;
    case Code::kLm:
      return SealRule::kLloydMax;
    case Code::kRn:
    case Code::kNuq:
      return SealRule::kRangeNormalised;
    case Code::kQ5_1:
    case Code::kQ4_1:
      return SealRule::kBlockMinimum;
    case Code::kQ5_0:
    case Code::kQ4_0:
      return SealRule::kBlockCentred;
    case Code::kQ8_0:
      return SealRule::kBlockSigned;
    case Code::kE4m3:
      return SealRule::kE4m3;
    case Code::kE5m2:
      return SealRule::kE5m2;
    default:
      return std::nullopt;
  }
}

size_t ScratchBytes(const SideFormat& side) {
  if (side.exact) return 0;
  const std::optional<SealJob> job = SealJobOf(side, {}, 0);
  return job ? SealScratchFloats(*job) * sizeof(float) : SealScratchBytes(side);
}

size_t ScratchBytes(const LayerFormat& format) {
  return std::max(ScratchBytes(format.k), ScratchBytes(format.v));
}

}  // namespace

std::optional<SealJob> SealJobOf(const SideFormat& side, const HeadTables& tables,
                                 int first_token) {
  const bool unknown_steps = side.pre || side.grid || side.outliers > 0 || side.head_levels;
  const bool unknown_widths = side.promoted > 0 && (side.tunes.mse || side.tunes.cal);
  if (side.exact || unknown_steps || unknown_widths) return std::nullopt;
  const std::optional<SealRule> rule = RuleOf(side.code);
  if (!rule) return std::nullopt;
  SealJob job = {};
  job.rule = *rule;
  job.key = side.kind == SideKind::kKey;
  job.per_channel = side.axis == Axis::kChannel;
  job.mean = side.mean;
  job.smooth = side.smooth;
  job.plane_lines = side.plane_lines;
  job.promoted = side.promoted;
  if (side.code == Code::kWater) {
    job.order = tables.order.data();
    job.widths = tables.widths.data();
    job.first_ratios = kFirstRatios.data();
    job.fit_rounds = kFitRounds;
  }
  job.factors = side.balance ? tables.inverse_balance.data() : nullptr;
  job.page_scale = GivenScale(side, tables);
  job.means = side.head_mean ? tables.mean.data() : nullptr;
  job.fit = side.tunes.norm ? SealFit::kNorm
            : side.tunes.ub ? SealFit::kUnbiased
                            : SealFit::kLeastSquares;
  job.dim = side.dim;
  job.padded_dim = side.padded_dim;
  job.bits = side.bits;
  job.group = side.axis == Axis::kPage ? side.dim : side.group;
  job.hadamard = side.hadamard;
  job.first_token = first_token;
  job.clip = ClipOf(side);
  if (side.tunes.mse) {
    job.ratios = ClipRatios(side.bits).data();
    job.ratio_count = static_cast<int>(ClipRatios(side.bits).size());
  }
  job.zero_code = ZeroCode(side.codec->levels, side.bits);
  if (side.code >= Code::kNf) {  // a table
    const LevelTable table = LevelTableOf(side.code, side.bits);
    job.levels = table.levels;
    job.step = table.step;
  }
  return job;
}

PageSealer::PageSealer(const LayerFormat& format, const KernelTable& kernels)
    : format_(format),
      kernels_(kernels),
      exact_(format),
      scratch_(MakeAlignedArray<uint8_t>(ScratchBytes(format))) {}

void PageSealer::Seal(const uint8_t* exact_page, int kv_head, int64_t first_position,
                      int first_token, uint8_t* page, PageDescriptor* descriptor) {
  *descriptor = PageDescriptor();
  if (format_.k.pre) descriptor->first_position = first_position;
  descriptor->first_token = first_token;
  const uint8_t* values = exact_page + exact_.ValueOffset(kPageTokens);
  SealOneSide(format_.k, format_.k_tables[kv_head], exact_page, first_token, format_.sealed.k, page,
              descriptor);
  SealOneSide(format_.v, format_.v_tables[kv_head], values, first_token, format_.sealed.v, page,
              descriptor);
}

void PageSealer::SealOneSide(const SideFormat& side, const HeadTables& tables, const uint8_t* exact,
                             int first_token, const SidePart& part, uint8_t* page,
                             PageDescriptor* descriptor) {
  if (side.exact) {
    std::memcpy(page + part.codes_offset, exact, part.codes_bytes);
    return;
  }
  if (const std::optional<SealJob> job = SealJobOf(side, tables, first_token)) {
    const SealResult result =
        kernels_.seal(*job, exact, page + part.meta_offset, page + part.codes_offset,
                      reinterpret_cast<float*>(scratch_.get()));
    (job->key ? descriptor->k_page_scale : descriptor->v_page_scale) = result.page_scale;
    descriptor->clipped_values += result.clipped;
    return;
  }
  rows_.resize(static_cast<size_t>(kPageTokens) * side.dim);
  if (side.kind == SideKind::kKey) {
    exact_.ReadKeys(exact, kPageTokens, rows_.data());
  } else {
    exact_.ReadValues(exact, kPageTokens, rows_.data());
  }
  SealSide(side, tables, rows_.data(), first_token, part, page, descriptor, scratch_.get());
}

}  // namespace shorthand
