// The thread of leases, when it is kept from running.
#include "daemon/manager/background.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
      const absl::Duration begin = SteadyNow();
      while (SteadyNow() - begin < 2 * Background::kStall) {
      }
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

}  // namespace
}  // namespace coppice::background_test
