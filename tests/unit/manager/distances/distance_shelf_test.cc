// Distances on the shelf and in the store below it.
#include "daemon/manager/distances/distance_shelf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_store.h"

namespace coppice::distance_shelf_test {
namespace {

using ::testing::ElementsAre;

DistanceRecord Record(const std::string& a, const std::string& b, int second, double latency = 2) {
  return {a, b, latency, 0.5, 100, 3, 90, absl::FromUnixSeconds(1'700'000'000 + second)};
}

std::unique_ptr<DistanceShelf> Shelf(Store& store, size_t most = 100) {
  auto shelf = DistanceShelf::Create(&store, most);
  EXPECT_TRUE(shelf.ok()) << shelf.status();
  return *std::move(shelf);
}

TEST(DistanceShelfTest, KeepsWhatWasMeasuredLastOfEachPair) {
  ScratchStore store;
  {
    const auto shelf = Shelf(store);
    shelf->Put({Record("n1", "n2", 1), Record("n0", "n9", 2)});
    shelf->Put({Record("n1", "n2", 3, 7)});
    shelf->Put({});
    EXPECT_EQ(shelf->size(), 2u);
  }
  const auto shelf = Shelf(store);
  EXPECT_THAT(shelf->List({}, 10), ElementsAre(Record("n0", "n9", 2), Record("n1", "n2", 3, 7)));
  EXPECT_THAT(shelf->List({}, 1), ElementsAre(Record("n0", "n9", 2)));
  EXPECT_THAT(shelf->List({"n0", "n9"}, 10), ElementsAre(Record("n1", "n2", 3, 7)));
}

TEST(DistanceShelfTest, DropsTheOldestOfTooMany) {
  ScratchStore store;
  {
    const auto shelf = Shelf(store, 3);
    shelf->Put({Record("a", "b", 1), Record("a", "c", 2), Record("a", "d", 3)});
    shelf->Put({Record("a", "b", 4)});  // again: no longer the oldest
    shelf->Put({Record("a", "e", 5)});
    EXPECT_THAT(shelf->List({}, 10),
                ElementsAre(Record("a", "b", 4), Record("a", "d", 3), Record("a", "e", 5)));
    // One that is older than all that are kept is dropped at once.
    shelf->Put({Record("a", "f", 0)});
    EXPECT_EQ(shelf->size(), 3u);
  }
  EXPECT_THAT(*store.Distances(),
              ElementsAre(Record("a", "b", 4), Record("a", "d", 3), Record("a", "e", 5)));
  // A lower limit holds from the next start on.
  EXPECT_EQ(Shelf(store, 1)->size(), 1u);
  EXPECT_THAT(*store.Distances(), ElementsAre(Record("a", "e", 5)));
}

}  // namespace
}  // namespace coppice::distance_shelf_test
