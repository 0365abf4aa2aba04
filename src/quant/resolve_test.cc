#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "quant/page_test_util.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

Side SideOf(Code code, int bits, Axis axis, int group = 0) {
  Side side;
  side.code = code;
  side.bits = bits;
  side.axis = axis;
  side.group = group;
  return side;
}

void ExpectRefused(const Side& side, SideKind kind, int dim, StatusCode code,
                   const std::string& part) {
  const Result<SideFormat> format = ResolveSide(side, kind, dim);
  ASSERT_FALSE(format.ok()) << part;
  EXPECT_EQ(format.status().code(), code) << format.status().message();
  EXPECT_THAT(format.status().message(), HasSubstr(part));
}

TEST(ResolveTest, FillsEveryField) {
  const SideFormat u4 = ResolveText("u4/tok32", SideKind::kValue, 96);
  EXPECT_EQ(u4.codec, FindCodec("u4"));
  EXPECT_EQ(u4.bits, 4);
  EXPECT_EQ(u4.padded_dim, 96);
  EXPECT_EQ(u4.axis, Axis::kToken);
  EXPECT_EQ(u4.group, 32);
  EXPECT_EQ(u4.groups(), 3);
  EXPECT_TRUE(u4.has_offset);
  EXPECT_EQ(u4.hadamard, 0);

  const SideFormat lm = ResolveText("mu:had:lm3/tok:norm", SideKind::kKey, 72);
  EXPECT_TRUE(lm.mean);
  EXPECT_EQ(lm.hadamard, 8);
  EXPECT_EQ(lm.padded_dim, 80);
  EXPECT_EQ(lm.group, 72);
  EXPECT_TRUE(lm.tunes.norm);

  const SideFormat ch = ResolveText("u2/ch32", SideKind::kKey, 80);
  EXPECT_EQ(ch.axis, Axis::kChannel);
  EXPECT_EQ(ch.groups(), 4);
}

TEST(ResolveTest, PromotedChannelsAreWholeQuads) {
  const SideFormat kitty = ResolveText("u2/ch:hi12.5", SideKind::kKey, 128);
  EXPECT_EQ(kitty.promoted, 16);
  EXPECT_EQ(kitty.plane_lines, 4 * 4 + 28 * 2);
  EXPECT_EQ(kitty.meta_bytes(), 576u);    // (16 + 2 * 128) * 2, to the line
  EXPECT_EQ(kitty.codes_bytes(), 4608u);  // 72 lines
  EXPECT_FALSE(kitty.plain());
  EXPECT_EQ(ResolveText("u3/ch32:hi0.1", SideKind::kKey, 72).promoted, 4);
  EXPECT_EQ(ResolveText("u4/ch:hi12.6", SideKind::kKey, 128).promoted, 20);  // 16.1 channels
  EXPECT_EQ(ResolveText("u4/ch:hi99", SideKind::kKey, 80).promoted, 80);
  EXPECT_EQ(ResolveText("u4/ch:hi99", SideKind::kKey, 80).plane_lines, 20 * 8);
  Side side = SideOf(Code::kUint, 2, Axis::kChannel);
  side.hi = {12500000};
  ExpectRefused(side, SideKind::kValue, 64, StatusCode::kInvalidArgument, "'hi'");
  side.axis = Axis::kGrid;
  ExpectRefused(side, SideKind::kKey, 64, StatusCode::kInvalidArgument, "'hi'");
  side = SideOf(Code::kUint, 5, Axis::kChannel);
  side.hi = {12500000};
  ExpectRefused(side, SideKind::kKey, 64, StatusCode::kInvalidArgument, "u2, u3 and u4");
}

TEST(ResolveTest, OutliersAreAShareOfThePage) {
  const SideFormat nuq = ResolveText("nuq3/ch:out1", SideKind::kKey, 128);
  EXPECT_EQ(nuq.outliers, 164);  // 163.84
  EXPECT_FALSE(nuq.plain());
  EXPECT_EQ(nuq.meta_bytes(), 1216u);  // 2 * 128 * 2 + 164 * 4 = 1168, to the line
  EXPECT_EQ(ResolveText("nuq4/tok:out0.000001", SideKind::kValue, 64).outliers, 1);
  EXPECT_EQ(ResolveText("nuq4/tok:out50", SideKind::kValue, 72).outliers, 64 * 72);
  EXPECT_TRUE(ResolveText("nuq4/tok", SideKind::kValue, 72).plain());
  Side side = SideOf(Code::kNuq, 4, Axis::kToken);
  side.out = {1000000};
  EXPECT_TRUE(ResolveSide(side, SideKind::kKey, 512).ok());
  ExpectRefused(side, SideKind::kKey, 520, StatusCode::kInvalidArgument, "up to 512 channels");
  side.axis = Axis::kGrid;
  ExpectRefused(side, SideKind::kKey, 64, StatusCode::kInvalidArgument, "'out'");
  side = SideOf(Code::kRn, 4, Axis::kToken);
  side.out = {1000000};
  ExpectRefused(side, SideKind::kKey, 64, StatusCode::kInvalidArgument, "nuqB");
}

