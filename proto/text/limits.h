// Limits that more than one folder holds its inputs to. Those of one folder stand there.
#ifndef COPPICE_PROTO_TEXT_LIMITS_H_
#define COPPICE_PROTO_TEXT_LIMITS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace coppice {

// Bytes of one collective, and of whatever a quota counts: 1 PiB, beyond any memory.
inline constexpr uint64_t kMaxByteSize = uint64_t{1} << 50;
// Searches, the daemon's periods, and calls that nothing else bounds.
inline constexpr absl::Duration kMaxPeriod = absl::Hours(24 * 365);
// Leases of jobs and terms of placements, whatever a daemon's [lease] says.
inline constexpr absl::Duration kMinLease = absl::Seconds(1), kMaxLease = absl::Hours(24);
// Ranks of a job, whatever a daemon's limits.job_ranks says; of a pattern; slots that one is mapped
// to.
inline constexpr uint32_t kMaxJobRanks = 1u << 24;
// The same where limits.job_ranks says nothing. A tree has no use for more children.
inline constexpr uint32_t kDefaultJobRanks = 1u << 20;

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_LIMITS_H_
