#include "plan/units.h"

#include <gtest/gtest.h>

namespace shorthand {
namespace {

TEST(ParseSize, TellsDecimalFromBinaryUnits) {
  EXPECT_EQ(*ParseSize("24GB"), 24'000'000'000u);
  EXPECT_EQ(*ParseSize("24GiB"), 25'769'803'776u);
  EXPECT_EQ(*ParseSize("512MiB"), 536'870'912u);
  EXPECT_EQ(*ParseSize("1.5 kib"), 1536u);
  EXPECT_EQ(*ParseSize("4096"), 4096u);
  EXPECT_EQ(*ParseSize("7B"), 7u);
  EXPECT_EQ(*ParseSize("1024TiB"), uint64_t{1} << 50);
}

TEST(ParseSize, RefusesEverythingElse) {
  for (const char* text : {"", "GB", "-1GB", "0", "24G", "24GBs", "1.", ".5GB", "1.2.3", "1e9",
                           "2PB", "1025TiB", "24  GB", "99999999999999999999999", "24\n"}) {
    const auto size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_NE(size.status().message().find("GiB"), std::string::npos);
  }
}

TEST(ParseTokens, KnowsThousandsOfTheBinaryKind) {
  EXPECT_EQ(*ParseTokens("32k", 1 << 20), 32768);
  EXPECT_EQ(*ParseTokens("128K", 1 << 20), 131072);
  EXPECT_EQ(*ParseTokens("1M", 1 << 20), 1048576);
  EXPECT_EQ(*ParseTokens("0.5k", 1 << 20), 512);
  EXPECT_EQ(*ParseTokens("777", 777), 777);
  for (const char* text : {"", "k", "0", "-5", "1.5", "778", "32g", "32 k k", "0x10"}) {
    EXPECT_FALSE(ParseTokens(text, 777).ok()) << text;
  }
}

TEST(Format, ReadsLikeASentence) {
  EXPECT_EQ(FormatSize(0), "0 B");
  EXPECT_EQ(FormatSize(1023), "1023 B");
  EXPECT_EQ(FormatSize(131072), "128 KiB");
  EXPECT_EQ(FormatSize(34816), "34 KiB");
  EXPECT_EQ(FormatSize(34900), "34.1 KiB");
  EXPECT_EQ(FormatSize(uint64_t{4} << 30), "4.0 GiB");
  EXPECT_EQ(FormatSize(24'000'000'000), "22.4 GiB");
  EXPECT_EQ(FormatDecimalSize(24'000'000'000), "24 GB");
  EXPECT_EQ(FormatDecimalSize(25'769'803'776), "25.77 GB");
  EXPECT_EQ(FormatDecimalSize(100), "100 B");
  EXPECT_EQ(FormatParameters(8'030'261'248), "8.03 billion");
  EXPECT_EQ(FormatParameters(134'515'008), "135 million");
  EXPECT_EQ(FormatTokens(32768), "32k");
  EXPECT_EQ(FormatTokens(1048576), "1M");
  EXPECT_EQ(FormatTokens(1000), "1000");
}

}  // namespace
}  // namespace shorthand
