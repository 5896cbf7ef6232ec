// The stream of one long call: progress while it goes on, of which only the newest waits for a slow
// reader, then the answer, message by message.
//
//   working thread --Tell--> newest progress --+
//   any thread  --Answer--> rest of it --------+--> one write at a time --> Finish
//
// Several threads hold it: whoever works, the store's callback, gRPC. It lives until the last of
// them lets go; gRPC's share is given back in OnDone, and from then on the others' calls do
// nothing.
#ifndef COPPICE_DAEMON_RPC_CALLS_UPDATE_STREAM_H_
#define COPPICE_DAEMON_RPC_CALLS_UPDATE_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/rpc/calls/admission.h"
#include "daemon/rpc/calls/error_details.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "daemon/rpc/calls/worker_pool.h"

namespace coppice {

// Thread-safe.
template <class Update>
class UpdateStream final : public grpc::ServerWriteReactor<Update> {
 public:
  // Fills the next message of the answer; false: there is none. Called by one thread at a time.
  using Answers = std::function<bool(Update&)>;

  // `what` begins the message of a call that its client broke off ("batch"), `object` is what
  // errors are about; `method` counts the streams. Must be ended or answered.
  static std::shared_ptr<UpdateStream> Open(std::string what, std::string object,
                                            MethodStatistics::Method* method) {
    method->Opened();
    std::shared_ptr<UpdateStream> stream(
        new UpdateStream(std::move(what), std::move(object), method));
    stream->self_ = stream;
    return stream;
  }

  // Ends the call with `status` once; later calls do nothing.
  void End(const absl::Status& status) {
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return;
      ended_ = true;
    }
    method_->Closed(status.code());
    this->Finish(ToWire(status, object_));
  }

  // Neither blocks. If an update still waits that the client has not read, this one replaces it,
  // or, with `only_if_none_waits`, is dropped.
  void Tell(Update progress, bool only_if_none_waits = false) {
    Next next;
    {
      absl::MutexLock lock(&mutex_);
      if (ended_ || answers_) return;
      if (only_if_none_waits && progress_.has_value()) return;
      progress_ = std::move(progress);
      next = WriteNext();
    }
    if (next.is_over) End(next.status);
  }
  // `held`: bytes that `answers` keeps in memory until all has been read.
  void Answer(Answers answers, size_t held = 0) {
    Next next;
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return;
      answers_ = std::move(answers);
      held_ = held;
      next = WriteNext();
    }
    if (next.is_over) End(next.status);
  }

  // Whether RunOn would take a task: to be asked before the request is converted or copied, or its
  // caller keeps gRPC's threads busy with calls that are refused.
  absl::Status RoomOn(const WorkerPool& pool, size_t most) const {
    return pool.Room(most, caller());
  }

  // Has a worker of `pool`, which outlives the call, run `task`; if the client goes before one has
  // taken it up, it is dropped with all that it holds, and if it has left too much unread, the call
  // ends with that. UNAVAILABLE: `most` others of its caller wait already, or it has had its share
  // of the line.
  absl::Status RunOn(WorkerPool* pool, WorkerPool::Task task, size_t most) {
    const absl::StatusOr<WorkerPool::Ticket> ticket = pool->SubmitUnlessFull(
        [stream = self_, task = std::move(task)]() mutable {
          const absl::Status room =
              stream->bounds_ == nullptr ? absl::OkStatus() : stream->bounds_->CanAnswer();
          if (!room.ok()) return stream->End(room);
          task();
        },
        most, caller());
    if (!ticket.ok()) return ticket.status();
    bool is_late = false;
    {
      absl::MutexLock lock(&mutex_);
      queued_ = {pool, *ticket};
      is_late = is_cancelled_;
    }
    if (is_late) pool->Withdraw(*ticket);
    return absl::OkStatus();
  }

  // The client has gone.
  bool is_cancelled() const { return is_cancelled_; }
  // For turns; empty: nobody's.
  std::string caller() const { return bounds_ == nullptr ? "" : bounds_->caller(); }

  void OnWriteDone(bool ok) override {
    Next next{.is_over = !ok, .status = ok ? absl::OkStatus() : Gone()};
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      if (ended_) return;
      if (ok) next = WriteNext();
    }
    // Not ok: the client has gone, and only the statistics hear of it.
    if (next.is_over) End(next.status);
  }
  void OnCancel() override {
    Queued queued;
    {
      absl::MutexLock lock(&mutex_);
      is_cancelled_ = true;
      queued = queued_;
    }
    if (queued.pool != nullptr) queued.pool->Withdraw(queued.ticket);
    End(Gone());
  }
  void OnDone() override {
    // The last share may be this one: then the stream goes with it.
    const std::shared_ptr<UpdateStream> last = std::move(self_);
  }

 private:
  UpdateStream(std::string what, std::string object, MethodStatistics::Method* method)
      : what_(std::move(what)),
        object_(std::move(object)),
        method_(method),
        bounds_(CallUnderWay::OfThisThread()) {}

  struct Queued {
    WorkerPool* pool = nullptr;
    WorkerPool::Ticket ticket = 0;
  };

  absl::Status Gone() const {
    return absl::CancelledError(absl::StrCat(what_, ": the client went away"));
  }

  struct Next {
    bool is_over = false;
    absl::Status status = {};
  };

  // Writes what is next, if nothing is being written. Over: everything has been written, or the
  // caller has left too much unread.
  Next WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_) return {};
    update_.Clear();
    if (progress_) {
      update_ = *std::exchange(progress_, std::nullopt);
    } else if (!answers_) {
      if (bounds_ != nullptr) (void)bounds_->HoldMessage(0);
      return {};
    } else if (!answers_(update_)) {
      return {.is_over = true};
    }
    if (bounds_ != nullptr) {
      const absl::Status room = bounds_->HoldMessage(held_ + update_.ByteSizeLong());
      if (!room.ok()) return {.is_over = true, .status = room};
    }
    writing_ = true;
    this->StartWrite(&update_);
    return {};
  }

  const std::string what_, object_;
  MethodStatistics::Method* const method_;
  const std::shared_ptr<CallUnderWay> bounds_;  // null: the service is not bounded
  std::shared_ptr<UpdateStream> self_;          // gRPC's share
  std::atomic<bool> is_cancelled_{false};

  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Update> progress_ ABSL_GUARDED_BY(mutex_);  // not written yet
  Answers answers_ ABSL_GUARDED_BY(mutex_);                 // null until it is answered
  size_t held_ ABSL_GUARDED_BY(mutex_) = 0;                 // by answers_
  Update update_ ABSL_GUARDED_BY(mutex_);                   // gRPC's while writing_
  Queued queued_ ABSL_GUARDED_BY(mutex_);                   // null until RunOn
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_UPDATE_STREAM_H_