TEST(ResolveTest, GridsAreScalesOfOneAxisAndFactorsOfTheOther) {
  const SideFormat key = ResolveText("had:u4/grid", SideKind::kKey, 72);
  EXPECT_TRUE(key.grid);
  EXPECT_FALSE(key.plain());
  EXPECT_EQ(key.axis, Axis::kChannel);
  EXPECT_EQ(key.groups(), 1);
  EXPECT_EQ(key.factors(), 128);
  EXPECT_EQ(key.meta_bytes(), 576u);  // (128 + 2 * 80) * 2
  const SideFormat value = ResolveText("lm2/grid", SideKind::kValue, 72);
  EXPECT_EQ(value.axis, Axis::kToken);
  EXPECT_EQ(value.groups(), 1);
  EXPECT_EQ(value.factors(), 80);
  EXPECT_EQ(value.meta_bytes(), 448u);  // (80 + 128) * 2, to the line
  EXPECT_TRUE(ResolveText("u4/ch", SideKind::kKey, 72).plain());
}

TEST(ResolveTest, BlocksAndFloatsHaveFixedGroups) {
  const SideFormat q8 = ResolveText("q8_0", SideKind::kKey, 128);
  EXPECT_EQ(q8.axis, Axis::kToken);
  EXPECT_EQ(q8.group, 32);
  EXPECT_EQ(q8.bits, 8);
  EXPECT_EQ(ResolveText("nvfp4", SideKind::kKey, 80).group, 16);
  const SideFormat fp8 = ResolveText("e4m3/page", SideKind::kKey, 128);
  EXPECT_EQ(fp8.groups(), 1);
  EXPECT_EQ(fp8.meta_bytes(), 0u);
}

TEST(ResolveTest, ExactCodes) {
  for (const auto& [name, bits] : {std::pair{"f32", 32}, {"f16", 16}, {"bf16", 16}}) {
    const SideFormat format = ResolveText(name, SideKind::kKey, 80);
    EXPECT_TRUE(format.exact);
    EXPECT_EQ(format.codec, nullptr);
    EXPECT_EQ(format.bits, bits);
    EXPECT_EQ(format.meta_bytes(), 0u);
    EXPECT_EQ(format.codes_bytes(), size_t{128} * 80 * bits / 8);
  }
}

TEST(ResolveTest, HeadDimsAreBounded) {
  const Side side = SideOf(Code::kUint, 4, Axis::kToken);
  for (int dim : {-8, 0, 4, 12, 65, 1032}) {
    ExpectRefused(side, SideKind::kKey, dim, StatusCode::kInvalidArgument,
                  "multiples of 8 from 8 to 1024");
  }
  for (int dim : {8, 16, 1024}) EXPECT_TRUE(ResolveSide(side, SideKind::kKey, dim).ok()) << dim;
}

TEST(ResolveTest, GroupsThatDoNotDivideNameTheNearest) {
  const auto tok = [](int group) { return SideOf(Code::kUint, 4, Axis::kToken, group); };
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  ExpectRefused(tok(64), SideKind::kKey, 96, kInvalid, "'/tok32'");
  ExpectRefused(tok(64), SideKind::kKey, 80, kInvalid, "'/tok'");
  ExpectRefused(tok(32), SideKind::kKey, 8, kInvalid, "'/tok'");
  ExpectRefused(tok(-1), SideKind::kKey, 64, kInvalid, "divide");
  ExpectRefused(SideOf(Code::kUint, 4, Axis::kChannel, 48), SideKind::kKey, 64, kInvalid,
                "'/ch32'");
  ExpectRefused(SideOf(Code::kQ4_0, 0, Axis::kNone), SideKind::kKey, 80, kInvalid,
                "blocks of 32 channels");
  ExpectRefused(SideOf(Code::kNvfp4, 0, Axis::kNone), SideKind::kKey, 8, kInvalid,
                "blocks of 16 channels");
  ExpectRefused(SideOf(Code::kQ4_0, 0, Axis::kToken), SideKind::kKey, 64, kInvalid, "no group");
  ExpectRefused(SideOf(Code::kE4m3, 0, Axis::kToken), SideKind::kKey, 64, kInvalid, "'/page'");
  ExpectRefused(SideOf(Code::kE4m3, 0, Axis::kGrid), SideKind::kKey, 64, kInvalid, "'/page'");
  ExpectRefused(SideOf(Code::kUint, 4, Axis::kPage), SideKind::kKey, 64, kInvalid, "'/tok'");
  ExpectRefused(SideOf(Code::kUint, 7, Axis::kToken), SideKind::kKey, 64, kInvalid, "'u7'");
}

