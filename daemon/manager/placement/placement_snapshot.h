// What one attempt at placements is planned on: the fabric, and who holds which of its nodes, as of
// one instant; and the keeper that has it ready without counting every job anew.
//
//   JobTable  --came and went--> keeper --copy--> placing --(a batch adds its own)--> Place
//   Placements --holding now-->    |
//                        channels that each holder's routes use, counted once
//
// The keeper adds a holder's channels when it comes and takes the same away when it goes; another
// fabric, or other routes, are begun anew.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_SNAPSHOT_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_SNAPSHOT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/manager/tables.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_request.h"
#include "db/store.h"

namespace coppice {

// Distinct, in the order of first mention. Ports that the fabric has not are left out.
std::vector<HostIndex> HostsOfJob(const Fabric& fabric, const JobRecord& job);
std::vector<HostIndex> HostsOfPlacement(const Fabric& fabric, const PlacementRecord& placement);
// Of these hosts' first ports, distinct.
std::vector<Guid> LeavesOf(const PlacementIndex& index, absl::Span<const HostIndex> hosts);

struct PlacementSnapshot {
  std::shared_ptr<const FabricView> view;       // never null
  Snapshot snapshot;                            // the view's, with the load promised as well
  std::shared_ptr<const PlacementIndex> index;  // never null
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
  absl::StatusOr<
      std::pair<std::shared_ptr<const FabricView>, std::shared_ptr<const PlacementIndex>>>
  Index();

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

  Tables* const tables_;
  std::mutex mu_;
  // Guarded by mu_, which may be held while the tables' lock is taken.
  std::shared_ptr<const Fabric> fabric_;
  std::shared_ptr<const Routes> routes_;
  std::shared_ptr<const FabricView> view_;
  std::shared_ptr<const PlacementIndex> index_;
  absl::flat_hash_map<Key, Holder> holders_;
  std::vector<std::vector<uint32_t>> numbers_of_;  // [host] of its holders, as they came
  std::vector<uint32_t> channel_users_;
  std::map<uint32_t, std::string> labels_;
  absl::flat_hash_set<JobId> exclusive_jobs_;
  uint32_t last_number_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_SNAPSHOT_H_
