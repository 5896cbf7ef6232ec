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

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/store.h"

namespace coppice {

// Who measures with whom, and when: rounds in each of which every node is in at most one pair, so
// that all pairs of a round can run at once (Wang 2015, 4.2, "single-circle-match": n rounds, n/2
// pairs each).
//
// Complete: the circle method. Node n-1 (of an even number; of an odd one an empty chair) stands
// still, the others go around; in round r whoever faces each other is a pair:
//
//        round 0            round 1
//      0  1  2  | 7       6  0  1  | 7          i and j meet in the round r with i + j = 2r
//      6  5  4  3         5  4  3  2            (mod n-1), i meets n-1 in round i
//
// So every pair meets exactly once: n-1 rounds of n/2 pairs for an even n, n rounds for an odd one
// in each of which another node rests. That is the least that there can be.
//
// Sampled: for many nodes every level of the fabric (how many links two nodes are apart) has a few
// rounds to itself, each a maximal matching of pairs of just that level; nodes that no level paired
// have a partner of any level in the end.

using HostPair = std::pair<std::string, std::string>;  // in order, as bytes
using NodePair = std::pair<uint32_t, uint32_t>;        // the lower number first
using PairRounds = std::vector<std::vector<NodePair>>;

// Every pair of nodes 0..n-1 once. None for n < 2. O(n^2).
PairRounds CompleteRounds(uint32_t n);

// Groups of nodes that are equally far from all others, and how far groups are from each other.
struct NodeLevels {
  std::vector<uint32_t> group;  // [node] from 0
  uint32_t group_count = 0;
  // Of two nodes of these groups, also of one group; symmetric.
  std::function<uint32_t(uint32_t a, uint32_t b)> level;
};

struct SampleOptions {
  uint32_t rounds_per_level = 4;
  uint64_t seed = 1;
};

// Some pairs of each level, at least min(rounds_per_level, those that there are) of each, and at
// least one for each node, each pair once; as long as there are at most 1024 groups: beyond that
// the search for a partner gives up after so many, and rare levels may be missed. At most
// rounds_per_level * levels + 2 rounds. O(rounds * groups * min(groups, 1024) + nodes * rounds).
PairRounds SampledRounds(const NodeLevels& nodes, const SampleOptions& options);

struct MeasureArgs {
  static constexpr uint32_t kMaxComplete = 1024;
  static constexpr uint32_t kMaxLatencySamples = 100'000;
  static constexpr uint32_t kMaxBandwidthSamples = 10'000;
  static constexpr uint32_t kMaxBandwidthBytes = 256 << 20;

  std::vector<std::string> hosts;  // none: all that have an agent; named twice counts once
  uint32_t complete_up_to = 64;
  uint32_t latency_samples = 100;
  uint32_t bandwidth_samples = 10;
  uint32_t bandwidth_bytes = 1 << 20;
  // None: each pair over verbs where both agents have them and they work, else over TCP.
  std::optional<Transport> transport;
  PartitionNum partition = {};  // over verbs; 0: each pair's own (Partitions::Between)
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
  static constexpr size_t kMaxFailures = 100;

  // `rounds` are numbers of `hosts`; `failures` are told beside those of pairs.
  Measurement(MeasureArgs args, MeasureWatch watch, std::vector<std::string> hosts,
              PairRounds rounds, std::vector<std::string> failures, absl::Duration now);

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
  const PairRounds rounds_;
  const absl::Duration begun_;
  std::vector<std::string> failures_, remarks_;
  size_t next_ = 0;  // round
  size_t under_way_ = 0;
  absl::Duration deadline_ = absl::InfiniteDuration();
  uint32_t pairs_ = 0, failed_ = 0, over_verbs_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_MEASUREMENT_H_
