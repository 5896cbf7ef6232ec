// Many threads at once; run under ThreadSanitizer too. After each storm the books must balance.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "tests/support/tier.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::manager_race_test {
namespace {

class ManagerRaceTest : public ManagerTest {
 protected:
  // Runs `body(thread, random)` on `count` threads.
  template <class Body>
  static void OnThreads(int count, Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([i, &body] {
        std::mt19937_64 random(TestSeed() + static_cast<uint64_t>(i));
        body(i, random);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  static int Rounds(int rounds) { return FullTier() ? 20 * rounds : rounds; }
};

CreateTreeArgs RandomTree(JobId job, std::mt19937_64& random) {
  CreateTreeArgs args;
  args.job = job;
  for (uint32_t rank = 0; rank < 15; ++rank) {  // a host may be missing when the job registers
    if (random() % 2 == 0) args.ranks.push_back(rank);
  }
  if (random() % 2 == 0) args.type = TreeType::kTypeII;
  return args;
}

bool IsExpectedRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsAborted(status) ||
         absl::IsFailedPrecondition(status) || absl::IsNotFound(status);
}

TEST_F(ManagerRaceTest, GrantsReleasesEndsExpiriesAndSweeps) {
  Boot(Options(2));
  std::atomic<int> granted{0};
  std::atomic<bool> over{false};
  std::thread sweeper([&] {
    for (uint32_t i = 0; !over; ++i) {
      FabricShape shape;
      if (i % 2 == 0) shape.missing_hosts = {i % 16};
      port_.Set(SmallFabric(shape));
      EXPECT_TRUE(manager_->Sweep().ok());
      clock_.Advance(absl::Seconds(20));
      manager_->ExpireLeases();
      std::this_thread::yield();
    }
  });
  OnThreads(4, [&](int, std::mt19937_64& random) {
    for (int round = 0; round < Rounds(12); ++round) {
      const auto job = Register(AllHosts());
      ASSERT_TRUE(job.ok()) << job.status();
      const JobId id = job->record->id;
      std::vector<Answer<TreeView>> flights;
      for (int i = 0; i < 8; ++i) flights.push_back(StartCreate(RandomTree(id, random)));
      Answer<uint32_t> end;
      const bool ends_early = random() % 2 == 0;
      if (ends_early) end = StartEnd(id);
      for (Answer<TreeView>& flight : flights) {
        const auto view = flight.Get();
        if (!view.ok()) {
          EXPECT_TRUE(IsExpectedRefusal(view.status())) << view.status();
        } else if (++granted % 3 == 0) {
          const absl::Status released = Release(view->record->id).status();
          EXPECT_TRUE(released.ok() || absl::IsNotFound(released)) << released;
        }
      }
      if (ends_early) {
        EXPECT_TRUE(end.Get().ok());
      }
      manager_->KeepAlive(id).IgnoreError();
      if (random() % 2 == 0) {
        EXPECT_TRUE(End(id).ok());
      }
    }
  });
  over = true;
  sweeper.join();
  ExpectConserved();
  for (const JobView& job : manager_->ListJobs(JobId(), 1u << 20)) {
    EXPECT_TRUE(End(job.record->id).ok());
  }
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  EXPECT_EQ(0u, manager_->Counts().granted_trees);
  EXPECT_GT(granted, 0);
  ExpectConserved();
}

TEST_F(ManagerRaceTest, TheSameRequestFromManyThreadsGrantsOneTree) {
  Boot();
  const JobId job = NewJob();
  for (int round = 0; round < Rounds(20); ++round) {
    CreateTreeArgs args = TreeOf(job);
    args.request_id = "r" + std::to_string(round);
    std::vector<TreeId> ids(4);
    OnThreads(4, [&](int thread, std::mt19937_64&) {
      const auto view = Create(args);
      ASSERT_TRUE(view.ok()) << view.status();
      ids[thread] = view->record->id;
    });
    EXPECT_EQ(std::vector<TreeId>(4, ids[0]), ids);
    EXPECT_EQ(1u, manager_->Counts().granted_trees);
    ASSERT_TRUE(Release(ids[0]).ok());
  }
  ExpectConserved();
}

TEST_F(ManagerRaceTest, AStoreThatFailsAtRandomLosesNoEntry) {
  Boot(Options(3));
  std::atomic<uint64_t> count{0};
  store_.RefuseWhere([&](const Mutation& mutation) {
    if (std::holds_alternative<PutJob>(mutation)) return absl::OkStatus();
    return ++count % 3 == 0 ? absl::UnavailableError("now and then") : absl::OkStatus();
  });
  OnThreads(4, [&](int, std::mt19937_64& random) {
    const JobId job = NewJob();
    std::vector<TreeId> mine;
    for (int i = 0; i < Rounds(40); ++i) {
      if (mine.empty() || random() % 2 == 0) {
        const auto view = Create(RandomTree(job, random));
        if (view.ok()) mine.push_back(view->record->id);
      } else if (Release(mine.back()).ok()) {
        mine.pop_back();
      }
    }
    EXPECT_EQ(mine.size(), manager_->GetJob(job)->tree_count);
  });
  store_.Obey();
  ExpectConserved();
}

TEST_F(ManagerRaceTest, ThreadsOfTheManagerAndCallersTogether) {
  ManagerOptions options = Options();
  options.sweep_periods.full = absl::Milliseconds(1);
  Boot(options, false);
  manager_->Start();
  ASSERT_TRUE(manager_->Sweep().ok());
  OnThreads(3, [&](int, std::mt19937_64& random) {
    const JobId job = NewJob();
    for (int i = 0; i < Rounds(30); ++i) {
      const auto view = Create(RandomTree(job, random));
      EXPECT_TRUE(view.ok() || IsExpectedRefusal(view.status())) << view.status();
      manager_->Counts();
      manager_->Entries();
      manager_->ListTrees(job, TreeId(), 10);
      if (view.ok()) {
        EXPECT_TRUE(Release(view->record->id).ok());
      }
    }
    EXPECT_TRUE(End(job).ok());
  });
  manager_->Stop();
  ExpectConserved();
}

}  // namespace
}  // namespace coppice::manager_race_test
