#include "daemon/mapping/search_control.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "daemon/mapping/search/random.h"

namespace coppice {
namespace {

class Alone final : public SearchTeam {
 public:
  uint32_t process() const override { return 0; }
  uint32_t process_count() const override { return 1; }
  absl::StatusOr<bool> Any(bool mine) override { return mine; }
  absl::Status ShareBest(DenseSolution&) override { return absl::OkStatus(); }
  absl::Status PassOn(DenseSolution&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<DenseSolution>> Gather(std::vector<DenseSolution> mine) override {
    return mine;
  }
  absl::StatusOr<std::vector<DenseSolution>> Scatter(std::vector<DenseSolution> all,
                                                     uint32_t) override {
    return all;
  }
};

}  // namespace

SearchTeam& SearchAlone() {
  static auto* const alone = new Alone();
  return *alone;
}

void RunLogicalWorkers(uint32_t threads, uint32_t count,
                       absl::FunctionRef<void(uint32_t worker)> work) {
  std::atomic<uint32_t> next = 0;
  const auto take = [&] {
    for (uint32_t worker = next++; worker < count; worker = next++) work(worker);
  };
  std::vector<std::thread> others;
  for (uint32_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(take);
  take();
  for (std::thread& thread : others) thread.join();
}

uint64_t WorkerSeed(uint64_t seed, uint64_t stage, uint64_t worker) {
  uint64_t mixed = Xoshiro(seed)();
  mixed = Xoshiro(mixed ^ stage)();
  return Xoshiro(mixed ^ worker)();
}

}  // namespace coppice
