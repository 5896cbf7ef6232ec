// The Trees service: coppice/v1/trees.proto over the manager. Status codes are stated there.

#include "coppice/v1/trees.pb.h"
#include "daemon/rpc/calls/streams.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/trees_conversion.h"
#include "daemon/rpc/service.h"

namespace coppice {
namespace {

// Messages of calls that one call after another reuses, with the memory they have: a tree's answer
// is dozens of small allocations, made on one thread and freed on another, which is the dearest
// case for malloc. (In a protobuf arena each of these threads would have blocks of its own.)
//
//   idle --AllocateMessages--> a call's request and answer --Release, cleared--> idle
//                                                          --large-------------> freed
//
// Thread-safe. Outlives every call that was given messages.
template <class Request, class Response>
class MessagePool final : public grpc::MessageAllocator<Request, Response> {
 public:
  grpc::MessageHolder<Request, Response>* AllocateMessages() override {
    {
      std::lock_guard lock(mu_);
      if (!idle_.empty()) {
        Slot* const slot = idle_.back().release();  // Release owns it again
        idle_.pop_back();
        return slot;
      }
    }
    return new Slot(this);
  }

 private:
  // Together at most 16 MiB: a burst of calls, or of large trees, leaves no more behind.
  static constexpr size_t kMaxIdle = 256;
  static constexpr size_t kMaxBytesKept = 64 << 10;

  class Slot final : public grpc::MessageHolder<Request, Response> {
   public:
    explicit Slot(MessagePool* pool) : pool_(pool) {
      this->set_request(&request_);
      this->set_response(&response_);
    }
    void Release() override {
      std::unique_ptr<Slot> slot(this);
      if (request_.ByteSizeLong() + response_.ByteSizeLong() > kMaxBytesKept) return;
      request_.Clear();
      response_.Clear();
      pool_->Keep(std::move(slot));
    }

   private:
    MessagePool* const pool_;
    Request request_;
    Response response_;
  };

  void Keep(std::unique_ptr<Slot> slot) {
    std::lock_guard lock(mu_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(slot));
  }

