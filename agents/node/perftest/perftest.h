// A measurement over verbs between two sides that have met over the measuring socket: each runs
// perftest's ib_write_lat, then ib_write_bw, the passive side as the server and the active side as
// the client.
//
//   active                                                 passive
//     | -- offer, or why there is none ----------------------> |   each at once
//     | <-------------------- offer, or why there is none -- |
//     |                                                        |
//   client --TCP-- agent == measuring socket ==== agent --TCP-- server     what the two programs
//     |                                                        |           agree on
//   client ================= InfiniBand ==================== server        what they measure
//     |                                                        |
//     | -- end, or why it failed -----------------------------> |   each when its program has
//     ended, | <----------------------------- end, or why it failed -- |   then the same with the
//     next one
//
// The programs' own connection is carried over the measuring socket, in pieces as they are written
// (node/README.md says why). Whichever side fails says why; the active one then says that it goes
// on over TCP, which the passive one repeats, or breaks off. A program ends with the measurement at
// the latest.
#ifndef COPPICE_AGENTS_NODE_PERFTEST_PERFTEST_H_
#define COPPICE_AGENTS_NODE_PERFTEST_PERFTEST_H_

#include "absl/status/statusor.h"
#include "agents/node/measuring_socket.h"
#include "agents/node/node_facts.h"
#include "agents/node/ping_pong.h"

namespace coppice {

// FAILED_PRECONDITION: not over verbs, and why, naming port and program; the peer waits to hear
// what comes instead. Others are the socket's: it is over.
absl::StatusOr<PingPongFigures> MeasureOverVerbs(MeasuringSocket& socket, const PortChoice& choice,
                                                 const PingPongNumbers& numbers);
// After a failure: the active side goes on over TCP. UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED.
absl::Status TurnToTcp(MeasuringSocket& socket);

// The passive side. True: all has been answered. False: the active side goes on over TCP.
// FAILED_PRECONDITION: it broke off, as verbs failed. Others are the socket's.
absl::StatusOr<bool> AnswerOverVerbs(MeasuringSocket& socket, const PortChoice& choice,
                                     const PingPongNumbers& numbers);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PERFTEST_PERFTEST_H_
