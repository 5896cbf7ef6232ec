// What can be judged of a tree request without a fabric: its shape, its limits, its fingerprint.
#ifndef COPPICE_DAEMON_MANAGER_TREE_REQUEST_H_
#define COPPICE_DAEMON_MANAGER_TREE_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/manager/manager.h"

namespace coppice {

inline constexpr size_t kMaxRequestIdBytes = 128;
inline constexpr size_t kMaxNameBytes = 256;       // display names and owners
inline constexpr size_t kMaxSizes = 64;            // of a mix
inline constexpr uint64_t kMaxBytes = 1ull << 50;  // of one collective: 1 PiB, beyond any memory
inline constexpr double kMaxWeight = 1e12;         // leaves sums and products far from infinity
inline constexpr uint32_t kMaxWidth = 1u << 20;    // as many as the ranks of the largest job

// INVALID_ARGUMENT names the field and its limit: request_id too long or like the name of a batch's
// tree (batch_request.h), too many sizes, bytes or
// weights out of range, width below 2, nic_degree 0, a builder that does not go with the type.
absl::Status CheckTreeRequest(const CreateTreeArgs& args);

// INVALID_ARGUMENT: longer than `limit`; names the field and both lengths.
absl::Status CheckLength(absl::string_view field, absl::string_view text, size_t limit);

// Of everything but the job and the request_id.
uint64_t FingerprintOf(const CreateTreeArgs& args);

// INVALID_ARGUMENT: a rank that the job does not have, or one named twice. `marks` is memory to
// reuse, one bit per rank of the job; all zero between calls. O(ranks).
absl::Status CheckRanks(const std::vector<uint32_t>& ranks, uint32_t job_ranks,
                        std::vector<uint64_t>& marks);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_REQUEST_H_
