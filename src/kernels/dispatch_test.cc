#include "kernels/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "kernels/targets.h"

namespace shorthand {
namespace {

using ::testing::HasSubstr;

constexpr KernelTable Named(const char* name) {
  KernelTable table{};
  table.name = name;
  return table;
}
constexpr KernelTable kFast = Named("fast");
constexpr KernelTable kMiddle = Named("middle");
constexpr KernelTable kSlow = Named("slow");
constexpr TargetEntry kEntries[] = {{&kFast, false}, {&kMiddle, true}, {&kSlow, true}};

TEST(DispatchTest, TakesTheBestThatRuns) {
  for (const char* none : {static_cast<const char*>(nullptr), ""}) {
    const TargetChoice choice = ChooseTarget(kEntries, none);
    EXPECT_EQ(choice.table, &kMiddle);
    EXPECT_THAT(choice.reason, HasSubstr("middle is the best target"));
    EXPECT_THAT(choice.reason, HasSubstr("middle, slow"));
  }
}

TEST(DispatchTest, TakesTheOneAskedFor) {
  const TargetChoice choice = ChooseTarget(kEntries, "slow");
  EXPECT_EQ(choice.table, &kSlow);
  EXPECT_THAT(choice.reason, HasSubstr("asks for slow"));
}

TEST(DispatchTest, RefusesWhatCannotRun) {
  const TargetChoice choice = ChooseTarget(kEntries, "fast");
  EXPECT_EQ(choice.table, nullptr);
  EXPECT_THAT(choice.reason, HasSubstr("cannot run"));
  EXPECT_THAT(choice.reason, HasSubstr("middle, slow"));
}

TEST(DispatchTest, RefusesUnknownNames) {
  for (const char* name : {"Fast", "mid", "middle ", "neon"}) {
    const TargetChoice choice = ChooseTarget(kEntries, name);
    EXPECT_EQ(choice.table, nullptr);
    EXPECT_THAT(choice.reason, HasSubstr("no target of this build"));
  }
}

TEST(DispatchTest, ScalarIsTheLastAndRunsEverywhere) {
  int count = 0;
  const TargetEntry* entries = CompiledTargets(&count);
  ASSERT_GE(count, 1);
  EXPECT_EQ(entries[count - 1].table, &kScalarKernels);
  EXPECT_TRUE(entries[count - 1].supported);
  for (int i = 0; i < count; ++i) {
    const KernelTable& table = *entries[i].table;
    EXPECT_TRUE(table.name && table.score && table.softmax && table.join && table.accumulate &&
                table.unpack_k && table.unpack_v && table.hadamard && table.exp2);
  }
}

TEST(DispatchTest, TheActiveTableIsTheChosenOne) {
  int count = 0;
  const TargetEntry* entries = CompiledTargets(&count);
  const TargetChoice choice =
      ChooseTarget({entries, static_cast<size_t>(count)}, std::getenv("SHORTHAND_TARGET"));
  EXPECT_EQ(ActiveKernels(), choice.table);
  EXPECT_EQ(ActiveKernelsReason(), choice.reason);
}

}  // namespace
}  // namespace shorthand
