// Agents that come, answer and go on threads of their own while measurements go on: every
// measurement ends, and counts each of its pairs once.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/manager/distances/distance_meter.h"
#include "tests/support/tier.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::distance_meter_race_test {
namespace {

constexpr int kHosts = 8;

// One agent: its link only queues, as a connection does; a thread answers.
class Agent {
 public:
  Agent(DistanceMeter* meter, int host, uint64_t seed)
      : meter_(meter), host_(absl::StrCat("n", host)), random_(seed), thread_([this] { Run(); }) {}
  ~Agent() {
    stop_ = true;
    {
      std::lock_guard lock(line_->mutex);
      line_->changed.notify_all();
    }
    thread_.join();
  }

 private:
  struct Line {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<PingPong> tasks;
  };

  AgentSession Connect() {
    AgentInfo info;
    info.host = host_;
    info.measure_address = "here:1";
    const auto connected = meter_->Connect(info, {[line = line_](const PingPong& task) {
                                                    std::lock_guard lock(line->mutex);
                                                    line->tasks.push_back(task);
                                                    line->changed.notify_all();
                                                  },
                                                  [](const absl::Status&) {}});
    EXPECT_TRUE(connected.ok()) << connected.status();
    return connected->session;
  }

  void Run() {
    AgentSession session = Connect();
    while (!stop_) {
      PingPong task;
      {
        std::unique_lock lock(line_->mutex);
        line_->changed.wait(lock, [this] { return stop_ || !line_->tasks.empty(); });
        if (line_->tasks.empty()) continue;
        task = line_->tasks.front();
        line_->tasks.pop_front();
      }
      const uint64_t mood = random_() % 32;
      if (mood == 0) meter_->Disconnect(session);  // and comes again at once
      if (mood <= 1) session = Connect();
      PingPongOutcome outcome{task.id, mood == 2 ? "no way" : "", 1, 0, 1, 0, 1};
      // Of an earlier session's task there is nothing to say any more.
      if (task.active || mood == 2) static_cast<void>(meter_->TakeOutcome(session, outcome));
    }
    meter_->Disconnect(session);
  }

  DistanceMeter* const meter_;
  const std::string host_;
  std::mt19937_64 random_;
  std::atomic<bool> stop_ = false;
  const std::shared_ptr<Line> line_ = std::make_shared<Line>();
  std::thread thread_;
};

class DistanceMeterRace : public ManagerTest {};

TEST_F(DistanceMeterRace, EveryMeasurementEndsAndCountsEachPairOnce) {
  Boot();
  const auto distance_store = *DistanceStore::Create(&store_);
  DistanceMeter meter(manager_.get(), distance_store.get(), &clock_);
  const uint64_t seed = TestSeed();
  std::vector<std::unique_ptr<Agent>> agents;
  for (int i = 0; i < kHosts; ++i) agents.push_back(std::make_unique<Agent>(&meter, i, seed + i));
  const int wanted = FullTier() ? 2'000 : 100;
  for (int ended = 0; ended < wanted;) {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<absl::StatusOr<MeasureStanding>> done;
    MeasureWatch watch;
    watch.done = [&](absl::StatusOr<MeasureStanding> result) {
      std::lock_guard lock(mutex);
      done = std::move(result);
      changed.notify_all();
    };
    const absl::Status begun = meter.Measure({}, watch);
    if (!begun.ok()) {  // most agents are just coming
      ASSERT_EQ(begun.code(), absl::StatusCode::kFailedPrecondition) << begun;
      std::this_thread::yield();
      continue;
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done.has_value(); });
    ASSERT_TRUE(done->ok()) << done->status();
    const uint32_t pairs = (*done)->pairs + (*done)->failed;
    EXPECT_TRUE(pairs == 28 || pairs == 21 || pairs == 15 || pairs == 10 || pairs == 6 ||
                pairs == 3 || pairs == 1)
        << pairs;
    ++ended;
  }
  agents.clear();
  EXPECT_EQ(meter.connected(), 0u);
  EXPECT_EQ(meter.Expire(), absl::InfiniteDuration());
}

}  // namespace
}  // namespace coppice::distance_meter_race_test
