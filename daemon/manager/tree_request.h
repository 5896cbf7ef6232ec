// What can be judged of a tree request without a fabric: its shape, its limits, its fingerprint.
#ifndef COPPICE_DAEMON_MANAGER_TREE_REQUEST_H_
#define COPPICE_DAEMON_MANAGER_TREE_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/manager/requests.h"

namespace coppice {

inline constexpr size_t kMaxRequestIdBytes = 128;
inline constexpr size_t kMaxNameBytes = 256;  // display names and owners

// INVALID_ARGUMENT names the field and its limit: request_id too long or like the name of a batch's
// tree; else as CheckSpec.
absl::Status CheckTreeRequest(const CreateTreeArgs& args);

// INVALID_ARGUMENT: longer than `limit`; names the field and both lengths.
absl::Status CheckLength(absl::string_view field, absl::string_view text, size_t limit);

// Of everything but the job and the request_id.
uint64_t FingerprintOf(const CreateTreeArgs& args);

// INVALID_ARGUMENT: a rank that the job does not have, or one named twice. `marks` is memory to
// reuse, one bit per rank of the job; all zero between calls. O(ranks).
absl::Status CheckRanks(const std::vector<uint32_t>& ranks, uint32_t job_ranks,
                        std::vector<uint64_t>& marks);

// What can be judged of a batch without a fabric: its shape and limits, its communicators as lists
// of ranks, its fingerprint, and how the names of its trees follow from its own.

// Of all communicators together; a rank counts in each that it is in. A tree of so many ranks takes
// about 200 MB on its way to the store.
inline constexpr uint64_t kMaxBatchRanks = 1u << 22;
inline constexpr size_t kMaxGridAxes = 32;

// INVALID_ARGUMENT names what is wrong: request_id or sizes as CheckTreeRequest; a grid and
// communicators, or neither; a grid of no or too many axes or whose lines hold too many ranks; an
// axis out of range or named twice; a rank_order without a grid or of another length.
absl::Status CheckBatchRequest(const CreateBatchArgs& args);

// After CheckBatchRequest.
uint64_t CommunicatorCount(const CreateBatchArgs& args);

// Every line of the grid becomes a communicator, axis by axis; then each is checked: it has a rank,
// the job has all of them, none is named twice. INVALID_ARGUMENT names communicator and rank, or
// the grid and the job that is too small for it. After CheckBatchRequest. O(ranks of all).
absl::Status ListCommunicators(uint32_t job_ranks, CreateBatchArgs& args);

// Of everything but the job and the request_id; before ListCommunicators.
uint64_t FingerprintOf(const CreateBatchArgs& args);

// The trees of a batch are named after it, so that a daemon that starts anew finds them again: tree
// of communicator 17 of batch "solver" is "solver#17". Of no name nothing is derived. Requests for
// single trees cannot use such names (CheckTreeRequest).
std::string BatchTreeName(absl::string_view batch, uint32_t communicator);
struct BatchTreeNameParts {
  absl::string_view batch;  // not empty
  uint32_t communicator = 0;
};
// nullopt: not a name that BatchTreeName makes.
std::optional<BatchTreeNameParts> ParseBatchTreeName(absl::string_view name);
// The batch that a granted tree is of, and its place there; points into the record. nullopt: a
// single tree. Also one that is named "x#3" but lacks its spec: it comes from a release that kept
// none and knew no batches, and took such names for single trees.
std::optional<BatchTreeNameParts> BatchPartOf(const TreeRecord& record);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_REQUEST_H_
