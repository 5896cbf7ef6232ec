// What callers go by on the wire, and owners of jobs that are no Unix users. A Unix user is never
// called so (daemon/rpc/unix_users.h).
#ifndef COPPICE_DAEMON_RPC_PEER_NAMES_H_
#define COPPICE_DAEMON_RPC_PEER_NAMES_H_

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_PEER_NAMES_H_
