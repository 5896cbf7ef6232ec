// The jobs that the agent keeps alive: their leases are renewed for as long as one of the job's
// processes on this node lives, whatever becomes of connections, of the agent, or of the daemon.
//
//              renewed                 processes gone
//   Hold --> KEPT <--+ each third ---------------------+--> ENDING --> EndJob until it is answered
//             |      |  of the lease                   |
//             +------+                                 +--> let go, if nobody asked for an end
//             |
//             +--> let go: the daemon says that the job is over, or is another's for longer than
//                  the lease is (an agent that may not speak for users just now is told so, too)
//
// Everything is done in the name of the user who asked, so nobody holds or ends another's job. What
// is held is in the hold file before Hold is answered.
#ifndef COPPICE_AGENTS_NODE_JOB_KEEPER_H_
#define COPPICE_AGENTS_NODE_JOB_KEEPER_H_

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/node/daemon_link.h"
#include "agents/node/event_loop.h"
#include "agents/node/hold_file.h"
#include "agents/node/local_limits.h"
#include "agents/node/process_identity.h"
#include "client/library/retry_pause.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

// Belongs to the loop.
class JobKeeper final {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // Goes on with `jobs`, which the file holds. Loop and link outlive it.
  JobKeeper(EventLoop* loop, DaemonLink* link, HoldFile file, const std::vector<HeldJob>& jobs);
  ~JobKeeper();

  // Holds a job, or adds processes to one that is held. `done` is called once, on the loop, unless
  // the keeper goes first. INVALID_ARGUMENT: no job, or no such process of the caller's.
  // RESOURCE_EXHAUSTED: too many (hold_file.h; one that has ended counts until it is looked at
  // next). UNAVAILABLE: it cannot be noted. FAILED_PRECONDITION: the job is over. Else as
  // Jobs.KeepAlive.
  void Hold(const LocalCaller& caller, const v1::HoldJobRequest& request, Done done);

  size_t size() const { return jobs_.size(); }

 private:
  struct Kept {
    HeldJob job;
    bool is_ending = false;
    EventLoop::Timer timer{};  // of the next renewal or try to end it
    std::shared_ptr<ForwardedCall> call{};
    std::chrono::milliseconds lease{0};  // as last answered; 0: not yet
    RetryPause pause;
    std::optional<std::chrono::steady_clock::time_point> denied_since{};
  };
  using Answer = std::function<void(const grpc::Status&, const std::string& message)>;

  // A change of jobs_ that is not in the file, and who waits for it to be.
  struct Unsaved {
    std::string id;
    std::optional<HeldJob> before;  // null: it was not held
    Done done;
  };
  // Of one user that are being asked for.
  struct Asked {
    size_t requests = 0, processes = 0;
  };

  absl::Status Admit(const LocalCaller& caller, const v1::HoldJobRequest& request) const;
  // Of all jobs but that one.
  HoldShares SharesBeside(const std::string& id, const std::string& user) const;
  // Counts the request until its `done` is called.
  Done Count(const LocalCaller& caller, const v1::HoldJobRequest& request, Done done);
  void OnChecked(const LocalCaller& caller, const v1::HoldJobRequest& request,
                 const grpc::Status& status, const std::string& message, const Done& done);
  void Keep(HeldJob job, std::chrono::milliseconds lease, const Done& done);
  // A question of the agent's own to the daemon, in a user's name. `answer` is called once, on the
  // loop, with the last message ("": none), unless the call is abandoned or this is gone.
  std::shared_ptr<ForwardedCall> Ask(const char* method, const std::string& user,
                                     const google::protobuf::MessageLite& request,
                                     std::chrono::milliseconds timeout, Answer answer);
  void Schedule(Kept& kept, std::chrono::milliseconds wait);
  // Renews, or ends.
  void Act(const std::string& id);
  void OnRenewed(const std::string& id, const grpc::Status& status, const std::string& message);
  void OnEnded(const std::string& id, const grpc::Status& status);
  void LookAtProcesses();
  void OnLooked(const std::set<ProcessIdentity>& gone);
  void LetGo(const std::string& id);
  void Add(const HeldJob& job, std::chrono::milliseconds first_renewal);
  void Stop(Kept& kept);
  // Asking again cannot help.
  static bool IsForGood(Kept& kept, const grpc::Status& status);
  // Once for all changes of a pass of the loop.
  void SaveSoon();
  void SaveNow();
  absl::Status Save() const;

  EventLoop* const loop_;
  DaemonLink* const link_;
  const HoldFile file_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  LoopTurns turns_;          // of looks at processes
  bool is_looking_ = false;  // LookAtProcesses is under way, or its timer runs
  EventLoop::Timer look_;
  std::map<std::string, Kept> jobs_;  // by id
  uint64_t last_check_ = 0;
  std::map<uint64_t, std::shared_ptr<ForwardedCall>> checks_;
  std::map<std::string, Asked> asked_;  // by user
  bool is_save_due_ = false;
  std::vector<Unsaved> unsaved_;  // in order
};

// When a lease is renewed, and how long a try may take, so that two of them may fail before it runs
// out, however short it is:
//
//   0        1/3   1/2   2/3   5/6    1
//   |---------|-----|-----|-----|-----|
//    wait      try   pause try   pause  of the lease

using LeaseTime = std::chrono::milliseconds;

inline constexpr LeaseTime kMaxTry{10'000};
inline constexpr LeaseTime kMaxRenewalPause{5'000};
// However short the lease: less is a busy loop.
inline constexpr LeaseTime kMinRenewalTime{100};
// Taken for the lease of a job that has not been renewed since the agent started.
inline constexpr LeaseTime kUnknownLease{6'000};

inline LeaseTime RenewalWait(LeaseTime lease) { return std::max(lease / 3, kMinRenewalTime); }

inline LeaseTime SixthOf(LeaseTime lease, LeaseTime most) {
  const LeaseTime known = lease.count() > 0 ? lease : kUnknownLease;
  return std::clamp(known / 6, kMinRenewalTime, most);
}
inline LeaseTime MaxTry(LeaseTime lease) { return SixthOf(lease, kMaxTry); }
inline LeaseTime MaxPause(LeaseTime lease) { return SixthOf(lease, kMaxRenewalPause); }

// Looks at many processes of the node, in turns of the loop (event_loop.h).

// Which of them have gone. Each is looked at once, however often it is named. `done` is called
// once, in the last step, unless `turns` goes first. `is_gone` is asked of each.
void FindGone(std::vector<ProcessIdentity> processes,
              std::function<void(const std::set<ProcessIdentity>& gone)> done, LoopTurns& turns,
              std::function<bool(const ProcessIdentity&)> is_gone = IsGone);

// The job of a checked request (hold_file.h) with the processes as they are now, each once; the
// caller's own if it names none. `done` as above; INVALID_ARGUMENT: a process is not there, or not
// the caller's. UNAVAILABLE: one cannot be looked at.
void FindHeldJob(const LocalCaller& caller, const v1::HoldJobRequest& request,
                 std::function<void(absl::StatusOr<HeldJob>)> done, LoopTurns& turns);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_JOB_KEEPER_H_
