// A store that refuses writes is told, and so is the end of that, though nobody else asks anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/manager/background.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::store_watch_test {
namespace {

using testing::HasSubstr;

// Says in its statistics how the last write went.
class FaultyStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  void Submit(Mutation mutation, Done done) override {
    statistics_.fault = is_full ? "database x: disk full" : "";
    if (!is_full) return store_->Submit(std::move(mutation), std::move(done));
    ++statistics_.refused;
    store_->Submit(AppendEvents{}, [callback = std::move(done)](absl::Status) mutable {
      std::move(callback)(absl::UnavailableError("disk full"));
    });
  }
  StoreStatistics Statistics() override { return statistics_; }

  bool is_full = false;

 private:
  StoreStatistics statistics_;
};

TEST(StoreWatchTest, AFaultAndItsEndAreEvents) {
  ScratchStore below;
  FaultyStore store(&below);
  ManualClock clock;
  StoreCalls calls(&store);
  EventLog events(&calls, &clock, LiveOptions(ManagerOptions()), [] {});
  StoreWatch watch(&calls, &events, &clock);
  const auto told = [&] {
    calls.AwaitAll();
    return *below.Events({});
  };
  watch.Look();
  store.is_full = true;
  store.Apply(AppendEvents{}).IgnoreError();  // somebody's
  watch.Look();
  clock.Advance(StoreWatch::kRetry);
  watch.Look();
  EXPECT_TRUE(told().empty());
  store.is_full = false;
  clock.Advance(StoreWatch::kRetry / 2);
  watch.Look();  // not yet
  EXPECT_TRUE(told().empty());
  clock.Advance(StoreWatch::kRetry / 2);
  watch.Look();
  ASSERT_EQ(1u, told().size());
  EXPECT_EQ("store.failed", told()[0].kind);
  EXPECT_THAT(told()[0].message, HasSubstr("disk full"));
  watch.Look();
  watch.Look();
  ASSERT_EQ(2u, told().size());
  EXPECT_EQ("store.recovered", told()[1].kind);
  EXPECT_THAT(told()[1].message, HasSubstr("for 20 s 3 changes were refused"));
}

}  // namespace
}  // namespace coppice::store_watch_test
