// The call that a handler is about, as far as bounds go. Handlers are not given it: who makes the
// reactor of a call, or hands its work to a pool, finds it here while the handler runs, on its
// thread.
#ifndef COPPICE_DAEMON_RPC_CALLS_CALL_UNDER_WAY_H_
#define COPPICE_DAEMON_RPC_CALLS_CALL_UNDER_WAY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace coppice {

// Thread-safe.
class CallUnderWay {
 public:
  virtual ~CallUnderWay() = default;

  // Who called; tells callers apart, for turns.
  virtual const std::string& caller() const = 0;
  // Before its work begins, which may change something. RESOURCE_EXHAUSTED: its caller has left too
  // much unread; end the call with that.
  virtual absl::Status CanAnswer() = 0;
  // Before its answer is handed to gRPC, which holds it until the client has read it. A unary
  // call's answer is emptied if there is no room for it. RESOURCE_EXHAUSTED: end the call with
  // that; never of a method that changes something.
  virtual absl::Status HoldAnswer() = 0;
  // The same of a message of a stream, as large on the wire; 0: it has been read.
  virtual absl::Status HoldMessage(size_t bytes) = 0;

  // Of the handler that runs on this thread; null: none that is bounded.
  static std::shared_ptr<CallUnderWay> OfThisThread() {
    return of_this_thread_ == nullptr ? nullptr : *of_this_thread_;
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

#endif  // COPPICE_DAEMON_RPC_CALLS_CALL_UNDER_WAY_H_
