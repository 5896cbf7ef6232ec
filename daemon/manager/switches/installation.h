// Trees into switches, all or nothing: one installation gives each of its trees to each of their
// serving switches and is done when the last has answered, or failed when the first refuses, goes
// away or is late; then whoever has taken part of it is told to remove that. Nothing waits on a
// thread: what switches say and one timer drive it.
//
//   Install --entries--> switches --results--> all OK: done
//               |            \--refusal, gone, late--> removes to all --> done, with who it was
//               |
//        held from here on until Remove, whether or not the switch is connected: what a hello is
//        answered with, and what is installed again where it is lacking
//
// A switch that goes away is waited for; then, or when it says that a group broke, the trees are
// handed to whoever mends them. Knows neither gRPC nor planners, and the store only by its records.
#ifndef COPPICE_DAEMON_MANAGER_SWITCHES_INSTALLATION_H_
#define COPPICE_DAEMON_MANAGER_SWITCHES_INSTALLATION_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/clock.h"
#include "daemon/manager/background.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/fabric_events.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/switches/switch_table.h"

namespace coppice {

// 16 bytes of the system's random numbers, which nobody can guess. INTERNAL: it gives none.
absl::StatusOr<std::string> NewInstallKey();

// UNAVAILABLE: the daemon is shutting down.
absl::Status InstallerIsClosed();

// A switch that kept an installation from being done, and why, in words.
struct RefusingSwitch {
  Guid guid;
  std::string words;
  bool has_gone = false;  // it refused nothing, its agent went away
};

struct InstallOutcome {
  // ABORTED: some switch refused, was late or went away, and `refusing` names them. Else it is
  // nobody's fault: UNAVAILABLE, the daemon is shutting down.
  absl::Status status;
  std::vector<RefusingSwitch> refusing;
};

// Whether the serving switches of a tree speak, and on what terms they would carry it.
struct CarriageOffer {
  enum class Speak : uint8_t { kNone, kSome, kAll };
  Speak speak = Speak::kNone;
  std::string silent;    // kSome: one that does not, "switch 0002c90200400001"
  CarriageRecord terms;  // kAll; without a key
};

// Thread-safe. A link's functions are called with its lock held, so that a switch hears of a group
// in the order in which things happen to it; callbacks run without it, on the thread of whoever
// brings the last answer, or that a switch has gone, or on the timer's: they must be quick.
class SwitchInstaller final {
 public:
  static constexpr absl::Duration kAnswerWithin = absl::Seconds(2);
  // How long trees wait for a switch that went away, and for one of an earlier run of the daemon,
  // whose agent may be between two attempts to connect.
  static constexpr absl::Duration kPatience = absl::Seconds(5);
  static constexpr absl::Duration kRestartPatience = absl::Seconds(60);

  using Done = absl::AnyInvocable<void(InstallOutcome)>;
  // Trees whose switches do not carry them any more (WhyLost). Called without locks.
  using OnLost = std::function<void(const std::vector<TreeId>&)>;

  // Both outlive it.
  SwitchInstaller(EventLog* events, const Clock* clock, OnLost on_lost)
      : events_(events), clock_(clock), on_lost_(std::move(on_lost)) {}
  ~SwitchInstaller() { Stop(); }

  // The timer. Both idempotent. Stop joins it and ends installations with UNAVAILABLE, and until
  // Start new ones, too; nothing is lost any more, and whoever goes is not away: it goes because
  // the daemon does, and the next one waits for it.
  void Start();
  void Stop();
  // What the timer does: fails what is late, gives up who is gone, tells who is steady again;
  // returns the time until it is due again.
  absl::Duration Expire();

  // --- Connections --- (of hellos that were checked)
  // ALREADY_EXISTS: the switch's agent is connected as another one than `identity`.
  absl::Status CheckPlace(Guid guid, const std::string& identity) const;
  struct Connected {
    SwitchSession session = 0;
    std::vector<SwitchGroup> keep;  // all that it shall hold; what it lacks follows as installs
  };
  // The switch's agent, which takes the place of another, whose link is ended with ABORTED.
  Connected Connect(SwitchHello hello, SwitchLink link, std::string identity);
  // Its installations fail, and its trees begin to wait. Nullopt: the session is over already, or
  // Stop was called.
  std::optional<Guid> Disconnect(SwitchSession session);
  // Nullopt as Disconnect.
  std::optional<Guid> GuidOf(SwitchSession session) const;
  // `error` empty: installed. INVALID_ARGUMENT: never a task of that session; what comes too late
  // is dropped.
  absl::Status TakeResult(SwitchSession session, uint64_t id, const std::string& error);
  void TakeReport(SwitchSession session, SwitchReport report);

