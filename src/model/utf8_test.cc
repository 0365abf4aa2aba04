#include "model/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace shorthand {
namespace {

using namespace std::string_literals;

// RFC 3629, section 3 and 4: the ends of every range are valid, one beyond is not.
TEST(Utf8, AcceptsTheEndsOfEveryRange) {
  for (const std::string& text :
       {""s, "\0"s, "\x7f"s, "\xc2\x80"s, "\xdf\xbf"s, "\xe0\xa0\x80"s, "\xed\x9f\xbf"s,
        "\xee\x80\x80"s, "\xef\xbf\xbf"s, "\xf0\x90\x80\x80"s, "\xf4\x8f\xbf\xbf"s}) {
    EXPECT_EQ(FirstInvalidUtf8(text), std::nullopt) << text;
  }
}

TEST(Utf8, NamesTheByteWhereItStops) {
  struct Case {
    std::string text;
    size_t at;
  };
  for (const Case& c :
       {Case{"\x80"s, 0}, Case{"a\xbf"s, 1}, Case{"ab\xc0\x80"s, 2}, Case{"\xc1\xbf"s, 0},
        Case{"\xe0\x9f\xbf"s, 0}, Case{"\xed\xa0\x80"s, 0}, Case{"\xf0\x8f\xbf\xbf"s, 0},
        Case{"\xf4\x90\x80\x80"s, 0}, Case{"\xf5\x80\x80\x80"s, 0}, Case{"\xff"s, 0},
        Case{"x\xc3"s, 1}, Case{"\xe2\x82"s, 0}, Case{"\xc3\x28"s, 0}, Case{"\xe2\x28\xa1"s, 0}}) {
    EXPECT_EQ(FirstInvalidUtf8(c.text), c.at) << c.text;
  }
}

TEST(Utf8, WholeCharactersHoldsBackAnUnfinishedOne) {
  const std::string euro = "\xe2\x82\xac";
  const std::string face = "\xf0\x9f\x98\x80";
  EXPECT_EQ(WholeCharacters(""), 0u);
  EXPECT_EQ(WholeCharacters("ab"), 2u);
  EXPECT_EQ(WholeCharacters("a" + euro), 4u);
  EXPECT_EQ(WholeCharacters("a" + euro.substr(0, 2)), 1u);
  EXPECT_EQ(WholeCharacters("a" + euro.substr(0, 1)), 1u);
  for (size_t bytes = 1; bytes < 4; ++bytes) {
    EXPECT_EQ(WholeCharacters("xy" + face.substr(0, bytes)), 2u) << bytes;
  }
  EXPECT_EQ(WholeCharacters("xy" + face), 6u);
  // Bytes that can never become a character are let through.
  EXPECT_EQ(WholeCharacters("\x80\x80\x80\x80"s), 4u);
}

}  // namespace
}  // namespace shorthand
