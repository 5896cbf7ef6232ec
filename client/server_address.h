// Where a program finds coppiced, and what it connects with: connection.h without gRPC's and the
// services' headers, for who reads options only.
#ifndef COPPICE_CLIENT_SERVER_ADDRESS_H_
#define COPPICE_CLIENT_SERVER_ADDRESS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grpc {
class Channel;
class ChannelCredentials;
}  // namespace grpc

namespace coppice {

// Where the daemon listens unless told otherwise.
inline constexpr char kDefaultServer[] = "unix:/run/coppice/coppiced.sock";

// $COPPICE_SERVER, else kDefaultServer.
std::string DefaultServer();

// Files in PEM; all empty: no TLS.
struct TlsOptions {
  std::string ca;         // of whoever signed the daemon's certificate
  std::string cert, key;  // ours, for a daemon that asks for one
  // Without a certificate: the socket of munged, whose credentials say who we are, or "default",
  // and their realm.
  std::string munge = {}, munge_realm = {};
  bool empty() const { return ca.empty() && cert.empty() && key.empty() && munge.empty(); }
};

// $COPPICE_TLS_CA, $COPPICE_TLS_CERT, $COPPICE_TLS_KEY, $COPPICE_MUNGE and $COPPICE_MUNGE_REALM.
TlsOptions DefaultTls();

// What a Connection is made with. A Unix socket needs no TLS and ignores it. INVALID_ARGUMENT:
// files that are not enough; NOT_FOUND, with its name: a file cannot be read.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const std::string& server,
                                                                         const TlsOptions& tls);

// Connects at the first call.
std::shared_ptr<grpc::Channel> ChannelTo(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// INVALID_ARGUMENT, with the text, unless `server` is "unix:PATH" or "HOST:PORT".
absl::Status CheckServer(absl::string_view server);

// --- The daemon's services through the node's agent, for users who cannot open the daemon's
// socket: a gRPC server inside this process, without an address, that passes each call on to the
// agent's socket as bytes (proto/coppice/v1/local.proto). So commands do not know by which way they
// go, and the agent needs no second protocol. What may be called, and in whose name, is the agent's
// to say.

// $COPPICE_AGENT, else where the package's agent listens.
std::string DefaultAgent();

// Whether this process could connect to the Unix socket at `path` now.
bool CanConnect(const std::string& path);

// To the agent at `socket`, which each call connects to on a thread of its own. One request and any
// number of answers a call. Metadata is not passed on. The last reference goes after the last call.
std::shared_ptr<grpc::Channel> AgentChannel(std::string socket);

}  // namespace coppice

#endif  // COPPICE_CLIENT_SERVER_ADDRESS_H_
