// The thread of leases, when it is kept from running.
#include "daemon/manager/background.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace coppice::background_test {
namespace {

absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

absl::Duration ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

// As a thread that is stopped does.
void StandStill(absl::Duration time) {
  std::promise<void> never;
  never.get_future().wait_for(absl::ToChronoNanoseconds(time));
}

// One duty holds it up, as SIGSTOP or a slow disk would; nothing ends before it has said so, and by
// no time that it had not yet looked at.
TEST(BackgroundTest, AStallIsToldBeforeLeasesEnd) {
  std::vector<std::string> done;  // of the background's thread
  std::promise<void> is_over;
  bool is_over_told = false;
  absl::Duration stalled, now;
  Background::Duties duties;
  duties.now = [&] { return now = SteadyNow(); };
  duties.stalled = [&](absl::Duration late) {
    if (is_over_told) return;
    done.push_back(done.empty() ? "stalled before" : "stalled");  // on a machine that is busy
    stalled = late;
  };
  duties.expire = [&](absl::Duration at) {
    EXPECT_EQ(now, at);
    if (done.empty() || done.back() == "stalled before") {
      done.push_back("held up");
      StandStill(2 * Background::kStall);
    } else if (!std::exchange(is_over_told, true)) {
      done.push_back("expire");
      is_over.set_value();
    }
    return absl::ZeroDuration();
  };
  duties.look = duties.flush = [] {};
  Background background(std::move(duties));
  background.Start();
  is_over.get_future().wait();
  background.Stop();
  if (done.front() == "stalled before") done.erase(done.begin());
  EXPECT_THAT(done, testing::ElementsAre("held up", "stalled", "expire"));
  EXPECT_GE(stalled, Background::kStall);
}

// A daemon with much to do ends leases in time, and begins none of them anew for that.
TEST(BackgroundTest, ItsOwnWorkIsNoStall) {
  const absl::Duration kWork = 4 * Background::kStall;
  std::promise<void> is_over;
  absl::Duration stalled, took;
  int expired = 0;  // of the thread of leases
  Background::Duties duties;
  duties.now = SteadyNow;
  duties.stalled = [&](absl::Duration late) {
    if (expired == 1) stalled = late;
  };
  duties.expire = [&](absl::Duration) {
    if (++expired == 1) {
      const absl::Duration steady = SteadyNow(), worked = ThreadTime();
      while (ThreadTime() - worked < kWork) {
      }
      took = SteadyNow() - steady;  // longer on a machine that is busy
    } else if (expired == 2) {
      is_over.set_value();
    }
    return absl::ZeroDuration();
  };
  duties.look = duties.flush = [] {};
  Background background(std::move(duties));
  background.Start();
  is_over.get_future().wait();
  background.Stop();
  EXPECT_LT(stalled, took - kWork + 2 * Background::kStall);
}

TEST(BackgroundTest, WhatTakesLongHoldsUpNoLeases) {
  std::promise<void> is_over, has_begun, looked_at;
  std::future<void> ended = is_over.get_future(), begun = has_begun.get_future();
  bool is_under_way = false;  // of the thread of leases
  int expired = 0;
  Background::Duties duties;
  duties.now = SteadyNow;
  duties.stalled = [](absl::Duration) {};
  duties.expire = [&](absl::Duration) {
    is_under_way =
        is_under_way || begun.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    if (is_under_way && ++expired == 10) is_over.set_value();
    return absl::Milliseconds(1);
  };
  duties.look = [] {};
  duties.flush_every = absl::Milliseconds(1);
  bool was_first = true;
  duties.flush = [&] {
    if (!std::exchange(was_first, false)) return;
    has_begun.set_value();
    ended.wait();  // until leases have been looked at again and again
    looked_at.set_value();
  };
  Background background(std::move(duties));
  background.Start();
  looked_at.get_future().wait();
  background.Stop();
}

}  // namespace
}  // namespace coppice::background_test
