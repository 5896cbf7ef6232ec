// Streams that a client listens to for days: each pulls its messages from a source of its own, at
// the client's pace.
//
//   Pump: next message --StartWrite--> OnWriteDone --Pump--> ... --none yet--> asleep
//                                                                  ^             |
//                                    thread of the streams: Pump --+-- wake <----+
//
// At most one write is under way, so a client that reads slowly costs the message being written and
// what its source holds back; the source tells when it has fallen too far behind. The set of open
// streams lets a shutdown end them all. Knows nothing of what the messages mean.
#ifndef COPPICE_DAEMON_RPC_CALLS_PULLED_STREAM_H_
#define COPPICE_DAEMON_RPC_CALLS_PULLED_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/rpc/calls/admission.h"
#include "daemon/rpc/calls/error_details.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "daemon/rpc/calls/worker_pool.h"

namespace coppice {

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

template <class Message>
class PulledStreams;

template <class Message>
class PulledStream final : public grpc::ServerWriteReactor<Message> {
 public:
  PulledStream(PulledStreams<Message>* streams, uint64_t id, std::string object)
      : streams_(streams),
        id_(id),
        object_(std::move(object)),
        bounds_(CallUnderWay::OfThisThread()) {}

  void Begin(std::unique_ptr<MessageSource<Message>> source) {
    {
      std::lock_guard lock(mutex_);
      source_ = std::move(source);
      // Tells the client that from here on nothing escapes it, though there may be nothing yet.
      if (!ended_) this->StartSendInitialMetadata();
    }
    Pump();
  }
  // Writes the next message unless one is being written or there is none.
  void Pump() {
    std::lock_guard lock(mutex_);
    if (ended_ || is_writing_) return;
    const absl::StatusOr<bool> has_one = source_->Next(message_);
    if (!has_one.ok()) return EndLocked(has_one.status());
    if (!*has_one) {
      if (bounds_ != nullptr) (void)bounds_->HoldMessage(0);
      if (source_->over()) EndLocked(absl::OkStatus());
      return;
    }
    if (bounds_ != nullptr) {
      const absl::Status room = bounds_->HoldMessage(message_.ByteSizeLong());
      if (!room.ok()) return EndLocked(room);
    }
    is_writing_ = true;
    this->StartWrite(&message_);
  }
  // Ends the call with `status` once; later calls do nothing.
  void End(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    EndLocked(status);
  }

  void OnWriteDone(bool ok) override {
    {
      std::lock_guard lock(mutex_);
      is_writing_ = false;
    }
    if (!ok) return End(absl::CancelledError("watch: the client went away"));
    Pump();
  }
  void OnCancel() override { End(absl::CancelledError("watch: the client went away")); }
  void OnDone() override { streams_->Remove(id_); }

 private:
  void EndLocked(const absl::Status& status) {
    if (ended_) return;
    ended_ = true;
    streams_->method_->Closed(status.code());
    this->Finish(ToWire(status, object_));
  }

  PulledStreams<Message>* const streams_;
  const uint64_t id_;
  const std::string object_;                    // for errors
  const std::shared_ptr<CallUnderWay> bounds_;  // null: the service is not bounded
  Message message_;                             // being written

  std::mutex mutex_;
  // Guarded by mutex_.
  std::unique_ptr<MessageSource<Message>> source_;
  bool is_writing_ = false;
  bool ended_ = false;
};

// Thread-safe; outlives every stream that it opened.
template <class Message>
class PulledStreams final {
 public:
  using Source = std::unique_ptr<MessageSource<Message>>;
  // Makes the source of one stream. `wake` is quick and may be called from any thread.
  using MakeSource = std::function<absl::StatusOr<Source>(std::function<void()> wake)>;

  // `method` counts the streams. `how_to_resume` is the end of a sentence, for a shutdown.
  PulledStreams(MethodStatistics::Method* method, std::string how_to_resume)
      : method_(method), how_to_resume_(std::move(how_to_resume)), pump_(1) {}

  // A stream about `object` that ends at once if its source cannot be made. It goes when its call
  // is done.
  PulledStream<Message>* Open(std::string object, const MakeSource& make) {
    method_->Opened();
    std::shared_ptr<PulledStream<Message>> stream;
    uint64_t id = 0;
    absl::Status status;
    {
      std::lock_guard lock(mutex_);
      id = ++last_id_;
      stream = std::make_shared<PulledStream<Message>>(this, id, std::move(object));
      if (closed_) status = ShuttingDown(how_to_resume_);
      open_[id] = stream;
    }
    // Until the reactor is handed to gRPC, which its caller does, it cannot be done and gone unless
    // it was ended here.
    if (status.ok()) {
      absl::StatusOr<Source> source = make([this, id] { Wake(id); });
      if (source.ok()) {
        stream->Begin(*std::move(source));
        return stream.get();
      }
      status = source.status();
    }
    stream->End(status);
    return stream.get();
  }

  // Ends all with UNAVAILABLE, and later ones at once.
  void Close() {
    std::vector<std::shared_ptr<PulledStream<Message>>> open;
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      for (const auto& [id, stream] : open_) open.push_back(stream);
    }
    for (const auto& stream : open) stream->End(ShuttingDown(how_to_resume_));
  }

  size_t size() const {
    std::lock_guard lock(mutex_);
    return open_.size();
  }

 private:
  friend class PulledStream<Message>;

  // The last share may go here: the stream and its source, without the lock.
  void Remove(uint64_t id) { Take(id, /*erase=*/true); }
  // The stream may be gone by the time it is pumped. Pumped without the lock: its source may read
  // the store, and nobody else is to wait for that.
  void Wake(uint64_t id) {
    pump_.Submit([this, id] {
      if (const auto stream = Take(id, /*erase=*/false)) stream->Pump();
    });
  }
  std::shared_ptr<PulledStream<Message>> Take(uint64_t id, bool erase) {
    std::lock_guard lock(mutex_);
    const auto found = open_.find(id);
    if (found == open_.end()) return nullptr;
    std::shared_ptr<PulledStream<Message>> stream = found->second;
    if (erase) open_.erase(found);
    return stream;
  }

  MethodStatistics::Method* const method_;
  const std::string how_to_resume_;
  // std, not absl: ThreadSanitizer does not see through Debian's Abseil.
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool closed_ = false;
  uint64_t last_id_ = 0;
  absl::flat_hash_map<uint64_t, std::shared_ptr<PulledStream<Message>>> open_;
  WorkerPool pump_;  // last: its thread uses the above
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_PULLED_STREAM_H_
