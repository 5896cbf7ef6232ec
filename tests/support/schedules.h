// Collectives that are no trees, as schedules of messages, for what forests are compared with; and
// the verifier: whether a schedule is an Allreduce, whatever the messages' speed.
#ifndef COPPICE_TESTS_SUPPORT_SCHEDULES_H_
#define COPPICE_TESTS_SUPPORT_SCHEDULES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "daemon/simulation/schedule.h"

namespace coppice {

// The vector is cut into `blocks` parts of equal size; every message holds some of them whole.
struct BlockSchedule {
  uint32_t ranks = 0, blocks = 0;
  std::vector<ScheduledMessage> messages;   // their bytes are not set
  std::vector<std::vector<uint32_t>> held;  // [message] blocks
};

// The messages' bytes of a vector of `bytes`.
MessageSchedule ForBytes(const BlockSchedule& schedule, std::vector<EndpointIndex> places,
                         uint64_t bytes);

// Reduce-scatter and allgather around the ring of ranks, 2 (N - 1) steps (Patarasuk and Yuan 2009).
BlockSchedule RingAllreduce(uint32_t ranks);

// Rabenseifner 2004: reduce-scatter by recursive halving, allgather by doubling, 2 log2 N steps.
// Ranks beyond a power of two: of the first pairs the even ranks give theirs to the odd ones and
// get the result back. `far_first`: partners half the ranks away come first, as in MPICH; else
// neighbours do.
BlockSchedule HalvingDoubling(uint32_t ranks, bool far_first);

// De Sensi et al., "Bine Trees" (SC'25): the same, but the partner of an even rank r in step i is
// r + sum of (-2)^j for j = 0..i, that of an odd one r minus it (negabinary distances): 1, -1, 3,
// -5, 11, ...; these add up to shorter ways than powers of two.
BlockSchedule BineAllreduce(uint32_t ranks, bool far_first);

// [tree][rank] its parent, -1 for the root: two binary trees in which every rank is an inner node
// at most once (Sanders, Speck and Traeff 2009), as NCCL builds them. Each carries half the vector.
std::array<std::vector<int32_t>, 2> DoubleBinaryTree(uint32_t ranks);

// INTERNAL names message, rank and block: what a message holds, or what is left at a rank, depends
// on which of two messages is faster; or in the end a rank does not have every rank's contribution
// exactly once. O(messages^2 / 64 + messages * blocks * ranks).
absl::Status CheckAllreduce(const BlockSchedule& schedule);

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_SCHEDULES_H_
