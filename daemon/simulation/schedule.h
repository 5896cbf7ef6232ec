// Packet by packet, what a schedule of messages takes on a given fabric: collectives that are no
// trees, such as rings and recursive halving, on the same channels as simulator.h plays trees on.
//
//   rank 0   --m0-->  rank 1            m2 starts at rank 1 when m0 has arrived there and each of
//   rank 3   --m1-->  rank 1  --m2-->   its packets is reduced, and m1, too
//
//   message  starts when all messages of `after` have arrived; whole ones, as MPI libraries send
//            them. Its first packet enters the fabric phi later (within a host same_host_us), each
//            next one when the port has sent, or the rank of the same host has taken, the one
//            before.
//   rank     takes packets of reduced messages in order of arrival, one per max(theta + S*gamma,
//            S / B_port), those of all messages in turn. Others cost it nothing.
//
// Channels, packets, headers and noise as in simulator.h, and so are ties: equal arguments give
// equal results. Sending costs no c_send, which is in favour of schedules. Knows no blocks: what a
// message holds, and that all ranks end with the result, is the business of who writes a schedule.
#ifndef COPPICE_DAEMON_SIMULATION_SCHEDULE_H_
#define COPPICE_DAEMON_SIMULATION_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/simulation/simulator.h"

namespace coppice {

struct ScheduledMessage {
  uint32_t from = 0, to = 0;  // ranks
  uint64_t bytes = 0;
  bool reduced = false;         // into what `to` has; else it replaces it
  std::vector<uint32_t> after;  // lower numbers of messages that end at `from`
};

struct MessageSchedule {
  std::vector<EndpointIndex> places;  // [rank]
  std::vector<ScheduledMessage> messages;
};

struct ScheduleResult {
  double total_us = 0;            // init included
  std::vector<double> finish_us;  // [rank] when the last message to it has arrived, init included
  std::vector<ChannelTraffic> channels;  // by index; up_packets are those of reduced messages
  uint64_t events = 0;
};

// O(events log messages). `shared_units` of the options is for trees; here a rank is the unit.
// INVALID_ARGUMENT names the message: ranks out of range, to itself, after one that is not earlier
// or ends elsewhere; a place out of range; a profile or noise as for Simulator::Prepare. NOT_FOUND:
// no route. RESOURCE_EXHAUSTED: more events than the options allow.
absl::StatusOr<ScheduleResult> SimulateSchedule(const Snapshot& snapshot,
                                                const CostProfile& profile,
                                                const MessageSchedule& schedule,
                                                const SimulationOptions& options, uint64_t seed);

}  // namespace coppice

#endif  // COPPICE_DAEMON_SIMULATION_SCHEDULE_H_
