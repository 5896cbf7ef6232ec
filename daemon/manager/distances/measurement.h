// One measurement under way: what was asked for, which pairs come when, and how far it is. Sends
// nothing and knows no agents: distance_meter.h does.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_MEASUREMENT_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_MEASUREMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/manager/distances/distance_shelf.h"
#include "daemon/manager/distances/round_schedule.h"

namespace coppice {

struct MeasureArgs {
  static constexpr uint32_t kMostComplete = 1024;
  static constexpr uint32_t kMostLatencySamples = 100'000;
  static constexpr uint32_t kMostBandwidthSamples = 10'000;
  static constexpr uint32_t kMostBandwidthBytes = 256 << 20;

  std::vector<std::string> hosts;  // none: all that have an agent; named twice counts once
  uint32_t complete_up_to = 64;
  uint32_t latency_samples = 100;
  uint32_t bandwidth_samples = 10;
  uint32_t bandwidth_bytes = 1 << 20;
  // None: each pair over verbs where both agents have them and they work, else over TCP.
  std::optional<Transport> transport;
};

// INVALID_ARGUMENT, naming the number: 0, or more than the most of it.
absl::Status CheckMeasureArgs(const MeasureArgs& args);

// How long a pair may take: what its samples take over a way of 10 ms and 100 Mb/s, and ten seconds
// to find each other.
absl::Duration PairTimeout(const MeasureArgs& args);

struct MeasureStanding {
  uint32_t round = 0, rounds = 0;     // done, in all
  uint32_t pairs = 0, failed = 0;     // measured, not
  uint32_t over_verbs = 0;            // of the pairs measured
  std::vector<std::string> failures;  // in words, the first 100; only in the end
  std::vector<std::string> remarks;   // on pairs that were measured, alike
  absl::Duration elapsed;
};

// How a caller follows. `is_cancelled` is asked between rounds and from time to time; the others
// are quick.
struct MeasureWatch {
  std::function<void(const MeasureStanding&)> progress;       // after each round; may be null
  std::function<bool()> is_cancelled;                         // may be null
  std::function<void(absl::StatusOr<MeasureStanding>)> done;  // once
};

// Not thread-safe.
class Measurement final {
 public:
  static constexpr size_t kMostFailures = 100;

  // `rounds` are numbers of `hosts`; `failures` are told beside those of pairs.
  Measurement(MeasureArgs args, MeasureWatch watch, std::vector<std::string> hosts, Rounds rounds,
              std::vector<std::string> failures, absl::Duration now);

  const MeasureArgs& args() const { return args_; }
  const MeasureWatch& watch() const { return watch_; }
  const std::vector<std::string>& hosts() const { return hosts_; }

  // The pairs of the round that begins now, which all must be answered by the deadline. Empty: all
  // are over. Only when nothing is under way.
  std::vector<HostPair> NextRound(absl::Duration now);
  // A pair of the round is over, with this error or, if that is empty, measured. True: it was the
  // round's last.
  bool EndPair(const HostPair& hosts, const std::string& error);
  // Of a pair that was measured, before its end: over what, and what there is to say of it.
  void NoteMeasured(const HostPair& hosts, Transport transport, const std::string& remark);
  bool is_late(absl::Duration now) const { return under_way_ > 0 && now >= deadline_; }
  absl::Duration deadline() const { return deadline_; }
  // Without the failures.
  MeasureStanding Standing(absl::Duration now) const;
  MeasureStanding Summary(absl::Duration now) const;

 private:
  const MeasureArgs args_;
  const MeasureWatch watch_;
  const std::vector<std::string> hosts_;
  const Rounds rounds_;
  const absl::Duration begun_;
  std::vector<std::string> failures_, remarks_;
  size_t next_ = 0;  // round
  size_t under_way_ = 0;
  absl::Duration deadline_ = absl::InfiniteDuration();
  uint32_t pairs_ = 0, failed_ = 0, over_verbs_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_MEASUREMENT_H_