TEST(ResolveTest, HadamardMustDivideTheHead) {
  Side side = SideOf(Code::kUint, 4, Axis::kToken);
  side.hadamard = 64;
  ExpectRefused(side, SideKind::kKey, 80, StatusCode::kInvalidArgument, "is 16");
  side.hadamard = 12;
  ExpectRefused(side, SideKind::kKey, 96, StatusCode::kInvalidArgument, "is 32");
  side.hadamard = kHadamardWhole;
  EXPECT_EQ(ResolveSide(side, SideKind::kKey, 80)->hadamard, 16);
}

TEST(ResolveTest, StepsWhereTheyDoNotBelong) {
  Side side = SideOf(Code::kUint, 4, Axis::kChannel);
  side.mu = true;
  ExpectRefused(side, SideKind::kKey, 64, StatusCode::kInvalidArgument, "channel groups");
  side.axis = Axis::kGrid;
  ExpectRefused(side, SideKind::kKey, 64, StatusCode::kInvalidArgument, "channel groups");
  side.axis = Axis::kToken;
  ExpectRefused(side, SideKind::kValue, 64, StatusCode::kInvalidArgument, "only keys");
  side.mu = false;
  side.smooth = true;
  EXPECT_TRUE(ResolveSide(side, SideKind::kKey, 64).ok());
  ExpectRefused(side, SideKind::kValue, 64, StatusCode::kInvalidArgument, "'smooth'");
  side.bal = true;
  ExpectRefused(side, SideKind::kKey, 64, StatusCode::kInvalidArgument, "'smooth'");
  side = SideOf(Code::kUint, 4, Axis::kChannel);
  side.pre = true;
  EXPECT_TRUE(ResolveSide(side, SideKind::kKey, 64)->pre);
  ExpectRefused(side, SideKind::kValue, 64, StatusCode::kInvalidArgument, "'pre'");
  side.hadamard = kHadamardWhole;
  ExpectRefused(side, SideKind::kKey, 64, StatusCode::kInvalidArgument, "'pre'");
  Side exact;
  exact.hadamard = kHadamardWhole;
  ExpectRefused(exact, SideKind::kKey, 64, StatusCode::kInvalidArgument, "'f16'");
}

TEST(ResolveTest, WhatThisBuildLacksIsNamed) {
  const auto expect = [](const char* name, auto change) {
    Side side = SideOf(Code::kUint, 4, Axis::kToken);
    change(side);
    ExpectRefused(side, SideKind::kKey, 64, StatusCode::kUnimplemented, name);
  };
  expect("'rot'", [](Side& s) { s.rot = true; });
  Side side = SideOf(Code::kUint, 4, Axis::kToken);
  side.cal = true;
  ExpectRefused(side, SideKind::kKey, 64, StatusCode::kInvalidArgument, "nothing from a calib");
  side.mu = true;
  EXPECT_TRUE(ResolveSide(side, SideKind::kKey, 64)->head_mean);
}

TEST(RegistryTest, RowsAreDistinctAndFound) {
  for (const Codec& a : Registry()) {
    EXPECT_EQ(FindCodec(a.name), &a);
    EXPECT_EQ(FindCodec(a.code, a.bits), &a);
    EXPECT_NE(a.id, 0);
    for (const Codec& b : Registry()) {
      EXPECT_TRUE(&a == &b || (a.id != b.id && a.name != b.name)) << a.name << " " << b.name;
    }
  }
  EXPECT_EQ(FindCodec("u7"), nullptr);
}

// Ids are stored in files: this list only grows.
TEST(RegistryTest, IdsNeverChange) {
  const std::pair<const char*, int> ids[] = {
      {"e4m3", 1},  {"e5m2", 2},    {"q8_0", 16},  {"q5_1", 17},  {"q5_0", 18}, {"q4_1", 19},
      {"q4_0", 20}, {"iq4_nl", 21}, {"mxfp4", 22}, {"nvfp4", 23}, {"i2", 34},   {"i3", 35},
      {"i4", 36},   {"i5", 37},     {"i6", 38},    {"i8", 40},    {"u2", 50},   {"u3", 51},
      {"u4", 52},   {"u5", 53},     {"u6", 54},    {"u8", 56},    {"nf2", 66},  {"nf3", 67},
      {"w", 60},    {"nf4", 68},    {"lm2", 82},   {"lm3", 83},   {"lm4", 84},  {"rn2", 98},
      {"rn3", 99},  {"rn4", 100},   {"nuq2", 130}, {"nuq3", 131}, {"nuq4", 132}};
  EXPECT_EQ(std::size(ids), Registry().size());
  for (const auto& [name, id] : ids) {
    ASSERT_NE(FindCodec(name), nullptr) << name;
    EXPECT_EQ(FindCodec(name)->id, id) << name;
  }
}

}  // namespace
}  // namespace shorthand
