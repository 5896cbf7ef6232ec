// TLS of the server: the files that it needs, checked before gRPC sees them, because gRPC would
// only log what is wrong with them and refuse every connection; and looked at again at each
// connection, so that a certificate that was renewed in its place is the one that is shown.
#ifndef COPPICE_DAEMON_RPC_LISTEN_TLS_CREDENTIALS_H_
#define COPPICE_DAEMON_RPC_LISTEN_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/status.h"
#include "daemon/base/caller_bounds.h"

namespace coppice {

// INVALID_ARGUMENT, with the file's name: it cannot be read, is not what it should be, has expired,
// or the key is another certificate's; or nobody could connect.
absl::Status CheckTlsFiles(const TlsFiles& files);

// Files that have changed since the last connection are read, and are in force for this one and
// those to come if CheckTlsFiles would take them; otherwise an error says once what is wrong, and
// what was in force stays. With `client_ca` a client cannot connect with a certificate of somebody
// else, nor without one unless open_reading. The result must outlive the servers that were built
// with it: they do not hold it.
std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(const TlsFiles& files);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_TLS_CREDENTIALS_H_
