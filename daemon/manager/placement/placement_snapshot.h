// Who holds which node: where plans that were made at the same time meet, whose turn it is to take
// nodes, and, as of one instant, what an attempt is planned on.
//
//   JobTable  --came and went--> keeper --copy--> placing --(a batch adds its own)--> Place
//   Placements --holding now-->    |
//                        channels that each holder's routes use, counted once
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_SNAPSHOT_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_SNAPSHOT_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "daemon/manager/job_ports.h"
#include "daemon/manager/tables.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_request.h"
#include "db/store.h"

namespace coppice {

// Who holds which node, and which leaf switches are held whole: where placements that were planned
// at the same time meet. Each plan knows the number of the state that it was made on, its
// generation, and takes its nodes only if none was taken since.
//
//   plan A (generation 7)  n1 n2         Take: generation 8
//   plan B (generation 7)     n2 n3      Take: n2 was taken at 8 > 7: false, plan again
//
// Not thread-safe; the lock of Placements guards it. Knows no fabric: leaf switches are GUIDs.
class NodeHolds {
 public:
  struct Wish {
    std::vector<std::string> nodes;  // distinct
    std::vector<Guid> leaves;        // of these nodes, distinct
    bool is_exclusive = false;       // of the leaf switches
  };

  uint64_t generation() const { return generation_; }

  // Takes the nodes of all wishes, or none: one is held, or was taken after `since`; a leaf switch
  // is another's alone, or wanted alone and was used after `since` or is. Wishes of one call may
  // meet each other, too. What is refused leaves no trace: it makes nobody else plan again.
  // O(nodes).
  bool TakeAll(const std::vector<const Wish*>& wishes, uint64_t since);
  // What was taken, exactly.
  void Free(const Wish& wish);
  // What an earlier run of the daemon had taken.
  void Restore(const Wish& wish);

  // Nodes that are held.
  uint64_t count() const { return count_; }

 private:
  struct Node {
    bool is_held = false;
    uint64_t taken = 0;  // generation of the last time
  };
  struct Leaf {
    uint32_t users = 0, exclusive_users = 0;
    uint64_t used = 0, used_alone = 0;  // generations of the last times
  };
  bool MayTake(const Wish& wish, uint64_t since) const;
  void Hold(const Wish& wish);   // until Free
  void Stamp(const Wish& wish);  // as taken now

  uint64_t generation_ = 0;
  uint64_t count_ = 0;
  // Entries stay when nobody holds them: as many as nodes were ever taken.
  absl::flat_hash_map<std::string, Node> nodes_;
  absl::flat_hash_map<Guid, Leaf> leaves_;
};

// Who may take nodes now: as a rule whoever has planned. Who has lost a few times waits for a turn:
// until it is over nobody else takes any, so that a plan that takes long is not always too late.
//
//   Take   --------+ +---+                 waits  +------      takes alone, for an instant
//   Turn               +------ plan ------ take --+            in the order in which they were
//   Turn               waits                      +-- ...      asked for; takers wait for all
//
// Thread-safe. Holds no lock of others, but takers call theirs under its.
class PlacementTurns {
 public:
  // Asked now and then by whoever waits: an error ends the waiting.
  using MayWait = std::function<absl::Status()>;

  struct Ender {
    void operator()(PlacementTurns* turns) const { turns->End(); }
  };
  // Nobody else takes anything as long as it is there.
  using Turn = std::unique_ptr<PlacementTurns, Ender>;

  // Waits for those who asked before. Errors: those of `may_wait`.
  absl::StatusOr<Turn> Begin(const MayWait& may_wait);

  // Calls `take` while nobody else takes: at once within a turn of the caller's, else when no turn
  // is on or waited for. False: `take` said so. Errors: those of `may_wait`.
  absl::StatusOr<bool> Take(bool has_turn, const MayWait& may_wait, absl::FunctionRef<bool()> take);

  // How many wait, for a turn or to take.
  uint32_t waiting() const;

 private:
  void End();
  // With `lock` held; `is_due` is asked again after each change.
  absl::Status WaitUntil(std::unique_lock<std::mutex>& lock, const MayWait& may_wait,
                         absl::FunctionRef<bool()> is_due);

