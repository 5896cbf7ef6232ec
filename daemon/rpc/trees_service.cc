#include "daemon/rpc/trees_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/update_stream.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/trees_batch_conversion.h"
#include "daemon/rpc/conversion/trees_conversion.h"

namespace coppice {
namespace {

// Of one caller. A batch holds up to some 16 MB of ranks while it waits, and may be planned for
// seconds.
constexpr size_t kMaxWaitingBatches = 8;

using BatchStream = UpdateStream<v1::BatchCreateTreesUpdate>;

// The trees one by one, then the summary.
BatchStream::Answers AnswersOf(std::shared_ptr<const BatchView> batch, TreeDetail detail) {
  return [batch = std::move(batch), detail,
          written = size_t{0}](v1::BatchCreateTreesUpdate& update) mutable {
    if (written > batch->trees.size()) return false;
    if (written < batch->trees.size()) {
      ToProto(batch->trees[written], detail, *update.mutable_tree());
    } else {
      ToProto(*batch, *update.mutable_summary());
    }
    ++written;
    return true;
  };
}

// What the trees take until the last has been read: those that are granted are the tables', too.
size_t BytesOf(const BatchView& batch) {
  size_t bytes = 0;
  for (const BatchView::Tree& tree : batch.trees) {
    bytes += sizeof(TreeRecord) + sizeof(uint32_t) * tree.view.record->ranks.size();
  }
  return bytes;
}

}  // namespace

TreesService::TreesService(Manager* manager, WorkerPool* workers, WorkerPool* batch_workers,
                           Peers* peers, MethodStatistics* statistics, uint32_t max_ranks)
    : Service("coppice.v1.Trees", peers, statistics),
      manager_(manager),
      workers_(workers),
      batch_workers_(batch_workers),
      max_ranks_(max_ranks),
      watches_(statistics->AddStream("Trees.WatchTrees"),
               "connect again and watch with the last resume token"),
      batch_create_trees_(statistics->AddStream("Trees.BatchCreateTrees")) {
  using S = TreesService;
  const auto job = [](const auto& request) { return JobObject(request.job_id()); };
  const auto tree = [](const auto& request) { return TreeObject(request.id()); };
  Unary("CreateTree", &S::CreateTree, job, {.is_bulk = true, .is_change = true})
      .SetMessageAllocator(&created_);
  Unary("AdviseTree", &S::AdviseTree, job, {.is_bulk = true});
  Stream("BatchCreateTrees", &S::BatchCreateTrees, {.is_bulk = true, .is_change = true});
  Stream("WatchTrees", &S::WatchTrees);
  Unary("GetTree", &S::GetTree, tree);
  Unary("ListTrees", &S::ListTrees, "trees", {.pool = workers});
  Unary("ReleaseTree", &S::ReleaseTree, tree, {.is_change = true}).SetMessageAllocator(&released_);
}

void TreesService::CreateTree(UnaryCall* call, const v1::CreateTreeRequest& request,
                              v1::Tree& response) {
  Plan(call, request, request.validate_only(), response);
}

void TreesService::AdviseTree(UnaryCall* call, const v1::CreateTreeRequest& request,
                              v1::Tree& response) {
  Plan(call, request, true, response);
}

void TreesService::Plan(UnaryCall* call, const v1::CreateTreeRequest& request, bool advise,
                        v1::Tree& response) {
  absl::StatusOr<CreateTreeArgs> args = FromProto(request, max_ranks_);
  if (!args.ok()) return call->End(args.status());
  if (!advise) {  // advice takes nothing: it may be of others' jobs
    const absl::Status allowed = MayChangeJob(*manager_, *peers_, call->peer(), args->job);
    if (!allowed.ok()) return call->End(allowed);
    args->actor = ActorOf(call->peer());
  }
  auto answer = [this, call, &response](absl::StatusOr<TreeView> tree) {
    if (!tree.ok()) return call->End(tree.status());
    const size_t ranks = tree->record->ranks.size();
    call->AnswerRanks(workers_, ranks, [call, &response, tree = *std::move(tree)] {
      FullToProto(tree, response);
      call->End(absl::OkStatus());
    });
  };
  // Planning takes from a fraction of a millisecond to many: not on a thread of gRPC, where the
  // next caller could not be heard, and callers take turns.
  call->RunOn(workers_, [this, advise, args = *std::move(args), answer]() mutable {
    if (advise) {
      answer(manager_->AdviseTree(args));
    } else {
      manager_->CreateTree(std::move(args), answer);
    }
  });
}

grpc::ServerWriteReactor<v1::BatchCreateTreesUpdate>* TreesService::BatchCreateTrees(
    const grpc::CallbackServerContext& context, const v1::BatchCreateTreesRequest& request) {
  const std::string object = JobObject(request.job_id());
  const std::shared_ptr<BatchStream> stream =
      BatchStream::Open("batch", object, batch_create_trees_);
  const auto peer = peers_->Authorise(context, "/coppice.v1.Trees/BatchCreateTrees", object);
  absl::StatusOr<TreeDetail> detail = BatchDetail(request.view());
  absl::Status status = peer.ok() ? detail.status() : peer.status();
  if (status.ok()) status = stream->RoomOn(*batch_workers_, kMaxWaitingBatches);
  absl::StatusOr<CreateBatchArgs> args;
  if (status.ok()) status = (args = FromProto(request, max_ranks_)).status();
  if (status.ok() && !args->validate_only) {
    status = MayChangeJob(*manager_, *peers_, *peer, args->job);
    args->actor = ActorOf(*peer);
  }
  if (!status.ok()) return stream->End(status), stream.get();
  const absl::Status queued = stream->RunOn(
      batch_workers_,
      [manager = manager_, stream, args = *std::move(args), detail = *detail]() mutable {
        BatchWatch watch;
        watch.progress = [stream](BatchWatch::Phase phase, uint32_t done, uint32_t communicators) {
          v1::BatchCreateTreesUpdate update;
          ToProto(phase, done, communicators, *update.mutable_progress());
          stream->Tell(std::move(update));
        };
        watch.is_cancelled = [stream] { return stream->is_cancelled(); };
        manager->BatchCreateTrees(
            std::move(args), std::move(watch),
            [stream, detail](absl::StatusOr<std::shared_ptr<const BatchView>> batch) {
              if (!batch.ok()) return stream->End(batch.status());
              const size_t held = BytesOf(**batch);
              stream->Answer(AnswersOf(*std::move(batch), detail), held);
            });
      },
      kMaxWaitingBatches);
  if (!queued.ok()) stream->End(queued);
  return stream.get();
}

grpc::ServerWriteReactor<v1::TreeChange>* TreesService::WatchTrees(
    const grpc::CallbackServerContext&, const v1::WatchTreesRequest& request) {
  return OpenWatchStream(watches_, manager_, request);
}

void TreesService::GetTree(UnaryCall* call, const v1::GetTreeRequest& request, v1::Tree& response) {
  const absl::StatusOr<TreeView> tree = Find(request);
  call->AnswerRanks(workers_, tree.ok() ? tree->record->ranks.size() : 0,
                    [this, call, &request, &response, tree] {
                      call->End(tree.ok() ? Tell(*tree, request, response) : tree.status());
                    });
}

absl::StatusOr<TreeView> TreesService::Find(const v1::GetTreeRequest& request) {
  ASSIGN_OR_RETURN(const TreeId id, ParseTreeId(request.id()));
  RETURN_IF_ERROR(FromProto(request.view()).status());
  return manager_->GetTree(id);
}

absl::Status TreesService::Tell(const TreeView& tree, const v1::GetTreeRequest& request,
                                v1::Tree& response) {
  ASSIGN_OR_RETURN(const TreeDetail detail, FromProto(request.view()));
  switch (detail) {
    case TreeDetail::kFull:
      FullToProto(tree, response);
      break;
    case TreeDetail::kSummary:
      SummaryToProto(tree, response);
      break;
    case TreeDetail::kRank: {
      const std::shared_ptr<const FabricView> view = manager_->fabric();
      return RankToProto(tree, request.rank(),
                         view == nullptr ? nullptr : view->snapshot->fabric.get(), response);
    }
  }
  return absl::OkStatus();
}

absl::Status TreesService::ListTrees(const v1::ListTreesRequest& request,
                                     v1::ListTreesResponse& response) {
  JobId job;
  if (!request.job_id().empty()) {
    ASSIGN_OR_RETURN(job, ParseJobId(request.job_id()));
    RETURN_IF_ERROR(manager_->GetJob(job).status());
  }
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(const int64_t after, ParseIdToken(request.page_token()));
  response.set_next_page_token(FillPage(
      manager_->ListTrees(job, TreeId(after), size + 1), size, response.mutable_trees(),
      [](const TreeView& tree, v1::Tree& message) { SummaryToProto(tree, message); },
      [](const TreeView& last) { return absl::StrCat(last.record->id.value()); }));
  return absl::OkStatus();
}

void TreesService::ReleaseTree(UnaryCall* call, const v1::ReleaseTreeRequest& request,
                               v1::ReleaseTreeResponse&) {
  const absl::StatusOr<TreeId> id = ParseTreeId(request.id());
  absl::Status status = id.status();
  if (status.ok()) status = MayChangeTree(*manager_, *peers_, call->peer(), *id);
  if (!status.ok()) return call->End(status);
  manager_->ReleaseTree(
      *id, [call](absl::StatusOr<TreeId> released) { call->End(released.status()); },
      ActorOf(call->peer()));
}

}  // namespace coppice
