// The use cases of trees: grant one, or many communicators of one job planned together and granted
// in one step, advise, release.
//
//   check -> begin -> plan, unlocked -> reserve all -> installed -> durable -> tables -> answer
//              |       ^     |             |              |            |
//            error     |   error,        stale        a switch       failed: all undone, error
//                      |   cancelled       |          refused: undone, and gone round
//                      +-------------------+--------------+
//                plan again (kMaxAttempts, then ABORTED)
//
// Trees whose serving switches all speak are installed in these before they are written: what is
// durable is there. Others are written at once (switches/installation.h). What switches refused is
// planned again on one thread of its own, one tree after the other: who tells of a refusal is the
// installer's timer, or whoever brings what a switch says, and neither may be held for a plan.
//
// Why nothing leaks when grants race with the end of their job: the store applies mutations in some
// order and answers in that order. A grant before the end is entered in the table by its callback
// and taken out by the end's; a grant after the end is refused by the store, and its callback gives
// the reservation back. Of a batch nothing is there by half: the store applies ChangeTrees whole or
// not at all.
//
// A batch is named by its request_id; its trees' names say which batch and communicator they are
// of, so the trees alone tell a later run of the daemon what the batch was granted.
#ifndef COPPICE_DAEMON_MANAGER_GRANTS_H_
#define COPPICE_DAEMON_MANAGER_GRANTS_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/manager/background.h"
#include "daemon/manager/jobs.h"
#include "daemon/manager/planner_work.h"
#include "daemon/manager/requests.h"
#include "daemon/manager/store_calls.h"
#include "daemon/manager/switches/switches.h"
#include "daemon/manager/tables.h"
#include "daemon/manager/tree_draft.h"

namespace coppice {

// Thread-safe. Methods as Manager's of the same name.
class Grants : private UseCase {
 public:
  // Plans of one request before it is ABORTED. Each failed attempt means that another grant, or a
  // sweep, succeeded meanwhile, or that a switch refused what it was counted to have.
  static constexpr int kMaxAttempts = 8;
  // How long a grant waits for what was lent of its tenant's entries.
  static constexpr absl::Duration kMaxAwaitLent = absl::Seconds(5);
  static constexpr std::chrono::milliseconds kLookForLent{2};
  using Batch = std::shared_ptr<const BatchView>;

  Grants(const UseCase& with, Jobs* jobs) : UseCase(with), jobs_(jobs) { Start(); }
  ~Grants() { Stop(); }

  // The thread that plans again; it runs from the beginning. Both idempotent. Stop finishes what it
  // was given, and until Start what is refused is UNAVAILABLE; the installer is stopped before.
  void Start() {
    again_.Start([this] { PlanAgain(); });
  }
  void Stop() { again_.Stop(); }

  // Enters the trees of an earlier run. DATA_LOSS: a tree of a job that is not active.
  absl::Status Restore(std::vector<TreeRecord> trees, TreeId last);

  void CreateTree(CreateTreeArgs args, Callback<TreeView> done);
  absl::StatusOr<TreeView> AdviseTree(const CreateTreeArgs& args);
  void BatchCreateTrees(CreateBatchArgs args, const BatchWatch& watch, Callback<Batch> done);
  void Release(TreeId id, Callback<TreeId> done, const Actor& actor = {});

 private:
  // What is under way for a job: its name, and how many trees count as in flight for it.
  struct Begun {
    std::shared_ptr<Job> job;
    std::string request_id;
    uint32_t wanted = 0;
  };
  // Trees with ids that hold their entries and are on their way to the store.
  using Reserved = std::vector<std::shared_ptr<GrantedTree>>;
  // What attempts found out for the next.
  struct Detour {
    AvoidedSwitches avoided;
    LentEntries lent;           // that others are to give back first
    absl::Status beyond_share;  // why some are avoided
  };
  // A tree that is asked for, until it is answered. Used by one thread at a time.
  struct Creation {
    Begun begun;
    CreateTreeArgs args;
    uint64_t fingerprint = 0;
    Callback<TreeView> done;
    int attempts = 0;  // that were made
    Detour detour;
    absl::Duration lent_until;  // by the machine's clock: what is lent is not waited for any longer
  };
  struct ReservedBatch {
    Reserved trees;
    std::shared_ptr<BatchView> view;  // without views of trees
  };

