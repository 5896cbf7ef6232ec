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

class AgentChannel final {
 public:
  // `socket`: the agent's. Connects at each call, on a thread of the call.
  explicit AgentChannel(std::string socket);
  // After the last call.
  ~AgentChannel();
  AgentChannel(const AgentChannel&) = delete;
  AgentChannel& operator=(const AgentChannel&) = delete;

  // One request and any number of answers a call. Metadata is not passed on.
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  class Service;
  const std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_AGENT_CHANNEL_H_
