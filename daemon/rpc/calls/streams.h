// The streams of the services: those of a method that are open, and what kinds there are.
//
//   AnswerStream   reads a question, answers it, reads the next
//   PulledStream   lasts for days: pulls its messages from a source
//   UpdateStream   one long call: progress, of which only the newest waits, then the answer
//
// One write is under way at most: a client that reads slowly costs the message that is being
// written, and what its source holds back. Several threads hold a stream: whoever works, the
// store's callback, the set, which has gRPC's share until OnDone. Knows nothing of what the
// messages mean.
#ifndef COPPICE_DAEMON_RPC_CALLS_STREAMS_H_
#define COPPICE_DAEMON_RPC_CALLS_STREAMS_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/admission.h"
#include "daemon/rpc/calls/error_details.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "daemon/rpc/calls/worker_pool.h"
#include "proto/request_check.h"

namespace coppice {

class OpenStream {
 public:
  virtual ~OpenStream() = default;
  // Ends the call with `status` once; later calls do nothing.
  virtual void End(const absl::Status& status) = 0;
};

// Those of one method. Thread-safe; outlives them.
class OpenStreams final {
 public:
  // `method` counts them. `how_to_go_on` is the end of a sentence, for a shutdown.
  explicit OpenStreams(MethodStatistics::Method* method,
                       absl::string_view how_to_go_on = "connect again and go on")
      : method_(method),
        closed_(
            absl::UnavailableError(absl::StrCat("daemon: it is shutting down; ", how_to_go_on))) {}

  // Has `begin` begin the stream, which ends at once if `status` or that is an error. It goes when
  // its call is done: not before the caller has handed it to gRPC.
  template <class Stream>
  Stream* Open(const std::shared_ptr<Stream>& stream, absl::Status status,
               absl::FunctionRef<absl::Status()> begin) {
    method_->Opened();
    {
      std::lock_guard lock(mutex_);
      if (status.ok() && is_closed_) status = closed_;
      open_.emplace(stream.get(), stream);
    }
    if (status.ok()) status = begin();
    if (!status.ok()) stream->End(status);
    return stream.get();
  }
  // Ends all with UNAVAILABLE, and later ones at once.
  void Close() {
    {
      std::lock_guard lock(mutex_);
      is_closed_ = true;
    }
    for (const auto& stream : All()) stream->End(closed_);
  }
  std::vector<std::shared_ptr<OpenStream>> All() const {
    std::vector<std::shared_ptr<OpenStream>> all;
    std::lock_guard lock(mutex_);
    for (const auto& [key, stream] : open_) all.push_back(stream);
    return all;
  }

 private:
  template <class Reactor>
  friend class ServedStream;

  void Remove(OpenStream* stream) {
    std::shared_ptr<OpenStream> last;  // may be: it goes without the lock
    std::lock_guard lock(mutex_);
    last = std::move(open_.extract(stream).mapped());
  }

  MethodStatistics::Method* const method_;
  const absl::Status closed_;  // what streams end with then
  // std, not absl: ThreadSanitizer does not see through Debian's Abseil.
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool is_closed_ = false;
  absl::flat_hash_map<OpenStream*, std::shared_ptr<OpenStream>> open_;
};

// What the kinds have in common. Thread-safe.
template <class Reactor>
class ServedStream : public Reactor, public OpenStream {
 public:
  void End(const absl::Status& status) override {
    std::lock_guard lock(mutex_);
    EndLocked(status);
  }
  // Nobody waits for it any more.
  bool is_over() const { return is_over_; }

  void OnCancel() override { End(Gone()); }
  void OnDone() override { streams_->Remove(this); }

 protected:
  // `object`: what errors are about.
  ServedStream(OpenStreams* streams, std::string object)
      : object_(std::move(object)), bounds_(CallUnderWay::OfThisThread()), streams_(streams) {}

  static absl::Status Gone() { return absl::CancelledError("the client went away"); }
  void EndLocked(const absl::Status& status) {
    if (is_over_.exchange(true)) return;
    streams_->method_->Closed(status.code());
    this->Finish(ToWire(status, object_));
  }

  std::mutex mutex_;
  std::string object_;  // guarded by mutex_
  const std::shared_ptr<CallUnderWay> bounds_;

 private:
  OpenStreams* const streams_;
  std::atomic<bool> is_over_{false};  // set under mutex_
};

template <class In, class Out>
class AnswerStream final : public ServedStream<grpc::ServerBidiReactor<In, Out>> {
 public:
  // An error ends the stream. Called by one thread at a time.
  using Answer = std::function<absl::Status(const In&, Out&)>;

  AnswerStream(OpenStreams* streams, std::string object, Answer answer)
      : ServedStream<grpc::ServerBidiReactor<In, Out>>(streams, std::move(object)),
        answer_(std::move(answer)) {}

