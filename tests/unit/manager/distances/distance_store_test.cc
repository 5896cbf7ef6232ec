// Distances on the distance_store and in the store below it.
#include "daemon/manager/distances/distance_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_store.h"

namespace coppice::distance_store_test {
namespace {

using ::testing::ElementsAre;

DistanceRecord Record(const std::string& a, const std::string& b, int second, double latency = 2) {
  return {a, b, latency, 0.5, 100, 3, 90, absl::FromUnixSeconds(1'700'000'000 + second)};
}

std::unique_ptr<DistanceStore> Open(Store& store, size_t most = 100) {
  auto distance_store = DistanceStore::Create(&store, most);
  EXPECT_TRUE(distance_store.ok()) << distance_store.status();
  return *std::move(distance_store);
}

std::vector<DistanceRecord> List(const DistanceStore& store, const HostPair& after, size_t limit) {
  std::vector<DistanceRecord> page;
  store.ForEachAfter(after, [&](const DistanceRecord& record) {
    page.push_back(record);
    return page.size() < limit;
  });
  return page;
}

TEST(DistanceStoreTest, KeepsWhatWasMeasuredLastOfEachPair) {
  ScratchStore store;
  {
    const auto distance_store = Open(store);
    distance_store->Put({Record("n1", "n2", 1), Record("n0", "n9", 2)});
    distance_store->Put({Record("n1", "n2", 3, 7)});
    distance_store->Put({});
    EXPECT_EQ(distance_store->size(), 2u);
  }
  const auto distance_store = Open(store);
  EXPECT_THAT(List(*distance_store, {}, 10),
              ElementsAre(Record("n0", "n9", 2), Record("n1", "n2", 3, 7)));
  EXPECT_THAT(List(*distance_store, {}, 1), ElementsAre(Record("n0", "n9", 2)));
  EXPECT_THAT(List(*distance_store, {"n0", "n9"}, 10), ElementsAre(Record("n1", "n2", 3, 7)));
}

TEST(DistanceStoreTest, DropsTheOldestOfTooMany) {
  ScratchStore store;
  {
    const auto distance_store = Open(store, 3);
    distance_store->Put({Record("a", "b", 1), Record("a", "c", 2), Record("a", "d", 3)});
    distance_store->Put({Record("a", "b", 4)});  // again: no longer the oldest
    distance_store->Put({Record("a", "e", 5)});
    EXPECT_THAT(List(*distance_store, {}, 10),
                ElementsAre(Record("a", "b", 4), Record("a", "d", 3), Record("a", "e", 5)));
    // One that is older than all that are kept is dropped at once.
    distance_store->Put({Record("a", "f", 0)});
    EXPECT_EQ(distance_store->size(), 3u);
  }
  EXPECT_THAT(*store.Distances(),
              ElementsAre(Record("a", "b", 4), Record("a", "d", 3), Record("a", "e", 5)));
  // A lower limit holds from the next start on.
  EXPECT_EQ(Open(store, 1)->size(), 1u);
  EXPECT_THAT(*store.Distances(), ElementsAre(Record("a", "e", 5)));
}

}  // namespace
}  // namespace coppice::distance_store_test
