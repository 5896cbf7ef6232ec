// How much of the daemon one caller may use at once, so that nobody can take it from the others.
//
//   a call comes --Arrive--> reads its request --Read--> runs --Leave-->
//                     |             ^
//                     +--> waits, unread, behind its caller's own calls; callers take turns
//                     +--> refused: RESOURCE_EXHAUSTED, as more wait already
//
// Each caller has places of its own for calls, for streams and for requests that are being read, a
// share of the memory that requests under way may take, and one of what answers may take until they
// have been read. So have those together for whom one node's agent calls, and all callers, of which
// nobody takes more than half of what is left (README.md, "Bounds per caller").
//
//   memory of all  [ a: its share | b: its share | half of the rest for c ... ]
//   beside it      [ one request, and one answer, that is larger than its caller's share ]
//
// Knows no gRPC and no services.
#ifndef COPPICE_DAEMON_RPC_CALLS_ADMISSION_H_
#define COPPICE_DAEMON_RPC_CALLS_ADMISSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/base/clock.h"

namespace coppice {

// Who calls, as far as bounds go.
struct Caller {
  std::string name;
  std::string by = {};  // who says that it calls; empty: nobody but itself
  bool is_administrator = false;
  bool is_by_agent = false;  // `by` is an agent's, and answers for all that it names

  // Tells callers apart.
  std::string Key() const;
};

// The name in a key.
inline std::string UserOfKey(const std::string& key) { return key.substr(0, key.find('\n')); }

class Admission;
struct AdmittedCaller;

// One call from its arrival on. Its admission outlives it.
class AdmittedCall : public std::enable_shared_from_this<AdmittedCall> {
 public:
  virtual ~AdmittedCall() = default;

 protected:
  // Its turn has come: it may read its request. Called without locks, once, if it had to wait.
  virtual void Start() = 0;
  // It has been reading, or its answer unread, for too long, as `why` says. May come when it is
  // over.
  virtual void Abort(const absl::Status& why) = 0;

 private:
  friend class Admission;
  enum class State : uint8_t { kOutside, kWaiting, kReading, kRunning };
  struct Held {
    int64_t bytes = 0;
    bool is_shared = false;  // else it is beside what all share
  };
  // Guarded by the admission's mutex.
  AdmittedCaller* caller_ = nullptr;
  State state_ = State::kOutside;
  bool is_stream_ = false;
  Held held_[2];          // [Admission::Memory]
  absl::Duration since_;  // when it began to read, or to be read
};

// Thread-safe.
class Admission final {
 public:
  // Requests that are read at once, by one caller, by all of one agent, and by all: each may be as
  // large as any.
  static constexpr uint32_t kReadings = 4;
  static constexpr uint32_t kReadingsOfAgent = 8;
  static constexpr uint32_t kAllReadings = 16;
  // How long a request may be read when others cannot be for want of a place: of a caller that has
  // several such, and of one that has no other.
  static constexpr absl::Duration kMaxReadingOfMany = absl::Seconds(1);
  static constexpr absl::Duration kMaxReadingOfOne = absl::Seconds(10);
  // A request or an answer that is not counted, as there are only so many calls.
  static constexpr int64_t kSmall = 16 << 10;
  // All for whom one agent calls have together what so many callers may have.
  static constexpr uint32_t kCallersOfAgent = 4;

  // A dialogue is a stream of requests, too, which are small: it reads as it likes.
  enum class Kind { kCall, kStream, kDialogue };
  enum class Verdict { kStart, kWait };
  // What comes of an answer that there is no room for. kKept: it is counted and goes out, as what
  // it tells has been done.
  enum class Answer { kRefused, kKept };

  Admission(const AdmissionBounds& bounds, const Clock* clock);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // From the next call on.
  void SetBounds(const AdmissionBounds& bounds);

  // Whether `call` may read its request now or is to wait for its Start. RESOURCE_EXHAUSTED: its
  // caller has too much under way already; the call is not admitted. Otherwise Leave must follow.
  absl::StatusOr<Verdict> Arrive(const std::shared_ptr<AdmittedCall>& call, const Caller& caller,
                                 Kind kind);
  // The request has been read. Others start meanwhile, in this thread.
  void Read(AdmittedCall& call);
  // It takes so many bytes as long as the call lasts. RESOURCE_EXHAUSTED: that is more than its
  // caller, or all, may have.
  absl::Status TakeRequest(AdmittedCall& call, int64_t bytes);
  // Before a call changes something: whether it can be answered. RESOURCE_EXHAUSTED: its caller has
  // left too much unread.
  absl::Status CanAnswer(AdmittedCall& call);
  // What the call has answered, or is writing, takes so many bytes, in place of what it said
  // before. RESOURCE_EXHAUSTED: more than its caller, or all, may leave unread.
  absl::Status HoldAnswer(AdmittedCall& call, int64_t bytes, Answer otherwise = Answer::kRefused);
  // Gives back what the call has. Others start meanwhile, in this thread.
  void Leave(AdmittedCall& call);

  // Aborts calls that read for too long, lets those go on that waited for their rate, and forgets
  // callers that have nothing under way. To be called some times a second.
  void Tick();

  struct Numbers {
    size_t callers = 0, agents = 0, calls = 0, waiting = 0, streams = 0;
    int64_t request_bytes = 0, answer_bytes = 0;
    uint64_t refused = 0;
  };
  Numbers numbers() const;