  mutable std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  std::deque<uint64_t> asked_;  // turns by number; the first is on
  uint64_t last_ = 0;
  uint32_t waiting_ = 0;
};

// Distinct, in the order of first mention. Ports that the fabric has not are left out.
std::vector<HostIndex> HostsOfJob(const Fabric& fabric, const JobRecord& job);
std::vector<HostIndex> HostsOfPlacement(const Fabric& fabric, const PlacementRecord& placement);
// Of these hosts' first ports, distinct.
std::vector<Guid> LeavesOf(const PlacementIndex& index, absl::Span<const HostIndex> hosts);

struct PlacementSnapshot {
  std::shared_ptr<const FabricView> view;            // never null
  Snapshot snapshot;                                 // the view's, with the load promised as well
  std::shared_ptr<const PlacementIndex> index;       // never null
  std::shared_ptr<const HostPartitions> partitions;  // never null
  Occupancy occupancy;
  uint64_t generation = 0;                  // of NodeHolds
  std::map<uint32_t, std::string> holders;  // "job:7 of ada", by their numbers in `occupancy`

  // These hosts are held from now on, by a placement that is planned beside others.
  void Add(absl::Span<const HostIndex> hosts, bool is_exclusive, std::string holder);
};

// Thread-safe.
class PlacementSnapshotKeeper {
 public:
  // All placements that hold nodes, or are on their way to, and the generation of their holds.
  struct Holding {
    std::vector<std::shared_ptr<const PlacementRecord>> placements;
    uint64_t generation = 0;
  };

  explicit PlacementSnapshotKeeper(Tables* tables) : tables_(tables) {}

  // A copy of its own for the caller. `holding` is called first: what it does not name any more and
  // no job has taken by then is free. UNAVAILABLE: no fabric yet. O(hosts + channels + switches),
  // and for each holder that came since the last call its routes.
  template <class HoldingNow>
  absl::StatusOr<PlacementSnapshot> Take(HoldingNow holding) {
    std::lock_guard lock(mu_);
    Holding now = holding();
    return Compose(std::move(now));
  }

  // What a plan made of a placing.
  struct Chosen {
    std::vector<HostIndex> hosts;
    bool is_named = false;  // the hosts are of a list of candidates: whoever gave it knows of jobs
    bool is_exclusive = false;  // of their leaf switches
  };
  // False: another fabric, or jobs that came since have hosts that the plan took for free.
  // O(hosts chosen), and O(hosts) of the leaf switches of exclusive ones.
  bool IsStillFree(const PlacementSnapshot& placing, absl::Span<const Chosen> plan);

  // The index of the published fabric. UNAVAILABLE: none yet.
  absl::StatusOr<std::shared_ptr<const PlacementIndex>> Index();

  // The job, which is in the tables or about to be, keeps others off its leaf switches.
  void MarkExclusive(JobId job);

 private:
  struct Holder {
    uint32_t number = 0;
    std::string label;
    std::vector<HostIndex> hosts;
    std::vector<ChannelIndex> channels;
    bool is_exclusive = false;
  };
  using Key = std::pair<bool, int64_t>;  // is_placement, id

  absl::StatusOr<PlacementSnapshot> Compose(Holding holding);
  // All with mu_ held.
  absl::Status Follow(PlacementSnapshot& placing);
  void Begin(const FabricView& view);
  void AddJob(const JobRecord& job);
  void AddPlacement(const PlacementRecord& placement);
  void Add(Key key, Holder holder);
  void Remove(Key key);
  void RemoveBut(bool are_placements, const absl::flat_hash_set<int64_t>& kept);

  Tables* const tables_;
  std::mutex mu_;
  // Guarded by mu_, which may be held while the tables' lock is taken.
  std::shared_ptr<const Fabric> fabric_;
  std::shared_ptr<const Routes> routes_;
  std::shared_ptr<const FabricView> view_;
  std::shared_ptr<const PlacementIndex> index_;
  std::shared_ptr<const HostPartitions> partitions_;
  absl::flat_hash_map<Key, Holder> holders_;
  std::vector<std::vector<uint32_t>> numbers_of_;  // [host] of its holders, as they came
  std::vector<uint32_t> channel_users_;
  std::map<uint32_t, std::string> labels_;
  absl::flat_hash_set<JobId> exclusive_jobs_;
  uint32_t last_number_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_SNAPSHOT_H_
