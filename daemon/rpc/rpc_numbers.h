// How the server fares, as plain numbers for whoever looks at the daemon.
#ifndef COPPICE_DAEMON_RPC_RPC_NUMBERS_H_
#define COPPICE_DAEMON_RPC_RPC_NUMBERS_H_

#include <cstdint>
#include <vector>

#include "daemon/rpc/method_statistics.h"

namespace coppice {

struct RpcNumbers {
  std::vector<MethodNumbers> methods;
  uint32_t tree_watchers = 0, event_watchers = 0, keepalives = 0;  // open streams
  uint32_t agents = 0;                                             // that are connected
  uint64_t measured_distances = 0;                                 // pairs of hosts
  uint32_t waiting_calls = 0;                                      // for a worker
  uint32_t waiting_batches = 0, waiting_searches = 0;              // for one of theirs
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_RPC_NUMBERS_H_