 private:
  friend struct AdmittedCaller;
  using Calls = std::vector<std::shared_ptr<AdmittedCall>>;
  // How much of each a caller, the callers of an agent, or all have.
  struct Counts {
    uint32_t calls = 0, waiting = 0, streams = 0, readings = 0;
  };
  // What is bounded of a caller, and how much more a call of it may begin.
  struct Bounded {
    uint32_t Counts::*what;
    uint32_t CallerBounds::*own;
    uint32_t AdmissionBounds::*all;
    absl::string_view words;
  };
  static const Bounded kCalls, kStreams, kWaiting;
  enum class Whose { kNobodys, kCallers, kAgents, kAll };
  // Of a caller, or of all for whom an agent calls.
  struct Account {
    Counts counts;
    double left = 0;        // calls that may still be made, by a rate
    absl::Duration filled;  // when
    size_t callers = 0;     // an agent's
  };
  // Of requests under way, and of answers that are not read.
  enum Memory { kRequests, kAnswers };
  struct Taken {
    int64_t bytes = 0, shared = 0;
  };
  struct MemoryKind;
  static const MemoryKind kMemory[2];

  const CallerBounds& BoundsOf(const AdmittedCaller& caller) const;
  AdmittedCaller& Find(const Caller& caller);
  // Calls `use` with the caller's account and its agent's, if it has one, and with their rates.
  template <class Use>
  void ForAccounts(AdmittedCaller& caller, Use use);
  void Count(AdmittedCaller& caller, uint32_t Counts::*what, int by);
  // Whose bound keeps the caller from having one more.
  Whose Bound(const AdmittedCaller& caller, const Bounded& kind) const;
  absl::Status Refused(AdmittedCaller& caller, absl::string_view why);
  absl::Status Refused(AdmittedCaller& caller, Whose whose, const Bounded& kind);
  // RESOURCE_EXHAUSTED: the caller has left too much unread.
  absl::Status LeftUnread(const AdmittedCaller& caller) const;
  // Fills up what may still be called, by that rate; whether it is all.
  bool Refill(Account& account, double rate);
  // Whether the caller, and the agent, may call once more by their rates.
  bool MayCall(AdmittedCaller& caller);
  void Charge(AdmittedCaller& caller);
  // What may start: the calls that wait, the streams that do, or none.
  std::deque<std::shared_ptr<AdmittedCall>>* Startable(AdmittedCaller& caller);
  bool MayStart(AdmittedCaller& caller, bool is_stream);
  void Begin(AdmittedCall& call);
  void EndReading(AdmittedCall& call);
  // Takes those whose turn has come, one of each caller in turn.
  Calls Next();
  void Enlist(AdmittedCaller& caller);
  static void StartAll(const Calls& calls);
  // Why a call that takes so long to read or to be read is to be given up; OK: it is not.
  absl::Status TooSlow(const AdmittedCall& call, absl::Duration now) const;
  void GiveBack(AdmittedCall& call, Memory kind);
  // `must`: beyond all bounds, too.
  absl::Status Take(AdmittedCall& call, Memory kind, int64_t bytes, bool must);

  const Clock* const clock_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  AdmissionBounds bounds_;
  absl::flat_hash_map<std::string, std::unique_ptr<AdmittedCaller>> callers_;  // by key
  absl::flat_hash_map<std::string, std::unique_ptr<Account>> agents_;          // by name
  std::deque<AdmittedCaller*> turns_;        // those that have calls waiting, and places for them
  absl::flat_hash_set<AdmittedCall*> slow_;  // read their requests, or are read
  Counts all_;
  Taken taken_[2];  // [Memory]
  // [Memory] Those that are larger than their callers' shares: [0] of users, [1] of administrators.
  AdmittedCall* large_[2][2] = {};
  uint64_t refused_ = 0;
};

// The call that a handler is about, as far as bounds go: who makes the reactor of a call, or hands
// its work to a pool, finds it here while the handler runs, on its thread. This one has no bounds.
// Thread-safe.
class CallUnderWay {
 public:
  virtual ~CallUnderWay() = default;

  // Who called; tells callers apart, for turns. Empty: nobody.
  virtual const std::string& caller() const {
    static const std::string nobody;
    return nobody;
  }
  // Before its work begins, which may change something. RESOURCE_EXHAUSTED: its caller has left too
  // much unread; end the call with that.
  virtual absl::Status CanAnswer() { return absl::OkStatus(); }
  // Before its answer is handed to gRPC, which holds it until the client has read it. A unary
  // call's answer is emptied if there is no room for it. RESOURCE_EXHAUSTED: end the call with
  // that; never of a method that changes something.
  virtual absl::Status HoldAnswer() { return absl::OkStatus(); }
  // The same of a message of a stream, as large on the wire; 0: it has been read.
  virtual absl::Status HoldMessage(size_t) { return absl::OkStatus(); }

  static std::shared_ptr<CallUnderWay> OfThisThread() {
    return of_this_thread_ == nullptr ? std::make_shared<CallUnderWay>() : *of_this_thread_;
  }

  // While it lives, `call` is the one of this thread.
  class Scope {
   public:
    explicit Scope(const std::shared_ptr<CallUnderWay>* call)
        : before_(std::exchange(of_this_thread_, call)) {}
    ~Scope() { of_this_thread_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const std::shared_ptr<CallUnderWay>* const before_;
  };

 private:
  static inline thread_local const std::shared_ptr<CallUnderWay>* of_this_thread_ = nullptr;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_ADMISSION_H_
