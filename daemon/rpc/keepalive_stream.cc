#include "daemon/rpc/keepalive_stream.h"

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/error_details.h"
#include "daemon/rpc/identifiers.h"
#include "daemon/rpc/jobs_conversion.h"
#include "proto/request_check.h"

namespace coppice {
namespace {

absl::Status ShuttingDown() {
  return absl::UnavailableError("daemon: it is shutting down; connect again and go on");
}

}  // namespace

KeepAliveStream* KeepAliveStreams::Open(Manager* manager, const Peers* peers,
                                        const absl::StatusOr<Peer>& peer) {
  method_->Opened();
  auto* const stream = new KeepAliveStream(this, manager, peers, peer.ok() ? *peer : Peer());
  absl::Status status = peer.status();
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok() && closed_) status = ShuttingDown();
    open_.insert(stream);
    // Begun under the lock: the stream may be done, and gone, as soon as it has begun.
    if (status.ok()) stream->Begin();
  }
  if (!status.ok()) stream->End(status);
  return stream;
}

void KeepAliveStreams::Close() {
  // Under the lock, so that no stream goes away (OnDone takes the lock) while it is ended.
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  for (KeepAliveStream* stream : open_) stream->End(ShuttingDown());
}

size_t KeepAliveStreams::size() const {
  absl::MutexLock lock(&mutex_);
  return open_.size();
}

void KeepAliveStreams::Remove(KeepAliveStream* stream) {
  absl::MutexLock lock(&mutex_);
  open_.erase(stream);
}

void KeepAliveStream::End(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
  }
  streams_->method_->Closed(status.code());
  Finish(ToWire(status, "keepalive"));
}

void KeepAliveStream::OnReadDone(bool ok) {
  if (!ok) return End(TakeRefusal());  // OK: the client has sent its last
  const absl::Status status = Answer();
  request_ = {};  // the next may be long in coming
  if (!status.ok()) return End(status);
  absl::MutexLock lock(&mutex_);
  if (!ended_) StartWrite(&response_);
}

void KeepAliveStream::OnWriteDone(bool ok) {
  if (!ok) return End(absl::OkStatus());
  absl::MutexLock lock(&mutex_);
  if (!ended_) StartRead(&request_);
}

void KeepAliveStream::OnCancel() { End(absl::CancelledError("keepalive: the client went away")); }

void KeepAliveStream::OnDone() {
  streams_->Remove(this);
  delete this;
}

absl::Status KeepAliveStream::Answer() {
  ASSIGN_OR_RETURN(const JobId id, ParseJobId(request_.id()));
  response_.Clear();
  response_.set_id(request_.id());
  if (!peer_.is_administrator) {
    const absl::StatusOr<JobView> present = manager_->GetJob(id);
    // Of what is gone there is nothing to change, and everybody may know that it is.
    if (present.ok() && present->record->state == JobState::kActive) {
      RETURN_IF_ERROR(peers_->MayChange(peer_, *present->record));
    }
  }
  const absl::StatusOr<JobView> job = manager_->KeepAlive(id);
  if (absl::IsNotFound(job.status())) return absl::OkStatus();  // state UNSPECIFIED: never known
  RETURN_IF_ERROR(job.status());
  response_.set_state(ToProto(job->record->state));
  // Nothing is left of the lease of a job that has ended, or whose end is on its way to the disk.
  const bool is_renewed = job->lease_left > absl::ZeroDuration();
  *response_.mutable_lease() = ToDuration(is_renewed ? job->record->lease : absl::ZeroDuration());
  return absl::OkStatus();
}

}  // namespace coppice
