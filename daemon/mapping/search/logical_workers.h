// Work in numbered pieces that threads take in turn. What a piece does must depend on its number
// alone: then the number of threads changes the time and nothing else.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_LOGICAL_WORKERS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_LOGICAL_WORKERS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace coppice {

// Calls work(0) ... work(count - 1), each once, on at most `threads` threads of which the caller's
// is one; returns when all have ended.
void RunLogicalWorkers(uint32_t threads, uint32_t count,
                       absl::FunctionRef<void(uint32_t worker)> work);

// The seed of a worker's random numbers: unlike for unlike workers, stages and seeds.
uint64_t WorkerSeed(uint64_t seed, uint64_t stage, uint64_t worker);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_LOGICAL_WORKERS_H_
