// Where a connection over TCP comes from, as far as bounds go: its address without the port, which
// each connection has anew; of IPv6 the network of 64 bits, as a host may have every address of it
// (RFC 4291, section 2.5.1).
#ifndef COPPICE_DAEMON_RPC_CLIENT_NETWORK_H_
#define COPPICE_DAEMON_RPC_CLIENT_NETWORK_H_

#include <sys/socket.h>

#include <string>

#include "absl/strings/string_view.h"

namespace coppice {

// "10.0.0.1", "2001:db8::/64". IPv4 in IPv6's clothes is IPv4.
std::string NetworkOf(const sockaddr_storage& address);
// The same of what gRPC says of a connection: "ipv4:10.0.0.1:4711", "ipv6:%5B2001:db8::1%5D:4711".
// Anything else as it is, up to its last colon.
std::string NetworkOf(absl::string_view connection);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CLIENT_NETWORK_H_