  // Of its payer, before a plan for the job.
  absl::StatusOr<PlannerWork> BeginWork(const JobRecord& job, const Actor& actor);
  // With why switches were avoided, if it is refused without those.
  static absl::Status WithShare(const absl::Status& planned, const Detour& detour);
  // As NamedRequests has it: true with `begun.wanted` trees in flight for the job. `made` answers
  // what was granted before.
  template <class Requests, class Made>
  bool Begin(Requests& requests, const Begun& begun, uint64_t fingerprint, const Made& made,
             typename Requests::Callback& done);
  // The end of what was begun: the store has taken `trees`, which enter the tables before `answer`
  // is asked with the lock held, or `status` is why they are not granted.
  template <class Requests, class Id, class Answer>
  void Finish(Requests& requests, const Begun& begun, const Reserved& trees, Id id,
              const absl::Status& status, const Answer& answer, typename Requests::Callback done);
  // nullopt: what was planned on is gone, or what a batch found room for by `room`. Otherwise the
  // trees have ids and hold their entries. `detour` gets what the next attempt is to go round, or
  // to wait for.
  absl::StatusOr<std::optional<Reserved>> TryReserve(const std::shared_ptr<Job>& job,
                                                     const PlanBasis& basis, const Actor& actor,
                                                     absl::Span<TreeDraft> drafts,
                                                     const BatchRoom* room, Detour& detour);
  bool IsGivingWay(const LentEntries& lent) const;
  // For kMaxAwaitLent at most.
  void AwaitLent(const LentEntries& lent);
  // Plans go round the switches where nobody has given way; nothing is lent any more.
  void EndLent(Detour& detour) const;

  // `basis` becomes what the draft stands on: it goes over bare links where the tables are behind.
  // `full` gets the switches that kept type II away.
  absl::StatusOr<TreeDraft> Plan(PlanBasis& basis, const Job& job, const CreateTreeArgs& args,
                                 const AvoidedSwitches& avoided, std::vector<RefusedSwitch>& full);
  absl::StatusOr<Reserved> PlanAndReserve(Creation& creation);
  // Plans, reserves, installs and submits; again, round whoever refuses, until it is answered.
  void Proceed(const std::shared_ptr<Creation>& creation);
  // Proceed on the thread for that.
  void ProceedLater(const std::shared_ptr<Creation>& creation);
  void PlanAgain();
  // The first of `refused_` that has nothing to wait for any more; null: none. With again_mutex_.
  std::shared_ptr<Creation> TakeReady();
  void SubmitGrant(const std::shared_ptr<Creation>& creation, Reserved trees);
  void FinishCreation(Creation& creation, const Reserved& trees, const absl::Status& status);
  // Those that switches are to carry.
  static std::vector<CarriedTree> CarriedOf(const Reserved& trees);
  // Entries and quotas of trees that do not go to the store.
  void GiveBack(const Reserved& trees);
  // The same of a batch: all of it goes over bare links where more communicators get trees so.
  absl::StatusOr<BatchDraft> Plan(PlanBasis& basis, const Job& job, const CreateBatchArgs& args,
                                  const AvoidedSwitches& avoided, const BatchWatch& watch,
                                  std::vector<SwitchCapacity>& capacity,
                                  std::vector<RefusedSwitch>& full);
  absl::StatusOr<ReservedBatch> PlanAndReserve(const std::shared_ptr<Job>& job,
                                               const CreateBatchArgs& args, uint64_t fingerprint,
                                               const BatchWatch& watch);
  Batch Recall(const Job& job, const CreateBatchArgs& args) const;
  absl::StatusOr<Batch> AdviseBatch(const std::shared_ptr<Job>& job, const CreateBatchArgs& args,
                                    const BatchWatch& watch);
  void OnReleased(GrantedTree& tree, const absl::Status& status);

  Jobs* const jobs_;
  std::mutex again_mutex_;
  std::condition_variable again_changed_;
  std::deque<std::shared_ptr<Creation>> refused_;  // guarded by again_mutex_
  LoopThread again_{again_mutex_, again_changed_};
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_GRANTS_H_
