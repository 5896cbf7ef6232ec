#include "daemon/rpc/batch_stream.h"

#include <utility>

#include "daemon/rpc/error_details.h"
#include "daemon/rpc/trees_batch_conversion.h"

namespace coppice {

std::shared_ptr<BatchStream> BatchStream::Open(std::string object,
                                               MethodStatistics::Method* method) {
  method->Opened();
  std::shared_ptr<BatchStream> stream(new BatchStream(std::move(object), method));
  stream->self_ = stream;
  return stream;
}

void BatchStream::End(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
  }
  method_->Closed(status.code());
  Finish(ToWire(status, object_));
}

void BatchStream::Tell(BatchWatch::Phase phase, uint32_t done, uint32_t communicators) {
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  if (!progress_) progress_.emplace();
  ToProto(phase, done, communicators, *progress_);
  WriteNext();
}

void BatchStream::Answer(absl::StatusOr<std::shared_ptr<const BatchView>> batch,
                         TreeDetail detail) {
  if (!batch.ok()) return End(batch.status());
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  batch_ = *std::move(batch);
  detail_ = detail;
  WriteNext();
}

bool BatchStream::WriteNext() {
  if (writing_) return true;
  update_.Clear();
  if (progress_) {
    *update_.mutable_progress() = *std::exchange(progress_, std::nullopt);
  } else if (batch_ != nullptr && written_ < batch_->trees.size()) {
    ToProto(batch_->trees[written_++], detail_, *update_.mutable_tree());
  } else if (batch_ != nullptr && written_ == batch_->trees.size()) {
    ToProto(*batch_, *update_.mutable_summary());
    ++written_;
  } else {
    return batch_ == nullptr;
  }
  writing_ = true;
  StartWrite(&update_);
  return true;
}

void BatchStream::OnWriteDone(bool ok) {
  bool more = ok;
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (ended_) return;
    if (ok) more = WriteNext();
  }
  // Not ok: the client has gone, and the status reaches nobody.
  if (!more) End(absl::OkStatus());
}

void BatchStream::OnCancel() {
  is_cancelled_ = true;
  End(absl::CancelledError("batch: the client went away"));
}

void BatchStream::OnDone() {
  // The last share may be this one: then the stream goes with it.
  const std::shared_ptr<BatchStream> last = std::move(self_);
}

}  // namespace coppice
