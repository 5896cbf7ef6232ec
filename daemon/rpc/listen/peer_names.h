// What callers go by on the wire, and owners of jobs that are no Unix users. A Unix user is never
// called so (daemon/rpc/listen/unix_users.h).
#ifndef COPPICE_DAEMON_RPC_LISTEN_PEER_NAMES_H_
#define COPPICE_DAEMON_RPC_LISTEN_PEER_NAMES_H_

#include <sys/socket.h>

#include <string>

#include "absl/strings/string_view.h"

namespace coppice {

inline constexpr char kAnonymous[] = "anonymous";   // over TCP, without a client's certificate
inline constexpr char kUnknownOwner[] = "unknown";  // of jobs of a release that did not note it
inline constexpr char kTlsPrefix[] = "tls:";        // + common name of a client's certificate
inline constexpr char kRootOfNode[] = "root@";      // + host: root there, by its agent's word

// Metadata of a call in which an administrator or a node's agent says for whom it is: a login name,
// or a uid in digits.
inline constexpr char kUserMetadata[] = "coppice-user";
// Beside it, whatever its value: the user asks, by way of a node's agent. Without it the
// administrator asks, as a scheduler does, and answers for what the user gets.
inline constexpr char kByAgentMetadata[] = "coppice-by-agent";

// Where a connection over TCP comes from, as far as bounds go: its address without the port, which
// each connection has anew; of IPv6 the network of 64 bits, as a host may have every address of it
// (RFC 4291, section 2.5.1).

// "10.0.0.1", "2001:db8::/64". IPv4 in IPv6's clothes is IPv4.
std::string NetworkOf(const sockaddr_storage& address);
// The same of what gRPC says of a connection: "ipv4:10.0.0.1:4711", "ipv6:%5B2001:db8::1%5D:4711".
// Anything else as it is, up to its last colon.
std::string NetworkOf(absl::string_view connection);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_PEER_NAMES_H_
