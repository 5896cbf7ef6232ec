// What a communicator asks its tree to do: the operation, its sizes, and the bytes that each moves.
#ifndef COPPICE_DAEMON_TREE_COLLECTIVE_H_
#define COPPICE_DAEMON_TREE_COLLECTIVE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace coppice {

enum class Operation : uint8_t { kBarrier, kBcast, kReduce, kAllreduce };

absl::string_view ToString(Operation operation);  // "barrier", "bcast", "reduce", "allreduce"
std::optional<Operation> ParseOperation(absl::string_view name);

// Bytes of one collective (Chen 2024, table 1): on every edge towards the root, on every edge away
// from it, and how many of those going up are reduced rather than only moved.
struct Payload {
  uint64_t up_bytes = 0;       // S' upwards
  uint64_t down_bytes = 0;     // S' downwards
  uint64_t reduced_bytes = 0;  // S*
};

// `bytes` is the size that the MPI call states. If `mpi_root_is_tree_root` is false, Bcast also
// sends its data up from the MPI root, unreduced, and Reduce forwards its result down to it.
Payload PayloadOf(Operation operation, uint64_t bytes, bool mpi_root_is_tree_root = true);

// One size of a mix; weights are relative.
struct SizeShare {
  uint64_t bytes = 0;
  double weight = 1;
  friend bool operator==(const SizeShare&, const SizeShare&) = default;
};

// What a communicator runs.
struct CollectiveMix {
  Operation operation = Operation::kAllreduce;
  std::vector<SizeShare> sizes;  // empty: 8 B
  friend bool operator==(const CollectiveMix&, const CollectiveMix&) = default;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_COLLECTIVE_H_
