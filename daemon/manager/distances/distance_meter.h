// The use case of measuring: agents come and go, measurements send them pairs round by round, and
// what they answer goes to the distance_store as it comes.
//
//   Begin --> round 0: tasks to both sides of each pair --> outcomes --> round 1 --> ... --> done
//                           |  an agent vanished, or said nothing in time:
//                           +--> the pair has failed, in words; the round goes on
//
// A host is in one measurement at a time, and so in one pair at a time. Nothing waits on a thread:
// what agents say and the one timer drive it all. Knows neither gRPC nor what a ping-pong is.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_METER_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_METER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/manager/background.h"
#include "daemon/manager/distances/agent_table.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/manager/distances/measurement.h"
#include "daemon/manager/manager.h"

namespace coppice {

// Thread-safe. Callbacks run without locks, on the thread of whoever calls or on the timer's.
class DistanceMeter final {
 public:
  // All three outlive it.
  DistanceMeter(Manager* manager, DistanceStore* distance_store, const Clock* clock)
      : manager_(manager), distance_store_(distance_store), clock_(clock) {}
  ~DistanceMeter();

  // The timer that ends pairs that nobody answers. Both idempotent. Stop joins, ends measurements
  // with UNAVAILABLE and refuses new ones.
  void Start();
  void Stop();

  struct Connected {
    AgentSession session = 0;
    std::string host;       // the fabric's
    uint64_t database = 0;  // that it is served from now
  };
  // The agent of a host, which takes the place of another that came as the same one, whose link is
  // ended with ABORTED. INVALID_ARGUMENT: a bad host name, port or address; NOT_FOUND: the fabric
  // holds neither; PERMISSION_DENIED: `identity` is another host's; ALREADY_EXISTS: an agent of
  // another name is connected for the host; then nothing has changed. UNAVAILABLE: no fabric yet.
  // `link` is not called before this has returned, unless a measurement begins meanwhile.
  absl::StatusOr<Connected> Connect(AgentInfo info, AgentLink link, AgentIdentity identity = {});
  // Its pairs fail. A session that is over is left alone.
  void Disconnect(AgentSession session);
  // What one side has to say of its pair. INVALID_ARGUMENT: no task of that session, or no
  // measurement; what comes too late is dropped.
  absl::Status TakeOutcome(AgentSession session, const PingPongOutcome& outcome);

  std::vector<AgentView> Agents(absl::string_view after, size_t limit) const;
  size_t connected() const;

  // Status codes: proto/coppice/v1/agents.proto. OK: `watch.done` will be called once. It and
  // `watch.progress` may be called before this returns.
  absl::Status Measure(const MeasureArgs& args, MeasureWatch watch);

  // What the timer does: fails the pairs that are late and ends what was cancelled; returns the
  // time until it is due again.
  absl::Duration Expire();

 private:
  using Actions = std::vector<std::function<void()>>;  // to be done without the lock

  struct Task {
    std::shared_ptr<Measurement> measurement;
    HostPair hosts;
    AgentSession active = 0, passive = 0;
  };

  // Those that can be measured, in order; the others are told as failures.
  absl::StatusOr<std::vector<std::string>> Participants(const Fabric& fabric,
                                                        const MeasureArgs& args,
                                                        std::vector<std::string>& failures) const;
  // RESOURCE_EXHAUSTED: another measurement has one of these, which are in order.
  absl::Status CheckFree(const std::vector<std::string>& hosts) const;
  // Sends the next round, and the one after it if nobody of that is there, and so on to the end.
  void Proceed(const std::shared_ptr<Measurement>& measurement, Actions& actions);
  void SendPair(const std::shared_ptr<Measurement>& measurement, const HostPair& hosts,
                Actions& actions);
  // Of their first ports. 0: none is known in which the two can speak.
  // Over verbs, as asked for or their own; 0: that of index 0, as tables are not known. An error:
  // in none that they may use they can speak.
  absl::StatusOr<PartitionNum> PartitionOf(const MeasureArgs& args, const HostPair& hosts) const;
  void EndTask(uint64_t id, const std::string& error, Actions& actions);
  void EndPair(const std::shared_ptr<Measurement>& measurement, const HostPair& hosts,
               const std::string& error, Actions& actions);
  // Tells the agents to stop what is under way.
  void EndMeasurement(const std::shared_ptr<Measurement>& measurement, const absl::Status& status,
                      Actions& actions);
  void FailTasksOf(AgentSession session, absl::string_view why, Actions& actions);
  void FailLate(const std::shared_ptr<Measurement>& measurement, Actions& actions);
  void Loop();
  static void Run(Actions& actions);

  Manager* const manager_;
  DistanceStore* const distance_store_;
  const Clock* const clock_;

  // std, not absl: ThreadSanitizer does not see through Debian's Abseil.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  AgentTable agents_;
  std::vector<std::shared_ptr<Measurement>> measurements_;  // under way
  absl::flat_hash_map<uint64_t, Task> tasks_;               // that are not answered
  absl::flat_hash_map<AgentSession, uint64_t> task_of_;
  absl::flat_hash_map<AgentSession, std::deque<uint64_t>> given_;  // the last of them
  uint64_t last_task_ = 0;
  bool closed_ = false, woken_ = false;

  LoopThread timer_{mutex_, changed_};
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_METER_H_
