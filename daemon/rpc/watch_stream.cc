#include "daemon/rpc/watch_stream.h"

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/change_feed.h"
#include "daemon/manager/event_kinds.h"
#include "daemon/manager/event_log.h"
#include "daemon/rpc/conversion/fabric_conversion.h"
#include "daemon/rpc/conversion/identifiers.h"

namespace coppice {
namespace {

// Changes that a stream fetches at once: enough to spare the feed's lock, few enough to hold for
// each of thousands of slow watchers.
constexpr size_t kFetchedChanges = 32;

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
  ASSIGN_OR_RETURN(args.detail, coppice::FromProto(request.view()));
  if (args.detail == TreeDetail::kRank) {
    return absl::InvalidArgumentError(
        "view: RANK is of one rank; watch with SUMMARY or FULL, then get the rank's part");
  }
  return args;
}

constexpr std::pair<TreeChangeKind, v1::TreeChangeKind> kChangeKinds[] = {
    {TreeChangeKind::kPresent, v1::TREE_CHANGE_KIND_PRESENT},
    {TreeChangeKind::kSynced, v1::TREE_CHANGE_KIND_SYNCED},
    {TreeChangeKind::kGranted, v1::TREE_CHANGE_KIND_GRANTED},
    {TreeChangeKind::kRevised, v1::TREE_CHANGE_KIND_REVISED},
    {TreeChangeKind::kRevoked, v1::TREE_CHANGE_KIND_REVOKED},
    {TreeChangeKind::kReleased, v1::TREE_CHANGE_KIND_RELEASED}};

class ChangeSource final : public MessageSource<v1::TreeChange> {
 public:
  ChangeSource(std::unique_ptr<TreeWatch> watch, TreeDetail detail)
      : watch_(std::move(watch)), detail_(detail) {}

  absl::StatusOr<bool> Next(v1::TreeChange& message) override {
    if (waiting_.empty()) {
      ASSIGN_OR_RETURN(std::vector<TreeChange> changes, watch_->Next(kFetchedChanges));
      for (TreeChange& change : changes) waiting_.push_back(std::move(change));
    }
    if (waiting_.empty()) return false;
    ToProto(waiting_.front(), detail_, message);
    waiting_.pop_front();
    return true;
  }
  bool over() const override { return watch_->over(); }

 private:
  const std::unique_ptr<TreeWatch> watch_;
  const TreeDetail detail_;
  std::deque<TreeChange> waiting_;
};

}  // namespace

void ToProto(const TreeChange& change, TreeDetail detail, v1::TreeChange& message) {
  message.Clear();
  message.set_kind(WireOf(kChangeKinds, change.kind));
  message.set_resume_token(change.resume_token);
  message.set_reason(change.reason);
  if (change.tree.record == nullptr) return;
  if (detail == TreeDetail::kFull) {
    FullToProto(change.tree, *message.mutable_tree());
  } else {
    SummaryToProto(change.tree, *message.mutable_tree());
  }
}

grpc::ServerWriteReactor<v1::TreeChange>* OpenWatchStream(WatchStreams& streams, Manager* manager,
                                                          const v1::WatchTreesRequest& request) {
  return streams.Open(request.job_id().empty() ? "trees" : JobObject(request.job_id()),
                      [&](std::function<void()> wake) -> absl::StatusOr<WatchStreams::Source> {
                        ASSIGN_OR_RETURN(const WatchArgs args, ArgsOf(request));
                        ASSIGN_OR_RETURN(
                            std::unique_ptr<TreeWatch> watch,
                            manager->WatchTrees(args.job, request.resume_token(), std::move(wake)));
                        return std::make_unique<ChangeSource>(std::move(watch), args.detail);
                      });
}

namespace {

// Events that a stream fetches at once: enough to spare the feed's lock and the store, few enough
// to hold for each of thousands of slow watchers.
constexpr uint32_t kFetchedEvents = 64;

class EventMessages final : public MessageSource<v1::Event> {
 public:
  explicit EventMessages(std::unique_ptr<EventWatch> watch) : watch_(std::move(watch)) {}

  absl::StatusOr<bool> Next(v1::Event& message) override {
    if (waiting_.empty()) {
      ASSIGN_OR_RETURN(const std::vector<EventWatch::Event> events, watch_->Next(kFetchedEvents));
      waiting_.assign(events.begin(), events.end());
    }
    if (waiting_.empty()) return false;
    ToProto(*waiting_.front(), message);
    waiting_.pop_front();
    return true;
  }

 private:
  const std::unique_ptr<EventWatch> watch_;
  std::deque<EventWatch::Event> waiting_;
};

}  // namespace

grpc::ServerWriteReactor<v1::Event>* OpenEventStream(EventStreams& streams, Manager* manager,
                                                     const v1::WatchEventsRequest& request) {
  std::optional<int64_t> after;
  if (request.has_after_id()) after = request.after_id();
  return streams.Open(
      "events", [&](std::function<void()> wake) -> absl::StatusOr<EventStreams::Source> {
        RETURN_IF_ERROR(CheckKindPrefix(request.kind_prefix()));
        ASSIGN_OR_RETURN(std::unique_ptr<EventWatch> watch,
                         manager->WatchEvents(FromProto(request), after, std::move(wake)));
        return std::make_unique<EventMessages>(std::move(watch));
      });
}

}  // namespace coppice
