// How much memory everything of one kind may hold together: taken before it is used, refused
// politely, given back when its share goes.
#ifndef COPPICE_DAEMON_MANAGER_MAPPING_MEMORY_BUDGET_H_
#define COPPICE_DAEMON_MANAGER_MAPPING_MEMORY_BUDGET_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace coppice {

// Thread-safe; outlives its shares.
class MemoryBudget final {
 public:
  class Share {
   public:
    Share() = default;
    // Gives back what is beyond `bytes`.
    void ShrinkTo(size_t bytes) {
      if (budget_ == nullptr || bytes >= budget_.get_deleter().bytes) return;
      budget_->GiveBack(std::exchange(budget_.get_deleter().bytes, bytes) - bytes);
    }

   private:
    friend class MemoryBudget;
    struct Return {
      size_t bytes;
      void operator()(MemoryBudget* budget) const { budget->GiveBack(bytes); }
    };
    Share(MemoryBudget* budget, size_t bytes) : budget_(budget, Return{bytes}) {}
    std::unique_ptr<MemoryBudget, Return> budget_;
  };

  explicit MemoryBudget(size_t bytes) : bytes_(bytes) {}

  // RESOURCE_EXHAUSTED: `what` needs more than there is in all, or than others leave of it now.
  absl::StatusOr<Share> Take(size_t bytes, absl::string_view what) {
    absl::MutexLock lock(&mutex_);
    if (bytes <= bytes_ - taken_) {
      taken_ += bytes;
      return Share(this, bytes);
    }
    constexpr size_t kMega = 1'000'000;
    return absl::ResourceExhaustedError(
        absl::StrCat(what, " needs about ", bytes / kMega + 1, " MB, but ",
                     bytes > bytes_ ? "all of them together may have "
                                    : "others leave of what all of them together may have only ",
                     (bytes > bytes_ ? bytes_ : bytes_ - taken_) / kMega, " MB; ",
                     bytes > bytes_ ? "ask for less, or raise the limit in the configuration"
                                    : "call again later"));
  }
  size_t taken() const {
    absl::MutexLock lock(&mutex_);
    return taken_;
  }

 private:
  void GiveBack(size_t bytes) {
    absl::MutexLock lock(&mutex_);
    taken_ -= bytes;
  }

  const size_t bytes_;
  mutable absl::Mutex mutex_;
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

// `value`, which counts in `room` until the last who has it lets go.
template <class Value>
std::shared_ptr<Value> Counted(std::shared_ptr<Value> value, MemoryBudget::Share room) {
  struct Held {
    std::shared_ptr<Value> value;
    MemoryBudget::Share room;
  };
  Value* const pointer = value.get();
  return {std::make_shared<Held>(Held{std::move(value), std::move(room)}), pointer};
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MAPPING_MEMORY_BUDGET_H_
