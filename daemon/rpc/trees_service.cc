#include "daemon/rpc/trees_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/listing_page.h"
#include "daemon/rpc/calls/peer.h"
#include "daemon/rpc/calls/unary.h"
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

grpc::ServerUnaryReactor* TreesService::CreateTree(grpc::CallbackServerContext* context,
                                                   const v1::CreateTreeRequest* request,
                                                   v1::Tree* response) {
  return Plan(
      context,
      peers_->Authorise(*context, "/coppice.v1.Trees/CreateTree", JobObject(request->job_id())),
      create_tree_, *request, request->validate_only(), response);
}

grpc::ServerUnaryReactor* TreesService::AdviseTree(grpc::CallbackServerContext* context,
                                                   const v1::CreateTreeRequest* request,
                                                   v1::Tree* response) {
  return Plan(
      context,
      peers_->Authorise(*context, "/coppice.v1.Trees/AdviseTree", JobObject(request->job_id())),
      advise_tree_, *request, true, response);
}

grpc::ServerUnaryReactor* TreesService::Plan(grpc::CallbackServerContext* context,
                                             const absl::StatusOr<Peer>& peer,
                                             MethodStatistics::Method* method,
                                             const v1::CreateTreeRequest& request, bool advise,
                                             v1::Tree* response) {
  auto* const reactor = new UnaryCall(method, peers_, context);
  if (!peer.ok()) return Finish(reactor, peer.status(), JobObject(request.job_id()));
  absl::StatusOr<CreateTreeArgs> args = FromProto(request, max_ranks_);
  if (!args.ok()) return Finish(reactor, args.status(), JobObject(request.job_id()));
  if (!advise) {  // advice takes nothing: it may be of others' jobs
    const absl::Status allowed = MayChangeJob(*manager_, *peers_, *peer, args->job);
    if (!allowed.ok()) return Finish(reactor, allowed, JobObject(request.job_id()));
    args->actor = ActorOf(*peer);
  }
  // `request` lives until the call is finished.
  auto answer = [this, reactor, response, &request](absl::StatusOr<TreeView> tree) {
    if (!tree.ok()) {
      Finish(reactor, tree.status(), JobObject(request.job_id()));
      return;
    }
    const size_t ranks = tree->record->ranks.size();
    AnswerRanks(workers_, reactor, ranks, [reactor, response, tree = *std::move(tree)] {
      FullToProto(tree, *response);
      reactor->Answer(grpc::Status::OK);
    });
  };
  // Planning takes from a fraction of a millisecond to many: not on a thread of gRPC, where the
  // next caller could not be heard, and callers take turns.
  return RunLater(workers_, reactor, JobObject(request.job_id()),
                  [this, advise, args = *std::move(args), answer]() mutable {
                    if (advise) {
                      answer(manager_->AdviseTree(args));
                    } else {
                      manager_->CreateTree(std::move(args), answer);
                    }
                  });
}

grpc::ServerWriteReactor<v1::BatchCreateTreesUpdate>* TreesService::BatchCreateTrees(
    grpc::CallbackServerContext* context, const v1::BatchCreateTreesRequest* request) {
  const std::shared_ptr<BatchStream> stream =
      BatchStream::Open("batch", JobObject(request->job_id()), batch_create_trees_);
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Trees/BatchCreateTrees",
                                      JobObject(request->job_id()));
  absl::StatusOr<TreeDetail> detail = BatchDetail(request->view());
  absl::Status status = peer.ok() ? detail.status() : peer.status();
  if (status.ok()) status = stream->RoomOn(*batch_workers_, kMaxWaitingBatches);
  absl::StatusOr<CreateBatchArgs> args;
  if (status.ok()) status = (args = FromProto(*request, max_ranks_)).status();
  if (status.ok() && !args->validate_only) {
    status = MayChangeJob(*manager_, *peers_, *peer, args->job);
    args->actor = ActorOf(*peer);
  }
  if (!status.ok()) {
    stream->End(status);
    return stream.get();
  }
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
    grpc::CallbackServerContext*, const v1::WatchTreesRequest* request) {
  return OpenWatchStream(watches_, manager_, *request);
}

grpc::ServerUnaryReactor* TreesService::GetTree(grpc::CallbackServerContext*,
                                                const v1::GetTreeRequest* request,
                                                v1::Tree* response) {
  auto* const reactor = new UnaryCall(get_tree_);
  const absl::StatusOr<TreeView> tree = Find(*request);
  AnswerRanks(workers_, reactor, tree.ok() ? tree->record->ranks.size() : 0,
              [this, reactor, request, response, tree] {
                const absl::Status status =
                    tree.ok() ? Tell(*tree, *request, *response) : tree.status();
                Finish(reactor, status, TreeObject(request->id()));
              });
  return reactor;
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

grpc::ServerUnaryReactor* TreesService::ListTrees(grpc::CallbackServerContext*,
                                                  const v1::ListTreesRequest* request,
                                                  v1::ListTreesResponse* response) {
  return AnswerLater(workers_, list_trees_, "trees",
                     [this, request, response] { return List(*request, *response); });
}

absl::Status TreesService::List(const v1::ListTreesRequest& request,
                                v1::ListTreesResponse& response) {
  JobId job;
  if (!request.job_id().empty()) {
    ASSIGN_OR_RETURN(job, ParseJobId(request.job_id()));
    RETURN_IF_ERROR(manager_->GetJob(job).status());
  }
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(const int64_t after, ParseIdToken(request.page_token()));
  // One more than a page tells whether another follows.
  const std::vector<TreeView> trees = manager_->ListTrees(job, TreeId(after), size + 1);
  const size_t shown = FillPage(trees.size(), size, [&](size_t i) -> const v1::Tree& {
    SummaryToProto(trees[i], *response.add_trees());
    return response.trees(static_cast<int>(i));
  });
  if (shown < trees.size()) {
    response.set_next_page_token(absl::StrCat(trees[shown - 1].record->id.value()));
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* TreesService::ReleaseTree(grpc::CallbackServerContext* context,
                                                    const v1::ReleaseTreeRequest* request,
                                                    v1::ReleaseTreeResponse*) {
  auto* const reactor = new UnaryCall(release_tree_, peers_, context);
  const auto peer =
      peers_->Authorise(*context, "/coppice.v1.Trees/ReleaseTree", TreeObject(request->id()));
  if (!peer.ok()) return Finish(reactor, peer.status(), TreeObject(request->id()));
  const absl::StatusOr<TreeId> id = ParseTreeId(request->id());
  if (!id.ok()) return Finish(reactor, id.status(), TreeObject(request->id()));
  const absl::Status allowed = MayChangeTree(*manager_, *peers_, *peer, *id);
  if (!allowed.ok()) return Finish(reactor, allowed, TreeObject(request->id()));
  manager_->ReleaseTree(
      *id,
      [reactor, request](absl::StatusOr<TreeId> released) {
        Finish(reactor, released.status(), released.ok() ? "" : TreeObject(request->id()));
      },
      ActorOf(*peer));
  return reactor;
}

}  // namespace coppice
