// The use cases of placements: choose nodes and hold them, advise, renew, start as a job, release,
// expire.
//
//   Create:  check --> plan, unlocked --> take the nodes --> PutPlacements durable --> answer
//              |         ^    |              |                |
//            error       |  error      taken meanwhile,     failed: nodes given back, error
//                        |              or a job has them, or another fabric
//                        +---------------+  (kMaxAttempts, then ABORTED; after kFreeAttempts in a
//                        turn)
//
//   (none) --Create--> held --StartPlacement durable--> started, the job has the nodes
//                      ^ |  Release, or term over
//     store failed ----+ +--EndPlacement durable--> released | expired
//
// Nodes are taken in memory before the store hears of them and given back after it has answered, so
// that two plans never reckon with the same node. The lock is never held while the tables' lock or
// the keeper's is taken.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENTS_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/manager/jobs.h"
#include "daemon/manager/options.h"
#include "daemon/manager/placement/placement_snapshot.h"
#include "daemon/manager/placement/placement_view.h"
#include "daemon/manager/planner_work.h"
#include "daemon/manager/requests.h"
#include "daemon/manager/store_calls.h"
#include "daemon/manager/tables.h"

namespace coppice {

// Thread-safe. Status codes: proto/coppice/v1/placements.proto. Callbacks as Manager's.
class Placements final : private UseCase {
 public:
  template <class T>
  using Callback = coppice::Callback<T>;
  using Views = std::vector<PlacementView>;
  using Requests = NamedRequests<PlacementId, Views>;  // who waits is told of that one alone

  static constexpr int kFreeAttempts = 2, kMaxAttempts = 8;
  static constexpr size_t kMaxAtOnce = 1000;         // requests in one call
  static constexpr size_t kMaxDistanceNodes = 2048;  // of GetNodeDistances

  // `on_deadline` as Jobs has it.
  Placements(const UseCase& with, Jobs* jobs, std::function<void()> on_deadline)
      : UseCase(with), jobs_(jobs), on_deadline_(std::move(on_deadline)), keeper_(tables_) {}

  // Enters the placements of an earlier run; their terms start now.
  void Restore(std::vector<PlacementRecord> placements, PlacementId last);

  // Plans on the caller's thread: milliseconds, and the budget with a pattern (CallBudget). All,
  // each beside those before it, or none; of more than one, messages name the position. A cancelled
  // one takes nothing.
  void Create(std::vector<CreatePlacementArgs> requests, const PlacementCancelled& is_cancelled,
              Callback<Views> done);
  // Takes nothing but time of the planner, which is the payer's.
  absl::StatusOr<Views> Advise(const std::vector<PlacementTask>& tasks, const Payer& payer,
                               const PlacementCancelled& is_cancelled);
  absl::StatusOr<PlacementView> Get(PlacementId id);
  // Up to `limit` held ones with higher ids than `after`, ascending.
  Views List(PlacementId after, size_t limit) const;
  absl::StatusOr<PlacementView> Renew(PlacementId id);
  void Start(StartPlacementArgs args, Callback<JobView> done);
  void Release(PlacementId id, Callback<PlacementId> done, const Actor& actor = {});
  absl::StatusOr<NodeDistancesView> Distances(const std::vector<std::string>& nodes);
  absl::StatusOr<NodeDistancesView> DistancesOfJob(JobId id);
  absl::StatusOr<NodeDistancesView> DistancesOfPlacement(PlacementId id);

  // Ends all whose term has run out by `now`; the time until the next does, as
  // Manager::ExpireLeases.
  absl::Duration Expire(absl::Duration now);
  // As Jobs has it, of terms.
  void ForgiveStall(absl::Duration stalled);
  struct Numbers {
    uint32_t held = 0;
    uint64_t nodes = 0;
    uint32_t waiting = 0;  // calls, for another's turn to end
  };
  Numbers numbers() const;

 private:
  enum class Phase : uint8_t { kHeld, kStarting, kEnding };
  struct Held {
    std::shared_ptr<const PlacementRecord> record;
    NodeHolds::Wish wish;
    absl::Duration deadline, queued_deadline;  // by Clock::Monotonic
    Phase phase = Phase::kHeld;
    std::vector<Callback<JobView>> start_waiters;
    std::vector<Callback<PlacementId>> end_waiters;
  };
  // One request of a call on its way: named, counted, and planned.
  struct Wanted {
    CreatePlacementArgs args;
    std::shared_ptr<PlacementRecord> record = nullptr;
    NodeHolds::Wish wish = {};
    PlacementView view = {};
  };
  using Draft = std::vector<Wanted>;

