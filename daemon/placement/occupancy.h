// Who holds which hosts of a fabric, and what is left in its switches, at one instant: what a
// placement is planned against. A plain value that the manager (or a replay) fills; it belongs to
// one fabric and knows no jobs, only that hosts with the same holder communicate.
#ifndef COPPICE_DAEMON_PLACEMENT_OCCUPANCY_H_
#define COPPICE_DAEMON_PLACEMENT_OCCUPANCY_H_

#include <cstdint>
#include <vector>

namespace coppice {

struct Occupancy {
  static constexpr uint32_t kFree = 0;

  // [host] kFree, or a number of whoever holds it. Two jobs on one host: that of the first.
  std::vector<uint32_t> holder;
  // [host] held by another placement: never given, even if it is named as a candidate.
  std::vector<bool> is_placed;
  // [host] never given: its ports do not answer, or an administrator keeps it out.
  std::vector<bool> is_out;
  // [channel] how many holders' routes use it; empty: not known, counts as none.
  std::vector<uint32_t> channel_users;
  // [switch] aggregation entries left; empty: not known, counts as enough.
  std::vector<uint32_t> entries_left;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_OCCUPANCY_H_
