// Addresses that the server listens on, checked before anything is bound: a socket file of a daemon
// that is alive must not be taken over.
#ifndef COPPICE_DAEMON_RPC_LISTEN_LISTEN_ADDRESS_H_
#define COPPICE_DAEMON_RPC_LISTEN_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

// "unix:PATH" or "HOST:PORT" (port 0: any free one). INVALID_ARGUMENT names the address and says
// what is wrong: no port, a path that is empty, relative in "unix://", or longer than a socket's
// may be.
absl::Status CheckListenAddress(absl::string_view address);

// True for "unix:PATH".
bool IsUnixAddress(absl::string_view address);

// The path of a Unix address.
std::string SocketPath(absl::string_view address);

// INVALID_ARGUMENT, with the ways out, unless the address may be listened at without TLS: TCP
// carries what users ask for, and who they say they are, for everybody to read and to change.
absl::Status CheckNeedsNoTls(absl::string_view address);

// Makes way for a Unix socket: removes the file that a dead daemon left. ALREADY_EXISTS: a live
// process accepts connections there; FAILED_PRECONDITION: the file is no socket, or its directory
// is missing or not writable. OK for other addresses.
absl::Status PrepareListenAddress(const std::string& address);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_LISTEN_ADDRESS_H_
