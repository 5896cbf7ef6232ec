// A measurement over verbs between two sides that have met over the measuring socket.
//
//   active                                            passive
//     | -- offer, or why there is none ---------------> |
//     | <--------------- offer, or why there is none -- |
//     |    both connect their queue pairs               |
//     | -- ready, or why not -------------------------> |
//     | <------------------------- ready, or why not -- |
//     | == 8 B ==> <== 8 B ==        x pings            |    == over verbs
//     | == pieces ==> <== 8 B ==     x transfers        |
//     | -- end ---------------------------------------> |
//
// Whichever side fails over verbs says why, at any point; the active one then says that it goes on
// over TCP, which the passive one repeats, or breaks off. While a side polls it listens to the
// socket, too, so that a peer that dies is noticed at once.
#ifndef COPPICE_AGENTS_NODE_VERBS_VERBS_PING_PONG_H_
#define COPPICE_AGENTS_NODE_VERBS_VERBS_PING_PONG_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agents/node/measuring_socket.h"
#include "agents/node/ping_pong_samples.h"
#include "agents/node/verbs/verbs_choice.h"

namespace coppice {

// FAILED_PRECONDITION: not over verbs, and why, naming device and port; the peer waits to hear what
// comes instead. Others are the socket's: it is over.
absl::StatusOr<PingPongFigures> MeasureOverVerbs(MeasuringSocket& socket, const VerbsChoice& choice,
                                                 const PingPongNumbers& numbers);
// After a failure: the active side goes on over TCP. UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED.
absl::Status TurnToTcp(MeasuringSocket& socket);

// The passive side. True: all has been answered. False: the active side goes on over TCP.
// FAILED_PRECONDITION: it broke off, as verbs failed. Others are the socket's.
absl::StatusOr<bool> AnswerOverVerbs(MeasuringSocket& socket, const VerbsChoice& choice,
                                     const PingPongNumbers& numbers);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_VERBS_VERBS_PING_PONG_H_
