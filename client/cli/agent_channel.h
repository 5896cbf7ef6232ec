// The daemon's services through the node's agent, for users who cannot open the daemon's socket: a
// gRPC server inside this process, without an address, that passes each call on to the agent's
// socket as bytes (proto/coppice/v1/local.proto). So commands do not know by which way they go, and
// the agent needs no second protocol. What may be called, and in whose name, is the agent's to say.
#ifndef COPPICE_CLIENT_CLI_AGENT_CHANNEL_H_
#define COPPICE_CLIENT_CLI_AGENT_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace coppice {

// $COPPICE_AGENT, else where the package's agent listens.
std::string DefaultAgent();

// Whether this process could connect to the Unix socket at `path` now.
bool CanConnect(const std::string& path);

// To the agent at `socket`, which each call connects to on a thread of its own. One request and any
// number of answers a call. Metadata is not passed on. The last reference goes after the last call.
std::shared_ptr<grpc::Channel> AgentChannel(std::string socket);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_AGENT_CHANNEL_H_
