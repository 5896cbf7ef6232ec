// Channels over TLS whose connections tell by MUNGE as which user this process runs: each brings a
// credential of its own (proto/munge/credential.h), made when the first call goes over it.
#ifndef COPPICE_CLIENT_MUNGE_CHANNEL_H_
#define COPPICE_CLIENT_MUNGE_CHANNEL_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "proto/munge/credential.h"

namespace coppice {

// `roots`: who signed the daemon's certificate, in PEM. A call whose credential cannot be made ends
// with UNAVAILABLE and words that hold kMungeFailure. Calls wait for munged on no thread of gRPC's.
std::shared_ptr<grpc::ChannelCredentials> MungeCredentials(const std::string& roots,
                                                           const Munge& munge);

}  // namespace coppice

#endif  // COPPICE_CLIENT_MUNGE_CHANNEL_H_
