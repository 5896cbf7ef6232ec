// A wall clock that steps to and fro by hours while the daemon counts, leases and writes history:
// rates, leases and lengths are the steady clock's, only labels step.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "daemon/manager/channel_states.h"
#include "tests/support/tier.h"
#include "tests/system/injected_loads.h"
#include "tests/system/living_daemon.h"

namespace coppice::live_clock_test {
namespace {

constexpr std::array kSteps = {absl::Hours(1), absl::Hours(-3), absl::Seconds(-7),
                               absl::Hours(24 * 400), absl::Hours(-24 * 800)};

class LiveClock : public LivingDaemon {
 protected:
  absl::StatusOr<JobId> Lease(const std::string& host, absl::Duration lease) {
    RegisterJobArgs args;
    args.endpoints = {host};
    args.lease = lease;
    const auto job = AwaitAnswer<JobView>(
        [&](auto done) { manager_->RegisterJob(std::move(args), std::move(done)); });
    if (!job.ok()) return job.status();
    return job->record->id;
  }

  // Loads, while the clock steps before each of the two readings.
  void StepUnderLoad(absl::Duration step) {
    InjectedLoads loads(manager_.get(), gate_.get(),
                        {[this](const std::string& command) { Console(command); },
                         [&](const std::string& what, const std::function<bool()>& condition) {
                           clock_.Step(step);
                           Await(what, condition);
                         }},
                        &random_);
    EXPECT_EQ(12u, loads.Check(12));
  }

  // Of one port: in order, and nothing that the link cannot carry.
  std::vector<HistoryPoint> History(HistoryResolution resolution) {
    HistoryQuery query;
    query.node = place_.first;
    query.port = place_.second.value();
    query.resolution = resolution;
    const auto points = manager_->PortHistory(query);
    EXPECT_TRUE(points.ok()) << points.status();
    if (!points.ok()) return {};
    for (size_t i = 0; i < points->size(); ++i) {
      const HistoryPoint& point = (*points)[i];
      if (i > 0) {
        EXPECT_LT((*points)[i - 1].start, point.start);
      }
      EXPECT_GE(point.length, absl::ZeroDuration());
      const double most = capacity_ * absl::ToDoubleSeconds(point.length + absl::Milliseconds(1));
      EXPECT_LE(static_cast<double>(point.sent_bytes), most);
      EXPECT_LE(static_cast<double>(point.received_bytes), most);
      EXPECT_LE(static_cast<double>(point.peak_sent_per_second), 1.01 * capacity_);
    }
    return *points;
  }

  // The steady time of the last reading that passed, with the gate closed behind it.
  absl::Duration HoldAndRead() {
    gate_->Hold();
    gate_->Let();
    Await("a reading", [&] { return gate_->IsTaken(); });
    return gate_->Readings().at(place_).when;
  }

  static absl::Duration LengthOf(const std::vector<HistoryPoint>& points) {
    absl::Duration length;
    for (const HistoryPoint& point : points) length += point.length;
    return length;
  }

  std::mt19937_64 random_{TestSeed()};
  CounterGate::Place place_;
  double capacity_ = 0;  // bytes a second
};

TEST_F(LiveClock, OnlyLabelsStep) {
  ForgetAtOnce();
  ASSERT_NO_FATAL_FAILURE(
      Begin({absl::Minutes(5), absl::Milliseconds(100), absl::Milliseconds(100)}));
  ASSERT_NO_FATAL_FAILURE(AwaitSettled());
  const Fabric& fabric = *manager_->fabric()->snapshot->fabric;
  const ChannelIndex channel = fabric.switch_channels(SwitchIndex(0))[0].index;
  place_ = BeginOf(fabric, channel);
  capacity_ = static_cast<double>(fabric.capacity_gbps(channel)) * 1e9 / 8;
  const auto lasting = Lease("n0001", absl::Hours(1));
  ASSERT_TRUE(lasting.ok()) << lasting.status();

  const absl::Duration began = HoldAndRead();
  const absl::Duration length = LengthOf(History(HistoryResolution::kReading));
  gate_->Open();
  for (const absl::Duration step : kSteps) {
    SCOPED_TRACE(absl::FormatDuration(step));
    const auto brief = Lease("n0002", absl::Seconds(1));
    ASSERT_TRUE(brief.ok()) << brief.status();
    StepUnderLoad(step);
    EXPECT_EQ(JobState::kActive, manager_->GetJob(*lasting)->record->state);
    ASSERT_NO_FATAL_FAILURE(Await("the end of a lease", [&] {
      return manager_->GetJob(*brief)->record->state == JobState::kExpired;
    }));
  }
  const absl::Duration elapsed = HoldAndRead() - began;
  const std::vector<HistoryPoint> readings = History(HistoryResolution::kReading);
  // Rows are in whole milliseconds.
  const absl::Duration rounding = absl::Milliseconds(1) * static_cast<int64_t>(readings.size());
  EXPECT_LE(absl::AbsDuration(LengthOf(readings) - length - elapsed),
            rounding + absl::Milliseconds(20));
  gate_->Open();
  EXPECT_GT(readings.size(), 10u);
  History(HistoryResolution::kMinute);
  const absl::Duration left = manager_->GetJob(*lasting)->lease_left;
  EXPECT_GT(left, absl::Minutes(55));
  EXPECT_LE(left, absl::Hours(1));
  int64_t last = 0;
  for (const EventRecord& event : EventsOf("")) EXPECT_LT(std::exchange(last, event.id), event.id);
  ASSERT_NO_FATAL_FAILURE(ExpectAllRight());
}

}  // namespace
}  // namespace coppice::live_clock_test