  // --- Trees ---
  // What their present switches offer a tree of that shape.
  CarriageOffer OfferFor(const TreeRecord& record) const;
  // All of these, which have keys and ids, or none. `done` is called once, maybe before this
  // returns. From its call on the trees are held or not held, as the outcome says.
  void Install(std::vector<CarriedTree> trees, Done done);
  // The same, and waits: kAnswerWithin at most. Not on a thread that brings results.
  InstallOutcome InstallAndWait(std::vector<CarriedTree> trees);
  // A tree that an earlier run was granted.
  void Restore(CarriedTree tree);
  // The switches are not to hold it any more: it is not granted, or another revision is. Whoever
  // has taken a later one has lost it with that. If an earlier one is still to be held, that is
  // lost, as the switches gave it away for this. One that is not to be held is left alone.
  void Remove(const SwitchGroup& group);
  // The same of a tree that is broken and may not be held again at this revision: it is lost from
  // now until Remove. So others may be given its entries before it is known what becomes of it.
  void Abandon(const SwitchGroup& group);
  // Why the tree's switches do not carry it any more, in words; nullopt: they do, it is waited for,
  // or none ever did.
  std::optional<std::string> WhyLost(const TreeRecord& record) const;
  // Whether a switch that carries it is away and may be back in time.
  bool LacksSwitch(const TreeRecord& record) const;
  // Its trees do not wait for it any more.
  bool HasGivenUp(Guid guid) const;
  // A serving switch does not speak now, and did before.
  bool HasLost(const TreeRecord& record) const;
  // So that nothing is lost yet.
  bool IsWaitedFor(const TreeRecord& record) const {
    return !WhyLost(record) && LacksSwitch(record);
  }
  // What the switch said of itself, without its groups; nullopt: it is not connected.
  std::optional<SwitchHello> HelloOf(Guid guid) const;

  std::vector<SwitchView> List(Guid after, size_t limit) const;
  SwitchNumbers numbers() const;

 private:
  using Actions = std::vector<std::function<void()>>;  // to be done without the lock
  using TaskKey = std::pair<SwitchSession, uint64_t>;
  // Under way.
  struct Installation {
    uint64_t number = 0;  // in the order of beginning
    std::vector<SwitchGroup> groups;
    std::set<Guid> switches;
    size_t unanswered = 0;
    std::vector<TaskKey> tasks;  // that were sent
    absl::Duration until;        // Clock::Monotonic
    Done done;
  };
  using InstallationPtr = std::shared_ptr<Installation>;
  struct Task {
    SwitchGroup group;
    Guid guid;
    InstallationPtr installation;  // null: of a tree that is held already
  };

  static void Run(Actions& actions);
  // All with mutex_ held.
  void Send(SwitchTable::Switch& one, const SwitchEntry& entry, InstallationPtr installation);
  // What ends an installation before anything is sent; nullopt: nothing.
  std::optional<InstallOutcome> WhyNot(const std::vector<CarriedTree>& trees) const;
  // Sends what the switch lacks and can be told; `holds` is ascending. Of a tree that it holds at a
  // later revision than it is to, it lacks nothing.
  void SendLacking(Guid guid, const std::vector<SwitchGroup>& holds);
  // What waited for the address of that switch.
  void SendToChildrenOf(Guid guid);
  void Leave(Guid guid, SwitchSession session, Actions& actions);
  void Finish(const InstallationPtr& installation, InstallOutcome outcome, Actions& actions);
  void Fail(const InstallationPtr& installation, std::vector<RefusingSwitch> refusing,
            const absl::Status& status, Actions& actions);
  void RemoveLocked(const SwitchGroup& group);
  void Lose(const SwitchGroup& group, std::string why, std::vector<TreeId>& lost);
  void TellLost(std::vector<TreeId> lost, Actions& actions);
  void TellEvent(absl::string_view kind, Guid guid, std::string message, Actions& actions);
  // The same of an agent that comes or goes, unless it does so all the time.
  void TellChange(absl::string_view kind, Guid guid, std::string message, Actions& actions);
  void Append(std::vector<EventRecord> events, Actions& actions);
  void Loop();

  EventLog* const events_;
  const Clock* const clock_;
  const OnLost on_lost_;

  // std, not absl: ThreadSanitizer does not see through Debian's Abseil.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  SwitchTable table_;
  std::map<uint64_t, InstallationPtr> installations_;  // under way, by number: who is due first
  uint64_t last_installation_ = 0;
  std::map<TaskKey, Task> tasks_;            // that are not answered
  std::map<SwitchGroup, std::string> lost_;  // held, and why it is no good any more
  // By when those of no installation are to be answered, in order.
  std::deque<std::pair<absl::Duration, TaskKey>> again_;
  // Entries that could not be told yet: the child, by the switch whose address it needs.
  std::map<Guid, std::set<std::pair<Guid, SwitchGroup>>> waiting_for_parent_;
  FlapFilter flaps_;
  SwitchNumbers numbers_;
  bool closed_ = false, woken_ = false;

  LoopThread timer_{mutex_, changed_};
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWITCHES_INSTALLATION_H_
