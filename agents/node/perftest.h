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
#ifndef COPPICE_AGENTS_NODE_PERFTEST_H_
#define COPPICE_AGENTS_NODE_PERFTEST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// What perftest's ib_write_lat and ib_write_bw print, as far as a measurement needs it.
//
//   ---------------------------------------------------------------------------------------
//    #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]  ...
//    8       1000          0.86           5.34         0.90               0.91         ...
//   ---------------------------------------------------------------------------------------
//
// One heading, under which is one row. Between them may be lines that begin with no digit, such as
// "Conflicting CPU frequency values detected". Written after perftest 4.5 (Debian 12) and its
// source; headings of other units or with other columns are refused.

// Of ib_write_lat: half a round trip in microseconds. The mean is t_typical, the median, which what
// the operating system took away does not move; the deviation is t_stdev, of all iterations.
// INVALID_ARGUMENT, naming what is wrong: there is no row of messages of so many bytes.
absl::StatusOr<Spread> ParseLatencyReport(absl::string_view output, uint32_t bytes);
// Of ib_write_bw --report_gbits: the average in Gbit/s. It tells no deviation, which is 0.
absl::StatusOr<Spread> ParseBandwidthReport(absl::string_view output, uint32_t bytes);

// Of a program that failed: the last lines that say something, fit for people.
std::string LastWords(absl::string_view output);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PERFTEST_H_
