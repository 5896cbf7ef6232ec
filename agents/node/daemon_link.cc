#include "agents/node/daemon_link.h"

#include <random>
#include <utility>

#include "client/library/frame.h"

namespace coppice {
namespace {

// A daemon that restarts is back within seconds; hundreds of agents that come back do so within
// a few. gRPC adds a random fifth.
constexpr int kFirstPauseMs = 200, kLongestPauseMs = 5'000;
// A connection whose other end is gone without a word is given up after the two together.
constexpr int kPingIntervalMs = 30'000, kPingTimeoutMs = 10'000;
// An answer must fit into a frame together with the call's number.
constexpr int kMaxAnswerBytes = static_cast<int>(kMaxFrameBytes) - 64;

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstPauseMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestPauseMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingIntervalMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Never a connection that another channel of this process shares, or shared to another.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

}  // namespace

DaemonLink::DaemonLink(EventLoop* loop, std::string server,
                       const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : loop_(loop),
      server_(std::move(server)),
      channel_(MakeChannel(server_, credentials)),
      stub_(channel_),
      hurry_pause_(std::chrono::milliseconds(kFirstPauseMs),
                   std::chrono::milliseconds(kLongestPauseMs), std::random_device()()) {}

void DaemonLink::Hurry() {
  if (channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY) {
    hurry_pause_.Reset();
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_hurry_) return;
  next_hurry_ = now + hurry_pause_.Next();
  grpc::experimental::ChannelResetConnectionBackoff(channel_.get());
}

}  // namespace coppice
