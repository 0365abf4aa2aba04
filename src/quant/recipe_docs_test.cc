// docs/recipes.md shows what the parser does: its tables, examples and errors are checked here.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "quant/format.h"
#include "shorthand/recipe.h"

namespace shorthand {
namespace {

class RecipeDocsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("SHORTHAND_SOURCE_DIR");
    if (root == nullptr) GTEST_SKIP() << "SHORTHAND_SOURCE_DIR is not set.";
    std::ifstream file(std::string(root) + "/docs/recipes.md");
    ASSERT_TRUE(file.good());
    for (std::string line; std::getline(file, line);) lines_.push_back(line);
  }

  std::vector<std::string> lines_;
};

// Fields of a row of a table, without blanks and backquotes around them.
std::vector<std::string> Fields(const std::string& row) {
  std::vector<std::string> fields;
  for (size_t begin = 1; begin < row.size();) {
    const size_t end = row.find('|', begin);
    std::string field = row.substr(begin, end - begin);
    field.erase(0, field.find_first_not_of(" `"));
    field.erase(field.find_last_not_of(" `") + 1);
    fields.push_back(field);
    begin = end == std::string::npos ? row.size() : end + 1;
  }
  return fields;
}

bool IsStored(const Recipe& recipe) {
  return ResolveSide(recipe.kv.k, SideKind::kKey, 128).ok() &&
         ResolveSide(recipe.kv.v, SideKind::kValue, 128).ok();
}

TEST_F(RecipeDocsTest, TheTableOfPresetsIsRight) {
  std::map<std::string, std::vector<std::string>> rows;
  bool in_table = false;
  for (const std::string& line : lines_) {
    if (line.starts_with("| preset |")) in_table = true;
    if (line.empty()) in_table = false;
    if (in_table && line.starts_with("| `")) rows[Fields(line)[0]] = Fields(line);
  }
  EXPECT_EQ(rows.size(), Presets().size());
  for (const Preset& preset : Presets()) {
    const auto row = rows.find(std::string(preset.name));
    ASSERT_NE(row, rows.end()) << preset.name;
    ASSERT_EQ(row->second.size(), 4u) << preset.name;
    EXPECT_EQ(row->second[1], preset.canonical);
    EXPECT_EQ(row->second[3] == "yes", IsStored(*Recipe::Parse(preset.name))) << preset.name;
  }
}

TEST_F(RecipeDocsTest, ExamplesAreRecipes) {
  bool in_example = false;
  int examples = 0;
  for (const std::string& line : lines_) {
    if (line.starts_with("```")) {
      in_example = line == "```recipe";
    } else if (in_example) {
      const Result<Recipe> recipe = Recipe::Parse(line);
      EXPECT_TRUE(recipe.ok()) << recipe.status().message();
      EXPECT_TRUE(recipe.ok() && IsStored(*recipe)) << line;
      ++examples;
    }
  }
  EXPECT_GT(examples, 10);
}

TEST_F(RecipeDocsTest, ErrorsReadAsShown) {
  const std::string head = "recipe \"";
  int errors = 0;
  for (const std::string& line : lines_) {
    if (!line.starts_with(head)) continue;
    const std::string text = line.substr(head.size(), line.find("\": at byte") - head.size());
    EXPECT_EQ(Recipe::Parse(text).status().message(), line);
    ++errors;
  }
  EXPECT_EQ(errors, 3);
}

}  // namespace
}  // namespace shorthand
