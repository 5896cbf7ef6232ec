// How much of the daemon one caller may use at once, so that nobody can take it from the others.
//
//   a call comes --Arrive--> reads its request --Read--> runs --Leave-->
//                     |             ^
//                     +--> waits, unread, behind its caller's own calls; callers take turns
//                     +--> refused: RESOURCE_EXHAUSTED, as more wait already
//
// A caller is who called (caller.h). Each has its own places for calls, for streams and for
// requests that are being read, a share of the memory that requests under way may take, and one of
// what answers may take until they have been read; and there is a bound on each of what all have
// together. So a caller that floods waits for itself. Knows no gRPC and no services.
#ifndef COPPICE_DAEMON_RPC_ADMISSION_H_
#define COPPICE_DAEMON_RPC_ADMISSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
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
  bool is_administrator = false;
};

class Admission;
struct AdmittedCaller;

// One call from its arrival on. Its admission outlives it.
class AdmittedCall : public std::enable_shared_from_this<AdmittedCall> {
 public:
  virtual ~AdmittedCall() = default;

 protected:
  // Its turn has come: it may read its request. Called without locks, once, if it had to wait.
  virtual void Start() = 0;
  // It has been reading, or its answer unread, for too long. May come when it is over.
  virtual void Abort() = 0;

 private:
  friend class Admission;
  enum class State : uint8_t { kOutside, kWaiting, kReading, kRunning };
  // Guarded by the admission's mutex.
  AdmittedCaller* caller_ = nullptr;
  State state_ = State::kOutside;
  bool is_stream_ = false;
  int64_t request_bytes_ = 0, answer_bytes_ = 0;
  absl::Duration since_;  // when it began to read, or to be read
};

// Thread-safe.
class Admission final {
 public:
  // Requests that are read at once, by one caller and by all: each may be as large as any.
  static constexpr uint32_t kReadings = 4;
  static constexpr uint32_t kAllReadings = 16;
  // How long a request may be read when others cannot be for want of a place.
  static constexpr absl::Duration kLongestReadingOfMany = absl::Seconds(1);
  // What a request or an answer may take without asking whether others leave room for it, as there
  // are only so many calls.
  static constexpr int64_t kSmall = 16 << 10;

  // A dialogue is a stream of requests, too, which are small: it reads as it likes.
  enum class Kind { kCall, kStream, kDialogue };
  enum class Verdict { kStart, kWait };

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
  // The request has been read. It takes so many bytes as long as the call lasts, at most what the
  // answer to it leaves. RESOURCE_EXHAUSTED: that is more than its caller, or all, may have.
  // Others start meanwhile, in this thread.
  void Read(AdmittedCall& call);
  absl::Status TakeRequest(AdmittedCall& call, int64_t bytes);
  // What the call has answered, or is writing, takes so many bytes, in place of what it said
  // before. RESOURCE_EXHAUSTED: more than its caller, or all, may leave unread.
  absl::Status HoldAnswer(AdmittedCall& call, int64_t bytes);
  // Gives back what the call has. Others start meanwhile, in this thread.
  void Leave(AdmittedCall& call);

  // Aborts calls that read for too long, lets those go on that waited for their rate, and forgets
  // callers that have nothing under way. To be called some times a second.
  void Tick();

  struct Numbers {
    size_t callers = 0, calls = 0, waiting = 0, streams = 0;
    int64_t request_bytes = 0, answer_bytes = 0;
    uint64_t refused = 0;
  };
  Numbers numbers() const;

 private:
  using Calls = std::vector<std::shared_ptr<AdmittedCall>>;
  const CallerBounds& BoundsOf(const AdmittedCaller& caller) const;
  absl::Status Refused(const AdmittedCaller& caller, absl::string_view what, int64_t most);
  // Fills up what the caller may still call, by its rate.
  void Refill(AdmittedCaller& caller);
  // What may start: the calls that wait, the streams that do, or none.
  std::deque<std::shared_ptr<AdmittedCall>>* Startable(AdmittedCaller& caller);
  bool MayStart(AdmittedCaller& caller, bool is_stream);
  void Begin(AdmittedCall& call);
  // Takes those whose turn has come, one of each caller in turn.
  Calls Next();
  void Enlist(AdmittedCaller& caller);
  static void StartAll(const Calls& calls);

  const Clock* const clock_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  AdmissionBounds bounds_;
  absl::flat_hash_map<std::string, std::unique_ptr<AdmittedCaller>> callers_;
  std::deque<AdmittedCaller*> turns_;        // those that have calls waiting, and places for them
  absl::flat_hash_set<AdmittedCall*> slow_;  // read their requests, or are read
  uint32_t readings_ = 0;
  size_t calls_ = 0, waiting_ = 0, streams_ = 0;
  int64_t request_bytes_ = 0, answer_bytes_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_ADMISSION_H_
