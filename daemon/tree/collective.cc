#include "daemon/tree/collective.h"

#include <array>

namespace coppice {
namespace {

constexpr std::array<absl::string_view, 4> kOperationNames = {"barrier", "bcast", "reduce",
                                                              "allreduce"};

}  // namespace

absl::string_view ToString(Operation operation) {
  return kOperationNames[static_cast<size_t>(operation)];
}

std::optional<Operation> ParseOperation(absl::string_view name) {
  for (size_t i = 0; i < kOperationNames.size(); ++i) {
    if (kOperationNames[i] == name) return static_cast<Operation>(i);
  }
  return std::nullopt;
}

Payload PayloadOf(Operation operation, uint64_t bytes, bool mpi_root_is_tree_root) {
  const uint64_t forwarded = mpi_root_is_tree_root ? 0 : bytes;
  switch (operation) {
    case Operation::kBarrier:
      return {};
    case Operation::kBcast:
      return {.up_bytes = forwarded, .down_bytes = bytes, .reduced_bytes = 0};
    case Operation::kReduce:
      return {.up_bytes = bytes, .down_bytes = forwarded, .reduced_bytes = bytes};
    case Operation::kAllreduce:
      return {.up_bytes = bytes, .down_bytes = bytes, .reduced_bytes = bytes};
  }
  return {};
}

}  // namespace coppice