  // placement_creation.cc
  absl::Status CheckArgs(const Draft& draft) const;
  // Errors: as Accounts::Choose.
  absl::StatusOr<Payer> FindPayer(const CreatePlacementArgs& args) const;
  absl::Duration TermOf(const CreatePlacementArgs& args, const Payer& payer) const;
  // As NamedRequests has it: true with all of them counted.
  bool Begin(const Draft& draft, Callback<Views>& done);
  absl::Status CheckRoom(const Draft& draft) const;  // with mu_ held
  std::shared_ptr<const KeptEntries> KeptNow() const;
  absl::StatusOr<PlacementPlan> PlanOne(const PlacementSnapshot& placing, const PlacementTask& task,
                                        CallBudget& budget, PlacementRecord& record) const;
  // Before it is planned. Errors: as Accounts::Choose.
  absl::StatusOr<PlacementRecord> RecordOf(const CreatePlacementArgs& args) const;
  // Each beside those before it. Of advice a refusal is in the view.
  absl::Status PlanAll(PlacementSnapshot& placing, Draft& draft, CallBudget& budget,
                       bool is_advice) const;
  // Before it is planned. RESOURCE_EXHAUSTED: as PlannerWork.
  absl::StatusOr<PlannerWork> BeginWork(const Draft& draft, const Payer& payer);
  absl::Status PlanAndTake(Draft& draft, const PlacementCancelled& is_cancelled);
  // False: what was planned on is gone.
  absl::StatusOr<bool> PlanAndTakeOnce(Draft& draft, CallBudget& budget, bool has_turn);
  bool TryTake(const PlacementSnapshot& placing, Draft& draft);
  // Of the nodes of all of them.
  // Counts the nodes of all of them, or RESOURCE_EXHAUSTED and of none.
  absl::Status TakeNodes(absl::Span<const Wanted> draft);
  void GiveNodes(absl::Span<const Wanted> draft);
  void OnCreated(Draft& draft, absl::Status status, Callback<Views> done);
  void UndoWritten(const Draft& draft);
  void Fail(const Draft& draft, const absl::Status& status, Callback<Views> done);
  absl::StatusOr<PlacementSnapshot> TakeSnapshot();

  // placement_view.cc
  absl::StatusOr<JobRecord> JobOf(const PlacementRecord& placement, const StartPlacementArgs& args);
  void OnStarted(PlacementId id, const std::string& by, absl::StatusOr<JobView> job);
  void AnswerStarted(PlacementId id, Callback<JobView> done);

  // placements.cc
  PlacementView ViewOf(const Held& held) const;
  absl::StatusOr<PlacementRecord> FromStore(PlacementId id);
  void ReleaseStored(PlacementId id, Callback<PlacementId> done, const Actor& actor);
  void SubmitEnd(PlacementId id, PlacementState state, const Actor& actor = {});
  void OnEnded(PlacementId id, PlacementState state, const std::string& by,
               const absl::Status& status);
  std::shared_ptr<Held> Find(PlacementId id) const;  // all with mu_ held
  void Enter(std::shared_ptr<Held> held);
  void TakeOut(Held& held);
  void Requeue(Held& held, absl::Duration deadline);
  void CountOwner(const std::string& owner, int change);

  Jobs* const jobs_;
  const std::function<void()> on_deadline_;
  PlacementSnapshotKeeper keeper_;
  PlacementTurns turns_;

  mutable std::mutex mu_;
  // Guarded by mu_.
  absl::btree_map<PlacementId, std::shared_ptr<Held>> held_;
  absl::btree_set<std::pair<absl::Duration, PlacementId>> queue_;
  // By OwnName, of those held and those under way.
  Requests requests_;
  NodeHolds holds_;
  // Records of what has taken nodes and is not durable yet.
  absl::btree_map<PlacementId, std::shared_ptr<const PlacementRecord>> taking_;
  std::vector<std::shared_ptr<Held>> without_leaves_;  // of an earlier run, before the first fabric
  absl::flat_hash_map<std::string, uint32_t> by_owner_;  // held and under way
  uint32_t counted_ = 0;                                 // the sum of by_owner_
  PlacementId last_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENTS_H_
