#include "daemon/mapping/search/logical_workers.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "daemon/mapping/search/random.h"

namespace coppice {

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
