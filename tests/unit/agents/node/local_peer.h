// A process of the node as the agent sees it: speaks local.proto over the agent's socket, well or
// badly.
#ifndef COPPICE_TESTS_UNIT_AGENTS_NODE_LOCAL_PEER_H_
#define COPPICE_TESTS_UNIT_AGENTS_NODE_LOCAL_PEER_H_

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>

#include "client/library/messages.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

class LocalPeer final {
 public:
  explicit LocalPeer(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const timeval patience{60, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~LocalPeer() { Close(); }
  LocalPeer(const LocalPeer&) = delete;

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void SendBytes(const std::string& bytes) {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // The agent may have closed.
  void TrySendBytes(const std::string& bytes) {
    (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void TryCall(uint64_t call, const std::string& method) {
    v1::LocalRequest request;
    request.set_call(call);
    request.set_method(method);
    std::string frame;
    AppendFrame(request.SerializeAsString(), frame);
    TrySendBytes(frame);
  }
  void Send(const v1::LocalRequest& request) {
    std::string frame;
    AppendFrame(request.SerializeAsString(), frame);
    SendBytes(frame);
  }
  void Call(uint64_t call, const std::string& method, const std::string& message = "",
            uint32_t timeout_ms = 60'000) {
    v1::LocalRequest request;
    request.set_call(call);
    request.set_method(method);
    request.set_message(message);
    request.set_timeout_ms(timeout_ms);
    Send(request);
  }
  void Cancel(uint64_t call) {
    v1::LocalRequest request;
    request.set_call(call);
    request.set_cancel(true);
    Send(request);
  }
  // Nullopt: the agent closed the connection.
  std::optional<v1::LocalReply> Read() {
    for (;;) {
      if (const auto frame = frames_.Next()) {
        v1::LocalReply reply;
        EXPECT_TRUE(reply.ParseFromArray(frame->data(), static_cast<int>(frame->size())));
        return reply;
      }
      char bytes[65536];
      const ssize_t count = recv(fd_, bytes, sizeof bytes, 0);
      if (count <= 0) return std::nullopt;
      frames_.Append(std::string_view(bytes, static_cast<size_t>(count)));
    }
  }
  // Reads up to the end of a call; `message`: the last before it.
  v1::LocalEnd ReadEnd(std::string* message = nullptr) {
    for (;;) {
      const auto reply = Read();
      if (!reply) {
        ADD_FAILURE() << "the agent closed the connection";
        return {};
      }
      if (reply->has_end()) return reply->end();
      if (message != nullptr) *message = reply->message();
    }
  }

 private:
  int fd_;
  FrameReader frames_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_AGENTS_NODE_LOCAL_PEER_H_
