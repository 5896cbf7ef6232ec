// Asks many nodes many things at once: a bounded window of requests under way, each with its own
// transaction number and timer, resent with growing patience, and completed exactly once.
//
//    Submit -> queue -> [ window of slots ] -> handler(answered | refused | unanswered)
//                          |        ^
//                     Send v        | Receive: matched by transaction number, else ignored
//                        MadTransport
//
// Invariants: every submitted request reaches the handler exactly once unless Run fails or is
// abandoned; every send has a transaction number of its own, so that a late answer to an earlier
// attempt still counts and a second answer does not; at most `max_unheard` sends run ahead of the
// last one known to have left the port's queue.
//
// README.md says how a lost node is told from a lost port. Subnet management by directed route and
// performance management by LID share window, numbers and timers; a node's ear is the same for
// both. Knows the header of a packet but not what its attributes mean.
#ifndef COPPICE_DAEMON_IB_MAD_ENGINE_H_
#define COPPICE_DAEMON_IB_MAD_ENGINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/ib/mad_codec.h"

namespace coppice {

// Carries management datagrams, unreliably and in any order: libibumad's port (umad_subnet_port.cc)
// or a scripted subnet (tests/unit/ib). Knows a datagram's class but not what it means.
enum class MadEvent : uint8_t {
  kNone,      // nothing arrived
  kReceived,  // a datagram from the subnet, of any kind
  kTimedOut,  // one of ours, given back: nobody answered within its timeout
  kNotSent,   // one of ours, given back: the port could not send it
};

// Not thread-safe.
class MadTransport {
 public:
  virtual ~MadTransport() = default;

  // Hands over one datagram that expects an answer within `timeout`. `lid`: where one of
  // performance management goes; the others hold their way in themselves. RESOURCE_EXHAUSTED: not
  // now, ask again later; UNAVAILABLE: the port is gone.
  virtual absl::Status Send(const Mad& mad, Lid lid, absl::Duration timeout) = 0;

  // Waits at most `wait` (zero: not at all) for the next event; unless it is kNone, `mad` holds the
  // datagram. UNAVAILABLE: the port is gone.
  virtual absl::StatusOr<MadEvent> Receive(absl::Duration wait, Mad& mad) = 0;
};

// A node that left this many requests in a row unanswered is asked no more.
inline constexpr int kSilencesToGiveUp = 3;

struct MadRequest {
  DirectedRoute route;  // of subnet management
  MadAttribute attribute = MadAttribute::kNodeInfo;
  uint32_t modifier = 0;  // of performance management: the port
  uint32_t subject = 0;   // the asker's own; the engine hands it back
  Lid lid = Lid(0);       // of performance management
  int max_attempts = 0;   // 0: as many as the engine's options say, else at most this many
};

struct MadOutcome {
  enum class Kind : uint8_t { kAnswered, kRefused, kUnanswered };
  Kind kind = Kind::kUnanswered;
  uint16_t status = 0;    // of kRefused (IBA vol. 1, 13.4.7)
  MadData data{};         // of kAnswered
  absl::Duration waited;  // since the request was first sent
  bool is_answered() const { return kind == Kind::kAnswered; }
  bool is_unanswered() const { return kind == Kind::kUnanswered; }
};

struct MadEngineOptions {
  int window = 64;       // requests under way, 1..128
  int max_attempts = 5;  // sends of one request
  absl::Duration first_timeout =
      absl::Milliseconds(100);                    // doubles with each attempt: 3.1 s in all
  absl::Duration grace = absl::Milliseconds(50);  // how much later than the kernel we give up
  uint32_t max_unheard = 128;                     // the simulator blocks its client at about 166
};

struct MadCounts {
  uint64_t sent = 0;       // all sends
  uint64_t resent = 0;     // of these, second and later attempts
  uint64_t timed_out = 0;  // attempts without an answer in time
};

// Not thread-safe. Run may be called again and again, from one thread after another.
class MadEngine {
 public:
  // May call Submit.
  using Handler = std::function<void(const MadRequest&, const MadOutcome&)>;

  // Neither is owned; both outlive the engine.
  MadEngine(MadTransport& transport, const Clock& clock, MadEngineOptions options = {});

  void Submit(MadRequest request) { queue_.push_back(std::move(request)); }
  // Before all that was submitted and is not yet sent.
  void SubmitFirst(MadRequest request) { queue_.push_front(std::move(request)); }

  // Works until every request, and every one that the handler adds, is completed. UNAVAILABLE: the
  // local port is gone or does not answer; what was submitted is dropped. Cost: the time of the
  // slowest answer times requests / window, and at most the sum of all timeouts for each window of
  // requests to silent nodes.
  absl::Status Run(const Handler& handler);

  // For handlers: enough is known. Everything under way and not yet sent is dropped, and Run ends
  // well; at most the answers that lie ready still come to the handler. Later ones count for
  // nobody.
  void Abandon() { is_abandoned_ = true; }

  // Waits at most `limit` for answers to sends that were given up, and drops them.
  void Drain(absl::Duration limit);

  const MadCounts& counts() const { return counts_; }
  int window() const { return options_.window; }
  // How long a silent node is waited for with so many attempts; 0 or more than the options':
  // theirs.
  absl::Duration Patience(int max_attempts = 0) const;

 private:
  struct Slot {
    bool busy = false;
    bool suspended = false;  // out of attempts, waits for the local port's sign of life
    bool is_probe = false;
    int attempts = 0;
    absl::Duration first_sent, deadline;
    uint32_t last_transaction = 0;
    MadRequest request;
  };

  uint32_t unheard() const { return next_transaction_ - 1 - heard_transaction_; }
  absl::Status FillWindow();
  absl::Status Start(MadRequest request, bool is_probe);
  absl::Status SendAttempt(uint32_t slot);
  absl::Status ReceiveBatch();
  void OnEvent(MadEvent event, const Mad& mad);
  void OnReply(const Mad& mad);
  absl::Status Expire();
  int AttemptsOf(int max_attempts) const;
  absl::Status OnExhausted(uint32_t slot);
  void OnLocalPortAlive();
  void Complete(uint32_t slot, MadOutcome outcome);
  absl::Duration UntilNextDeadline() const;
  void Forget();

  MadTransport& transport_;
  const Clock& clock_;
  const MadEngineOptions options_;
  MadCounts counts_;
  std::deque<MadRequest> queue_;
  std::vector<Slot> slots_;     // the window, and one for the probe
  std::vector<uint32_t> free_;  // slots that are not busy
  int busy_ = 0;
  bool probing_ = false;
  bool is_abandoned_ = false;
  const Handler* handler_ = nullptr;  // of the present Run
  absl::flat_hash_map<uint32_t, uint32_t>
      slot_of_;  // transaction -> slot, all attempts of busy ones
  uint32_t next_transaction_ = 1;
  uint32_t heard_transaction_ = 0;  // newest that is known to have left the port's queue
  absl::Duration last_reply_;       // when the subnet last gave a sign of life
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_MAD_ENGINE_H_
