// Who holds which node, and which leaf switches are held whole: where placements that were planned
// at the same time meet. Each plan knows the number of the state that it was made on, its
// generation, and takes its nodes only if none was taken since.
//
//   plan A (generation 7)  n1 n2         Take: generation 8
//   plan B (generation 7)     n2 n3      Take: n2 was taken at 8 > 7: false, plan again
//
// Not thread-safe; the lock of Placements guards it. Knows no fabric: leaf switches are GUIDs.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_NODE_HOLDS_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_NODE_HOLDS_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/strong_id.h"

namespace coppice {

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

// Who may take nodes now. As a rule whoever has planned: of plans that meet, the first takes its
// nodes and the others are made again. Who has lost so a few times waits for a turn: until it is
// over nobody else takes any, so that a plan that takes long is not always too late.
//
//   Take   --------+ +---+                 waits  +------      takes alone, for an instant
//   Turn               +------ plan ------ take --+            in the order in which they were
//   Turn               waits                      +-- ...      asked for; takers wait for all
//
// Thread-safe. Knows nothing of nodes. Holds no lock of others, but takers call theirs under its.

class PlacementTurns {
 public:
  // Asked now and then by whoever waits: an error ends the waiting.
  using MayWait = std::function<absl::Status()>;

  // Nobody else takes anything as long as it is there.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&& other) noexcept {
      std::swap(turns_, other.turns_);
      return *this;
    }
    ~Turn() {
      if (turns_ != nullptr) turns_->End();
    }

   private:
    friend class PlacementTurns;
    explicit Turn(PlacementTurns* turns) : turns_(turns) {}
    PlacementTurns* turns_ = nullptr;
  };

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_NODE_HOLDS_H_
