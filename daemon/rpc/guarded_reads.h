// Puts an Http2Guard before gRPC on connections that we accepted ourselves.
//
//   gRPC --recvmsg(fd)--> ours, in this program --recvmsg(2)--> bytes --guard of fd--> gRPC
//                                                                          |
//                                                       bad: shut down, gRPC reads ECONNRESET
//
// gRPC offers no place before its HTTP/2 parser, and a thread that passes bytes on would cost each
// call two more wake-ups. So the program has a `recvmsg` of its own, which libgrpc's calls find
// before the C library's: for a descriptor with a guard it looks at what was read; for all others
// it is the system call. Connections over TLS are not guarded: they are encrypted there, and
// whoever opens one has shown a certificate.
#ifndef COPPICE_DAEMON_RPC_GUARDED_READS_H_
#define COPPICE_DAEMON_RPC_GUARDED_READS_H_

#include <sys/types.h>

namespace coppice {

// What is read from `fd`, a connected socket, is looked at from now on, until the socket is closed.
// `uid` is at the other end, for the log. Thread-safe; before `fd` is given to gRPC. Beyond the
// process's limit of descriptors at the first call it does nothing.
void GuardReads(int fd, uid_t uid);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_GUARDED_READS_H_