  absl::Status Read() {
    std::lock_guard lock(this->mutex_);
    if (!this->is_over()) this->StartRead(&in_);
    return absl::OkStatus();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return this->End(TakeRefusal());  // OK: the client has said its last
    const absl::Status status = answer_(in_, out_);
    in_ = {};  // the next may be long in coming
    if (!status.ok()) return this->End(status);
    std::lock_guard lock(this->mutex_);
    if (!this->is_over()) this->StartWrite(&out_);
  }
  void OnWriteDone(bool ok) override {
    out_ = {};
    if (!ok) return this->End(this->Gone());
    (void)Read();
  }

 private:
  const Answer answer_;
  In in_;
  Out out_;
};

// Writes one message after another.
template <class Message>
class WriteStream : public ServedStream<grpc::ServerWriteReactor<Message>> {
 public:
  // Writes the next message unless one is being written or there is none.
  void Pump() {
    std::lock_guard lock(this->mutex_);
    PumpLocked();
  }
  void OnWriteDone(bool ok) override {
    std::lock_guard lock(this->mutex_);
    is_writing_ = false;
    if (!ok) return this->EndLocked(this->Gone());
    PumpLocked();
  }

 protected:
  WriteStream(OpenStreams* streams, std::string object)
      : ServedStream<grpc::ServerWriteReactor<Message>>(streams, std::move(object)) {}

  // All under mutex_. Writes over `message`; false: there is none yet, or all have been written.
  virtual absl::StatusOr<bool> Next(Message& message) = 0;
  virtual bool HasWrittenAll() const = 0;
  // Bytes that are kept until all has been read.
  virtual size_t held() const { return 0; }

  void PumpLocked() {
    if (this->is_over() || is_writing_) return;
    const absl::StatusOr<bool> has_one = Next(message_);
    if (!has_one.ok()) return this->EndLocked(has_one.status());
    if (!*has_one && HasWrittenAll()) return this->EndLocked(absl::OkStatus());
    const absl::Status room =
        this->bounds_->HoldMessage(*has_one ? held() + message_.ByteSizeLong() : 0);
    if (!*has_one) return;
    if (!room.ok()) return this->EndLocked(room);
    is_writing_ = true;
    this->StartWrite(&message_);
  }

 private:
  bool is_writing_ = false;  // guarded by mutex_
  Message message_;          // gRPC's while is_writing_
};

// Used by one thread at a time.
template <class Message>
class MessageSource {
 public:
  virtual ~MessageSource() = default;
  // Writes over `message`. False: there is none yet, and the source's wake will be called once when
  // there is; or it is over. An error ends the stream.
  virtual absl::StatusOr<bool> Next(Message& message) = 0;
  virtual bool over() const { return false; }
};

// Of a watch of the manager's: fetches so many things at once as spares the feed's lock and may be
// held for each of thousands of slow watchers.
template <class Message, class Watch, class Convert>
class WatchSource final : public MessageSource<Message> {
 public:
  WatchSource(std::unique_ptr<Watch> watch, Convert convert)
      : watch_(std::move(watch)), convert_(std::move(convert)) {}

  absl::StatusOr<bool> Next(Message& message) override {
    if (waiting_.empty()) {
      ASSIGN_OR_RETURN(auto fetched, watch_->Next(kFetched));
      std::move(fetched.begin(), fetched.end(), std::back_inserter(waiting_));
    }
    if (waiting_.empty()) return false;
    convert_(waiting_.front(), message);
    waiting_.pop_front();
    return true;
  }
  bool over() const override {
    if constexpr (requires { watch_->over(); }) return watch_->over();
    return false;
  }

 private:
  static constexpr uint32_t kFetched = 32;
  using Thing = typename decltype(std::declval<Watch&>().Next(0))::value_type::value_type;

  const std::unique_ptr<Watch> watch_;
  const Convert convert_;
  std::deque<Thing> waiting_;
};

template <class Message, class Watch, class Convert>
std::unique_ptr<MessageSource<Message>> SourceOf(std::unique_ptr<Watch> watch, Convert convert) {
  return std::make_unique<WatchSource<Message, Watch, Convert>>(std::move(watch),
                                                                std::move(convert));
}

template <class Message>
class PulledStream final : public WriteStream<Message> {
 public:
  PulledStream(OpenStreams* streams, std::string object)
      : WriteStream<Message>(streams, std::move(object)) {}

  void Begin(std::unique_ptr<MessageSource<Message>> source) {
    std::lock_guard lock(this->mutex_);
    source_ = std::move(source);
    // Tells the client that from here on nothing escapes it, though there may be nothing yet.
    if (!this->is_over()) this->StartSendInitialMetadata();
    this->PumpLocked();
  }

 private:
  absl::StatusOr<bool> Next(Message& message) override {
    return source_ == nullptr ? false : source_->Next(message);
  }
  bool HasWrittenAll() const override { return source_ != nullptr && source_->over(); }

