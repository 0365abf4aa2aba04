#include "base/replace_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace shorthand {
namespace {

namespace fs = std::filesystem;

class ReplaceFileTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t Files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "replace_file_test";
};

TEST_F(ReplaceFileTest, WritesAndReplaces) {
  ASSERT_TRUE(ReplaceFile(Path("a"), "one").ok());
  EXPECT_EQ(Read(Path("a")), "one");
  ASSERT_TRUE(ReplaceFile(Path("a"), "").ok());
  EXPECT_EQ(Read(Path("a")), "");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(ReplaceFileTest, ALinkStaysOne) {
  ASSERT_TRUE(ReplaceFile(Path("a"), "old").ok());
  fs::create_symlink(Path("a"), Path("link"));
  ASSERT_TRUE(ReplaceFile(Path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Read(Path("a")), "new");
}

TEST_F(ReplaceFileTest, DevicesAreWrittenTo) {
  ASSERT_TRUE(ReplaceFile("/dev/null", "text").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(ReplaceFileTest, AFailureLeavesWhatWasThere) {
  EXPECT_EQ(ReplaceFile(Path("none/a"), "text").code(), StatusCode::kInternal);
  fs::create_directory(Path("folder"));
  EXPECT_EQ(ReplaceFile(Path("folder"), "text").code(), StatusCode::kInternal);
  EXPECT_EQ(Files(), 1u);
}

}  // namespace
}  // namespace shorthand
