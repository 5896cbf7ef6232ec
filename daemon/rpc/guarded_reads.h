// Puts an Http2Guard before gRPC on connections that we accepted ourselves, and bounds what those
// of one client, and of all, have sent of messages that have not come whole.
//
//   gRPC --recvmsg(fd)--> ours, in this program --recvmsg(2)--> bytes --guard of fd--> gRPC
//                                                                          |
//                                                       bad: shut down, gRPC reads ECONNRESET
//
// gRPC offers no place before its HTTP/2 parser, and a thread that passes bytes on would cost each
// call two more wake-ups. So the program has a `recvmsg` of its own, which libgrpc's calls find
// before the C library's: for a descriptor with a guard it looks at what was read; for all others
// it is the system call. Connections over TLS are not guarded, as they are encrypted there: whoever
// opens one has shown a certificate, but for those that tls.open_reading lets in.
#ifndef COPPICE_DAEMON_RPC_GUARDED_READS_H_
#define COPPICE_DAEMON_RPC_GUARDED_READS_H_

#include <cstdint>
#include <string>

namespace coppice {

// Of all clients, of which one has at most half of what the others leave: below what gRPC may take
// for all connections (server.cc), since beyond that it gives up anybody's.
inline constexpr int64_t kMostHalfSent = int64_t{384} << 20;

// What is read from `fd`, a connected socket, is looked at from now on, until the socket is closed.
// `who` is at the other end: "uid 7". Thread-safe; before `fd` is given to gRPC.
// Beyond the process's limit of descriptors at the first call it does nothing.
void GuardReads(int fd, std::string who);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_GUARDED_READS_H_