  std::unique_ptr<MessageSource<Message>> source_;  // guarded by mutex_; null until it begins
};

// Thread-safe; outlives every stream that it opened.
template <class Message>
class PulledStreams final {
 public:
  using Source = std::unique_ptr<MessageSource<Message>>;
  // Makes the source of one stream. `wake` is quick and may be called from any thread.
  using MakeSource = absl::FunctionRef<absl::StatusOr<Source>(std::function<void()> wake)>;

  // As OpenStreams.
  PulledStreams(MethodStatistics::Method* method, absl::string_view how_to_go_on)
      : open_(method, how_to_go_on), pump_(1) {}

  // A stream about `object` that ends at once if its source cannot be made.
  PulledStream<Message>* Open(std::string object, MakeSource make) {
    const auto stream = std::make_shared<PulledStream<Message>>(&open_, std::move(object));
    return open_.Open(stream, absl::OkStatus(), [&]() -> absl::Status {
      // Pumped on a thread of their own: a source may read the store, and who wakes is not to wait.
      ASSIGN_OR_RETURN(Source source, make([this, woken = std::weak_ptr(stream)] {
                         pump_.Submit([woken] {
                           if (const auto held = woken.lock()) held->Pump();
                         });
                       }));
      stream->Begin(std::move(source));
      return absl::OkStatus();
    });
  }
  // There may be something for all of them.
  void PumpAll() {
    for (const auto& stream : open_.All()) static_cast<PulledStream<Message>&>(*stream).Pump();
  }
  void Close() { open_.Close(); }

 private:
  OpenStreams open_;
  WorkerPool pump_;  // last: its thread uses the above
};

//   working thread --Tell--> newest progress --+
//   any thread  --Answer--> rest of it --------+--> one write at a time --> Finish
template <class Update>
class UpdateStream final : public WriteStream<Update>,
                           public std::enable_shared_from_this<UpdateStream<Update>> {
 public:
  // Fills the next message of the answer; false: there is none. Called by one thread at a time.
  using Answers = std::function<bool(Update&)>;

  // As OpenStreams::Open, for a stream about `object`. Must be ended or answered, unless `status`
  // or what `begin` gives is an error.
  template <class Begin>
  static UpdateStream* Open(OpenStreams& streams, std::string object, const absl::Status& status,
                            Begin begin) {
    const std::shared_ptr<UpdateStream> stream(new UpdateStream(&streams, std::move(object)));
    return streams.Open(stream, status, [&] { return begin(stream); });
  }

  // Neither blocks. If an update still waits that the client has not read, this one replaces it,
  // or, with `only_if_none_waits`, is dropped.
  void Tell(Update progress, bool only_if_none_waits = false) {
    std::lock_guard lock(this->mutex_);
    if (this->is_over() || answers_ || (only_if_none_waits && progress_.has_value())) return;
    progress_ = std::move(progress);
    this->PumpLocked();
  }
  // `held`: bytes that `answers` keeps in memory until all has been read.
  void Answer(Answers answers, size_t held = 0) {
    std::lock_guard lock(this->mutex_);
    if (this->is_over()) return;
    answers_ = std::move(answers);
    held_ = held;
    this->PumpLocked();
  }

  // The whole answer.
  void AnswerWith(Update only) {
    Answer([only = std::move(only), is_told = false](Update& update) mutable {
      if (std::exchange(is_told, true)) return false;
      update = std::move(only);
      return true;
    });
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
    auto run = [stream = this->shared_from_this(), task = std::move(task)]() mutable {
      const absl::Status room = stream->bounds_->CanAnswer();
      if (!room.ok()) return stream->End(room);
      task();
    };
    ASSIGN_OR_RETURN(const WorkerPool::Ticket ticket,
                     pool->SubmitUnlessFull(std::move(run), most, caller()));
    {
      std::lock_guard lock(this->mutex_);
      withdraw_ = [pool, ticket] { pool->Withdraw(ticket); };
    }
    if (this->is_over()) pool->Withdraw(ticket);
    return absl::OkStatus();
  }
  // For turns; empty: nobody's.
  const std::string& caller() const { return this->bounds_->caller(); }

  void OnCancel() override {
    this->End(this->Gone());
    std::function<void()> withdraw;
    {
      std::lock_guard lock(this->mutex_);
      withdraw = withdraw_;
    }
    if (withdraw) withdraw();
  }

 private:
  UpdateStream(OpenStreams* streams, std::string object)
      : WriteStream<Update>(streams, std::move(object)) {}

  absl::StatusOr<bool> Next(Update& update) override {
    if (progress_) {
      update = *std::exchange(progress_, std::nullopt);
      return true;
    }
    update.Clear();
    return answers_ && answers_(update);
  }
  bool HasWrittenAll() const override { return answers_ != nullptr; }
  size_t held() const override { return held_; }

  // Guarded by mutex_.
  std::optional<Update> progress_;  // not written yet
  Answers answers_;                 // null until it is answered
  size_t held_ = 0;                 // by answers_
  std::function<void()> withdraw_;  // null until RunOn
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_STREAMS_H_
