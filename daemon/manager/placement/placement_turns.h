// Who may take nodes now. As a rule whoever has planned: of plans that meet, the first takes its
// nodes and the others are made again. Who has lost so a few times waits for a turn: until it is
// over nobody else takes any, so that a plan that takes long is not always too late.
//
//   Take   --------+ +---+                 waits  +------      takes alone, for an instant
//   Turn               +------ plan ------ take --+            in the order in which they were
//   Turn               waits                      +-- ...      asked for; takers wait for all
//
// Thread-safe. Knows nothing of nodes. Holds no lock of others, but takers call theirs under its.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_TURNS_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_TURNS_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace coppice {

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

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_TURNS_H_
