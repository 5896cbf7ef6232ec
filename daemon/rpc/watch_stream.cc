#include "daemon/rpc/watch_stream.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/error_details.h"
#include "daemon/rpc/identifiers.h"

namespace coppice {
namespace {

// Changes that a stream fetches at once: enough to spare the feed's lock, few enough to hold for
// each of thousands of slow watchers.
constexpr size_t kFetched = 32;

absl::Status ShuttingDown() {
  return absl::UnavailableError(
      "daemon: it is shutting down; connect again and watch with the last resume token");
}

struct WatchArgs {
  JobId job;
  TreeDetail detail = TreeDetail::kSummary;
};

absl::StatusOr<WatchArgs> ArgsOf(const v1::WatchTreesRequest& request) {
  WatchArgs args;
  if (!request.job_id().empty()) {
    ASSIGN_OR_RETURN(args.job, ParseJobId(request.job_id()));
  }
  if (request.view() == v1::TREE_VIEW_UNSPECIFIED) return args;
  ASSIGN_OR_RETURN(args.detail, FromProto(request.view()));
  if (args.detail == TreeDetail::kRank) {
    return absl::InvalidArgumentError(
        "view: RANK is of one rank; watch with SUMMARY or FULL, then get the rank's part");
  }
  return args;
}

v1::TreeChangeKind ToProto(TreeChangeKind kind) {
  switch (kind) {
    case TreeChangeKind::kPresent:
      return v1::TREE_CHANGE_KIND_PRESENT;
    case TreeChangeKind::kSynced:
      return v1::TREE_CHANGE_KIND_SYNCED;
    case TreeChangeKind::kGranted:
      return v1::TREE_CHANGE_KIND_GRANTED;
    case TreeChangeKind::kRevised:
      return v1::TREE_CHANGE_KIND_REVISED;
    case TreeChangeKind::kRevoked:
      return v1::TREE_CHANGE_KIND_REVOKED;
    case TreeChangeKind::kReleased:
      return v1::TREE_CHANGE_KIND_RELEASED;
  }
  return v1::TREE_CHANGE_KIND_UNSPECIFIED;
}

}  // namespace

void ToProto(const TreeChange& change, TreeDetail detail, v1::TreeChange& message) {
  message.Clear();
  message.set_kind(ToProto(change.kind));
  message.set_resume_token(change.resume_token);
  message.set_reason(change.reason);
  if (change.tree.record == nullptr) return;
  if (detail == TreeDetail::kFull) {
    FullToProto(change.tree, *message.mutable_tree());
  } else {
    SummaryToProto(change.tree, *message.mutable_tree());
  }
}

WatchStream* WatchStreams::Open(const v1::WatchTreesRequest& request) {
  const absl::StatusOr<WatchArgs> args = ArgsOf(request);
  absl::Status status = args.status();
  const std::string object =
      request.job_id().empty() ? "trees" : absl::StrCat("job:", request.job_id());
  WatchStream* stream = nullptr;
  uint64_t id = 0;
  {
    std::lock_guard lock(mutex_);
    id = ++last_id_;
    stream = new WatchStream(this, id, args.ok() ? args->detail : TreeDetail::kSummary, object);
    if (closed_) status.Update(ShuttingDown());
    open_[id] = stream;
  }
  // Until the reactor is handed to gRPC, which its caller does, it cannot be done and gone unless
  // it was ended here.
  if (status.ok()) {
    absl::StatusOr<std::unique_ptr<TreeWatch>> watch =
        manager_->WatchTrees(args->job, request.resume_token(), [this, id] { Wake(id); });
    if (watch.ok()) {
      stream->Begin(*std::move(watch));
      return stream;
    }
    status = watch.status();
  }
  stream->End(status);
  return stream;
}

void WatchStreams::Close() {
  // Under the lock, so that no stream goes away (OnDone takes the lock) while it is ended.
  std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& [id, stream] : open_) stream->End(ShuttingDown());
}

void WatchStreams::Remove(uint64_t id) {
  std::lock_guard lock(mutex_);
  open_.erase(id);
}

void WatchStreams::Wake(uint64_t id) {
  pump_.Submit([this, id] {
    std::lock_guard lock(mutex_);
    if (const auto found = open_.find(id); found != open_.end()) found->second->Pump();
  });
}

void WatchStream::Begin(std::unique_ptr<TreeWatch> watch) {
  {
    std::lock_guard lock(mutex_);
    watch_ = std::move(watch);
  }
  Pump();
}

void WatchStream::Pump() {
  std::lock_guard lock(mutex_);
  if (ended_ || is_writing_) return;
  if (const absl::Status status = Fetch(); !status.ok()) return EndLocked(status);
  if (waiting_.empty()) {
    if (watch_->over()) EndLocked(absl::OkStatus());
    return;
  }
  ToProto(waiting_.front(), detail_, message_);
  waiting_.pop_front();
  is_writing_ = true;
  StartWrite(&message_);
}

absl::Status WatchStream::Fetch() {
  if (!waiting_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<TreeChange> changes, watch_->Next(kFetched));
  for (TreeChange& change : changes) waiting_.push_back(std::move(change));
  return absl::OkStatus();
}

void WatchStream::End(const absl::Status& status) {
  std::lock_guard lock(mutex_);
  EndLocked(status);
}

void WatchStream::EndLocked(const absl::Status& status) {
  if (ended_) return;
  ended_ = true;
  Finish(ToWire(status, object_));
}

void WatchStream::OnWriteDone(bool ok) {
  {
    std::lock_guard lock(mutex_);
    is_writing_ = false;
  }
  if (!ok) return End(absl::CancelledError("watch: the client went away"));
  Pump();
}

void WatchStream::OnCancel() { End(absl::CancelledError("watch: the client went away")); }

void WatchStream::OnDone() {
  streams_->Remove(id_);
  delete this;
}

}  // namespace coppice
