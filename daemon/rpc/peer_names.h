// What callers go by on the wire, and owners of jobs that are no Unix users. A Unix user is never
// called so (daemon/rpc/unix_users.h).
#ifndef COPPICE_DAEMON_RPC_PEER_NAMES_H_
#define COPPICE_DAEMON_RPC_PEER_NAMES_H_

namespace coppice {

inline constexpr char kAnonymous[] = "anonymous";   // over TCP, without a client's certificate
inline constexpr char kUnknownOwner[] = "unknown";  // of jobs of a release that did not note it
inline constexpr char kTlsPrefix[] = "tls:";        // + common name of a client's certificate

// Metadata of a call in which an administrator says for whom it is: a login name, or a uid in
// digits.
inline constexpr char kUserMetadata[] = "coppice-user";

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_PEER_NAMES_H_
