// Many threads at once: order of answers, entries never oversubscribed, readers beside the writer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/tier.h"
#include "tests/unit/db/store_records.h"

namespace coppice::store_concurrency_test {
namespace {

class StoreConcurrencyTest : public StoreTest {};

constexpr int kCallers = 8;

TEST_F(StoreConcurrencyTest, EntriesAreNeverOversubscribed) {
  Store& store = *store_;
  const int rounds = FullTier() ? 2'000 : 100;
  ASSERT_APPLIED(store.Apply(Capabilities(2, 3)));
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  std::atomic<int64_t> next_id = 1;
  std::atomic<int> inside = 0, granted = 0, wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kCallers; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        const int64_t id = next_id++;
        const absl::Status status = store.Apply(GrantTree{Tree(id, 1, {0, 1})});
        if (status.ok()) {
          ++granted;
          if (++inside > 3) ++wrong;
          for (const EntryUse& use : EntriesOf(store)) wrong += use.entries_taken > 3;
          --inside;
          if (!store.Apply(ReleaseTree{TreeId(id), JobId(1)}).ok()) ++wrong;
        } else if (!absl::IsResourceExhausted(status)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(granted, 0);
  for (const EntryUse& use : EntriesOf(store)) EXPECT_EQ(use.entries_taken, 0u);
}

TEST_F(StoreConcurrencyTest, AnswersComeInOrderOfSubmission) {
  Store& store = *store_;
  constexpr int kEach = 200;
  std::vector<std::vector<int>> answers(kCallers);  // touched by the store's thread alone
  std::vector<std::thread> threads;
  for (int t = 0; t < kCallers; ++t) {
    threads.emplace_back([&, t] {
      for (int n = 0; n < kEach; ++n) {
        store.Submit(AppendEvents{{Event("info", "k", std::to_string(t))}},
                     [&answers, t, n](absl::Status) { answers[t].push_back(n); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_APPLIED(store.Apply(AppendEvents{}));
  for (const std::vector<int>& order : answers) {
    ASSERT_EQ(order.size(), static_cast<size_t>(kEach));
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  }
  EXPECT_EQ(store.Events({.limit = 10'000})->size(), static_cast<size_t>(kCallers * kEach));
}

TEST_F(StoreConcurrencyTest, ReadersSeeWholeMutations) {
  Store& store = *store_;
  const int rounds = FullTier() ? 5'000 : 200;
  ASSERT_APPLIED(store.Apply(Capabilities(4, 1)));
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  std::atomic<bool> done = false;
  std::atomic<int> torn = 0;
  std::thread reader([&] {
    do {
      absl::StatusOr<StoredState> state = store.Load();
      if (!state.ok()) {
        ++torn;
        continue;
      }
      for (const EntryUse& use : state->entries) torn += use.entries_taken != state->trees.size();
    } while (!done);
  });
  for (int64_t id = 1; id <= rounds; ++id) {
    ASSERT_APPLIED(store.Apply(GrantTree{Tree(id, 1, {0, 1, 2, 3})}));
    ASSERT_APPLIED(store.Apply(ReleaseTree{TreeId(id), JobId(1)}));
  }
  done = true;
  reader.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace coppice::store_concurrency_test
