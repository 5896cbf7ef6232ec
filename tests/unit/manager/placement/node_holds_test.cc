// Plans that meet at the same nodes: one takes them, the others learn of it.
#include "daemon/manager/placement/placement_snapshot.h"
#include "gtest/gtest.h"

namespace coppice::node_holds_test {
namespace {

using Wish = NodeHolds::Wish;

const Wish kA = {{"n1", "n2"}, {Guid(1)}, false};
const Wish kB = {{"n2", "n3"}, {Guid(1), Guid(2)}, false};
const Wish kC = {{"n4"}, {Guid(2)}, false};
const Wish kAlone = {{"n5"}, {Guid(2)}, true};

TEST(NodeHolds, ANodeHasOneHolder) {
  NodeHolds holds;
  EXPECT_TRUE(holds.TakeAll({&kA}, holds.generation()));
  EXPECT_FALSE(holds.TakeAll({&kC, &kB}, holds.generation()));
  EXPECT_EQ(holds.count(), 2u);  // nothing of the refused call stayed
  EXPECT_FALSE(holds.TakeAll({&kC, &kC}, holds.generation()));
  EXPECT_TRUE(holds.TakeAll({&kC}, holds.generation()));
  holds.Free(kA);
  EXPECT_TRUE(holds.TakeAll({&kB}, holds.generation()));
  EXPECT_EQ(holds.count(), 3u);
}

TEST(NodeHolds, APlanFromBeforeDoesNotTakeWhatWasTakenSince) {
  NodeHolds holds;
  const uint64_t before = holds.generation();
  EXPECT_TRUE(holds.TakeAll({&kA}, before));
  holds.Free(kA);  // it may be a job's by now
  EXPECT_FALSE(holds.TakeAll({&kB}, before));
  EXPECT_TRUE(holds.TakeAll({&kB}, holds.generation()));
}

TEST(NodeHolds, WhoGetsNothingMakesNobodyPlanAgain) {
  NodeHolds holds;
  EXPECT_TRUE(holds.TakeAll({&kA}, holds.generation()));
  const uint64_t before = holds.generation();
  EXPECT_FALSE(holds.TakeAll({&kC, &kB}, before));      // n2 is held; n4 was free
  EXPECT_FALSE(holds.TakeAll({&kAlone, &kC}, before));  // leaf switch 2 is wanted whole
  EXPECT_EQ(holds.generation(), before);
  EXPECT_TRUE(holds.TakeAll({&kC}, before));
  holds.Free(kC);
  EXPECT_TRUE(holds.TakeAll({&kAlone}, holds.generation()));
}

TEST(NodeHolds, ALeafSwitchMayBeHeldWhole) {
  NodeHolds holds;
  EXPECT_TRUE(holds.TakeAll({&kC}, holds.generation()));
  EXPECT_FALSE(holds.TakeAll({&kAlone}, holds.generation()));
  holds.Free(kC);
  const uint64_t before = holds.generation();
  EXPECT_TRUE(holds.TakeAll({&kAlone}, before));
  EXPECT_FALSE(holds.TakeAll({&kC}, holds.generation()));
  EXPECT_TRUE(holds.TakeAll({&kA}, holds.generation()));
  holds.Free(kAlone);
  EXPECT_FALSE(holds.TakeAll({&kC}, before));
  EXPECT_TRUE(holds.TakeAll({&kC}, holds.generation()));
}

}  // namespace
}  // namespace coppice::node_holds_test