  std::mutex mu_;
  std::vector<std::unique_ptr<Slot>> idle_;  // guarded by mu_
};

// [BatchWatch::Phase]
constexpr const char* kPhases[] = {"planning", "improving", "hanging ranks", "granting"};

void ToProto(const BatchComparison::Totals& totals, v1::BatchTotals& message) {
  message.set_admitted(totals.numbers.admitted);
  message.set_refused(totals.numbers.failures);
  message.set_entries(totals.numbers.entries);
  message.set_farther_roots(totals.numbers.farther_roots);
  message.set_most_packets(totals.numbers.most_packets);
  message.set_most_loaded(totals.most_loaded);
}

void ToProto(const BatchComparison& comparison, v1::BatchComparison& message) {
  ToProto(comparison.batch, *message.mutable_batch());
  ToProto(comparison.one_by_one, *message.mutable_one_by_one());
  ToProto(comparison.unreduced, *message.mutable_unreduced());
  v1::BatchBounds& bounds = *message.mutable_bounds();
  bounds.set_entries_alone(comparison.bounds.alone);
  bounds.set_entries_counting(comparison.bounds.counting);
  bounds.set_no_nearest_root(comparison.bounds.no_nearest_root);
  bounds.set_refused(comparison.bounds.failures);
  bounds.set_most_packets(comparison.bounds.most_packets);
}

// What a switch that carries trees said. The manager outlives what it is told with.
std::function<std::optional<SwitchHello>(Guid)> HelloOfSwitch(Manager* manager) {
  return [manager](Guid guid) { return manager->switches().HelloOf(guid); };
}

std::shared_ptr<const Snapshot> SnapshotOf(const Manager& manager) {
  const std::shared_ptr<const FabricView> view = manager.fabric();
  return view == nullptr ? nullptr : view->snapshot;
}

// To whose job it is.
void ToProto(const BatchView::Tree& tree, TreeDetail detail, Manager& manager,
             v1::BatchTree& message) {
  message.set_communicator(tree.communicator);
  ToProto(tree.view, detail, SnapshotOf(manager).get(), *message.mutable_tree());
  if (detail != TreeDetail::kFull) return;
  CarriageToProto(*tree.view.record, HelloOfSwitch(&manager), *message.mutable_tree());
}

void ToProto(const BatchView& batch, v1::BatchSummary& summary) {
  uint32_t type1 = 0;
  uint64_t entries = 0;
  for (const BatchView::Tree& tree : batch.trees) {
    type1 += tree.view.record->type == 1 ? 1 : 0;
    entries += tree.view.record->switches.size();
  }
  summary.set_communicators(batch.communicators);
  summary.set_granted(static_cast<uint32_t>(batch.trees.size()));
  summary.set_type_i(type1);
  summary.set_entries(entries);
  summary.set_most_packets(batch.most_packets);
  summary.set_most_loaded(batch.most_loaded);
  for (const BatchView::Refusal& refusal : batch.refusals) {
    v1::BatchRefusal& told = *summary.add_refusals();
    told.set_communicator(refusal.communicator);
    told.set_why_not(refusal.why_not);
  }
  summary.set_fabric_version(batch.fabric_version);
  if (batch.comparison) ToProto(*batch.comparison, *summary.mutable_comparison());
}

void ToProto(BatchWatch::Phase phase, uint32_t done, uint32_t communicators,
             v1::BatchProgress& progress) {
  progress.set_phase(kPhases[static_cast<size_t>(phase)]);
  progress.set_planned(done);
  progress.set_communicators(communicators);
}

// Of the trees in a stream; `otherwise` if it is unspecified. INVALID_ARGUMENT: RANK.
absl::StatusOr<TreeDetail> StreamDetail(v1::TreeView view, TreeDetail otherwise) {
  if (view == v1::TREE_VIEW_UNSPECIFIED) return otherwise;
  ASSIGN_OR_RETURN(const TreeDetail detail, FromProto(view));
  if (detail != TreeDetail::kRank) return detail;
  return absl::InvalidArgumentError(
      "view: TREE_VIEW_RANK is of one rank of one tree; ask for SUMMARY or FULL, then get the "
      "rank's part");
}

// Of one caller. A batch holds up to some 16 MB of ranks while it waits, and may be planned for
// seconds.
constexpr size_t kMaxWaitingBatches = 8;

using BatchStream = UpdateStream<v1::BatchCreateTreesUpdate>;

// The trees one by one, then the summary.
BatchStream::Answers AnswersOf(std::shared_ptr<const BatchView> batch, TreeDetail detail,
                               Manager* manager) {
  return [batch = std::move(batch), detail, manager,
          written = size_t{0}](v1::BatchCreateTreesUpdate& update) mutable {
    if (written > batch->trees.size()) return false;
    if (written < batch->trees.size()) {
      ToProto(batch->trees[written], detail, *manager, *update.mutable_tree());
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

class TreesService final : public Service {
 public:
  explicit TreesService(const ServiceParts& parts)
      : Service("coppice.v1.Trees", parts),
        batch_workers_(&parts.pools->batches),
        max_ranks_(parts.options->max_job_ranks),
        watches_(CountStreams("WatchTrees"), "connect again and watch with the last resume token"),
        batches_(CountStreams("BatchCreateTrees")) {
    using S = TreesService;
    const auto job = [](const auto& request) { return JobObject(request.job_id()); };
    const auto tree = [](const auto& request) { return TreeObject(request.id()); };
    Unary("CreateTree", &S::Plan<false>, job, {.is_bulk = true, .is_change = true})
        .SetMessageAllocator(&created_);
    Unary("AdviseTree", &S::Plan<true>, job, {.is_bulk = true});
    Stream("BatchCreateTrees", &S::BatchCreateTrees, job, {.is_bulk = true, .is_change = true});
    Stream("WatchTrees", &S::WatchTrees, "trees");
    Unary("GetTree", &S::GetTree, tree);
    Unary("ListTrees", &S::ListTrees, "trees", {.pool = workers_});
    Unary("ReleaseTree", &S::ReleaseTree, tree, {.is_change = true})
        .SetMessageAllocator(&released_);
  }

  // Batches go on, for as long as the shutdown lets them.
  void CloseStreams() override { watches_.Close(); }

 private:
  // Converts what is asked for, then grants it, or with `kAdvise` only plans.
  template <bool kAdvise>
  void Plan(UnaryCall* call, const v1::CreateTreeRequest& request, v1::Tree& response) {
    const bool advise = kAdvise || request.validate_only();
    absl::StatusOr<CreateTreeArgs> args = FromProto(request, max_ranks_);
    if (!args.ok()) return call->End(args.status());
    if (!advise) {  // advice takes nothing: it may be of others' jobs
      const absl::Status allowed = MayChangeJob(*manager_, *peers_, call->peer(), args->job);
      if (!allowed.ok()) return call->End(allowed);
      args->actor = ActorOf(call->peer());
    }
    // Of advice nothing is known: nobody will measure it.
    std::string application = advise ? "" : request.application();
    if (!application.empty()) {
      const absl::Status named = CheckApplication(application);
      if (!named.ok()) return call->End(named);
    }
    auto answer = [this, call, &response,
                   application = std::move(application)](absl::StatusOr<TreeView> tree) {
      if (!tree.ok()) return call->End(tree.status());
      const size_t ranks = tree->record->ranks.size();
      call->AnswerRanks(workers_, ranks, [=, this, &response, tree = *std::move(tree)] {
        if (!application.empty()) {
          for (const WayTime& time : manager_->FindTimes(tree, application)) {
            ToProto(time, *response.add_known());
          }
        }
        ToProto(tree, TreeDetail::kFull, SnapshotOf(*manager_).get(), response);
        CarriageToProto(*tree.record, HelloOfSwitch(manager_), response);  // its owner asked
        call->End(absl::OkStatus());
      });
    };
    // Planning takes from a fraction of a millisecond to many: not on a thread of gRPC, where the
    // next caller could not be heard, and callers take turns.
    call->RunOn(workers_, [this, is_advice = advise, args = *std::move(args), answer]() mutable {
      if (is_advice) {
        answer(manager_->AdviseTree(args));
      } else {
        manager_->CreateTree(std::move(args), answer);
      }
    });
  }

  grpc::ServerWriteReactor<v1::BatchCreateTreesUpdate>* BatchCreateTrees(
      const absl::StatusOr<Peer>& peer, const v1::BatchCreateTreesRequest& request) {
    return BatchStream::Open(
        batches_, JobObject(request.job_id()), peer.status(),
        [&](const auto& stream) { return BeginBatch(*peer, request, stream); });
  }

  absl::Status BeginBatch(const Peer& peer, const v1::BatchCreateTreesRequest& request,
                          const std::shared_ptr<BatchStream>& stream) {
    ASSIGN_OR_RETURN(const TreeDetail detail, StreamDetail(request.view(), TreeDetail::kFull));
    RETURN_IF_ERROR(stream->RoomOn(*batch_workers_, kMaxWaitingBatches));
    ASSIGN_OR_RETURN(CreateBatchArgs args, FromProto(request, max_ranks_));
    if (!args.validate_only) {
      RETURN_IF_ERROR(MayChangeJob(*manager_, *peers_, peer, args.job));
      args.actor = ActorOf(peer);
    }
    return stream->RunOn(
        batch_workers_,
        [manager = manager_, stream, args = std::move(args), detail]() mutable {
          BatchWatch watch;
          watch.progress = [stream](BatchWatch::Phase phase, uint32_t done,
                                    uint32_t communicators) {
            v1::BatchCreateTreesUpdate update;
            ToProto(phase, done, communicators, *update.mutable_progress());
            stream->Tell(std::move(update));
          };
          watch.is_cancelled = [stream] { return stream->is_over(); };
          manager->BatchCreateTrees(
              std::move(args), std::move(watch),
              [manager, stream, detail](absl::StatusOr<std::shared_ptr<const BatchView>> batch) {
                if (!batch.ok()) return stream->End(batch.status());
                const size_t held = BytesOf(**batch);
                stream->Answer(AnswersOf(*std::move(batch), detail, manager), held);
              });
        },
        kMaxWaitingBatches);
  }

  grpc::ServerWriteReactor<v1::TreeChange>* WatchTrees(const absl::StatusOr<Peer>&,
                                                       const v1::WatchTreesRequest& request) {
    using Streams = PulledStreams<v1::TreeChange>;
    return watches_.Open(
        request.job_id().empty() ? "trees" : JobObject(request.job_id()),
        [&](std::function<void()> wake) -> absl::StatusOr<Streams::Source> {
          JobId job;
          if (!request.job_id().empty()) {
            ASSIGN_OR_RETURN(job, ParseJobId(request.job_id()));
          }
          ASSIGN_OR_RETURN(const TreeDetail detail,
                           StreamDetail(request.view(), TreeDetail::kSummary));
          ASSIGN_OR_RETURN(std::unique_ptr<TreeWatch> watch,
                           manager_->WatchTrees(job, request.resume_token(), std::move(wake)));
          return SourceOf<v1::TreeChange>(
              std::move(watch),
              [manager = manager_, detail](const TreeChange& change, v1::TreeChange& message) {
                ToProto(change, detail, SnapshotOf(*manager).get(), message);
              });
        });
  }

  void GetTree(UnaryCall* call, const v1::GetTreeRequest& request, v1::Tree& response) {
    const absl::StatusOr<TreeView> tree = Find(request);
    call->AnswerRanks(
        workers_, tree.ok() ? tree->record->ranks.size() : 0,
        [this, call, &request, &response, tree] {
          call->End(tree.ok() ? Tell(*call, *tree, request, response) : tree.status());
        });
  }

  absl::StatusOr<TreeView> Find(const v1::GetTreeRequest& request) {
    ASSIGN_OR_RETURN(const TreeId id, ParseTreeId(request.id()));
    RETURN_IF_ERROR(FromProto(request.view()).status());
    return manager_->GetTree(id);
  }

  absl::Status Tell(const UnaryCall& call, const TreeView& tree, const v1::GetTreeRequest& request,
                    v1::Tree& response) {
    ASSIGN_OR_RETURN(const TreeDetail detail, FromProto(request.view()));
    const TreeRecord& record = *tree.record;
    const bool is_told = detail != TreeDetail::kSummary && !record.carriage.key.empty() &&
                         Peers::Owns(call.caller(), *tree.job);
    if (detail == TreeDetail::kRank) {
      const std::shared_ptr<const Snapshot> snapshot = SnapshotOf(*manager_);
      RETURN_IF_ERROR(RankToProto(
          tree, request.rank(), snapshot == nullptr ? nullptr : snapshot->fabric.get(), response));
      if (is_told) {
        CarriageToProto(record, request.rank(), HelloOfSwitch(manager_), response);
      }
      return absl::OkStatus();
    }
    ToProto(tree, detail, SnapshotOf(*manager_).get(), response);
    if (is_told) CarriageToProto(record, HelloOfSwitch(manager_), response);
    return absl::OkStatus();
  }

  absl::Status ListTrees(const v1::ListTreesRequest& request, v1::ListTreesResponse& response) {
    JobId job;
    if (!request.job_id().empty()) {
      ASSIGN_OR_RETURN(job, ParseJobId(request.job_id()));
      RETURN_IF_ERROR(manager_->GetJob(job).status());
    }
    ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
    ASSIGN_OR_RETURN(const int64_t after, ParseIdToken(request.page_token()));
    response.set_next_page_token(FillPage(
        manager_->ListTrees(job, TreeId(after), size + 1), size, response.mutable_trees(),
        [](const TreeView& tree, v1::Tree& message) {
          ToProto(tree, TreeDetail::kSummary, nullptr, message);
        },
        [](const TreeView& last) { return absl::StrCat(last.record->id.value()); }));
    return absl::OkStatus();
  }

  void ReleaseTree(UnaryCall* call, const v1::ReleaseTreeRequest& request,
                   v1::ReleaseTreeResponse&) {
    const absl::StatusOr<TreeId> id = ParseTreeId(request.id());
    absl::Status status = id.status();
    if (status.ok()) status = MayChangeTree(*manager_, *peers_, call->peer(), *id);
    if (!status.ok()) return call->End(status);
    const auto release = [this, call, id = *id] {
      manager_->ReleaseTree(
          id, [call](absl::StatusOr<TreeId> released) { call->End(released.status()); },
          ActorOf(call->peer()));
    };
    if (request.times().empty()) return release();
    const absl::StatusOr<std::vector<WayTime>> times = TimesFromProto(request);
    if (!times.ok()) return call->End(times.status());
    const absl::StatusOr<TreeView> tree = manager_->GetTree(*id);
    const size_t ranks = tree.ok() ? tree->record->ranks.size() : 0;
    // How all of its ranks lie is looked at.
    call->AnswerRanks(workers_, ranks, [this, call, &request, id = *id, times = *times, release] {
      const absl::Status added = manager_->AddTimes(id, request.application(), times);
      added.ok() ? release() : call->End(added);
    });
  }

  WorkerPool* const batch_workers_;
  const uint32_t max_ranks_;
  PulledStreams<v1::TreeChange> watches_;
  OpenStreams batches_;
  MessagePool<v1::CreateTreeRequest, v1::Tree> created_;
  MessagePool<v1::ReleaseTreeRequest, v1::ReleaseTreeResponse> released_;
};

std::unique_ptr<Service> MakeTreesService(const ServiceParts& parts) {
  return std::make_unique<TreesService>(parts);
}

}  // namespace coppice
