#include "tests/unit/client/library/scripted_agent.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace coppice {

std::optional<v1::LocalRequest> ScriptedConnection::Read() {
  for (;;) {
    if (const auto frame = frames_.Next()) {
      v1::LocalRequest request;
      if (!request.ParseFromArray(frame->data(), static_cast<int>(frame->size()))) abort();
      return request;
    }
    char bytes[65536];
    const ssize_t count = recv(fd_, bytes, sizeof bytes, 0);
    if (count <= 0) return std::nullopt;
    frames_.Append(std::string_view(bytes, static_cast<size_t>(count)));
  }
}

bool ScriptedConnection::SendBytes(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

bool ScriptedConnection::Message(uint64_t call, const std::string& message) {
  v1::LocalReply reply;
  reply.set_call(call);
  reply.set_message(message);
  std::string frame;
  AppendFrame(reply.SerializeAsString(), frame);
  return SendBytes(frame);
}

void ScriptedConnection::End(uint64_t call, uint32_t code, const std::string& message) {
  v1::LocalReply reply;
  reply.set_call(call);
  reply.mutable_end()->set_code(code);
  reply.mutable_end()->set_message(message);
  std::string frame;
  AppendFrame(reply.SerializeAsString(), frame);
  SendBytes(frame);
}

void ScriptedConnection::Answer(uint64_t call, const std::string& message) {
  Message(call, message);
  End(call);
}

ScriptedAgent::ScriptedAgent(Script script) : script_(std::move(script)) {
  char folder[] = "/tmp/coppice-scripted-XXXXXX";
  folder_ = mkdtemp(folder);
  path_ = folder_ + "/agent.sock";
  Start();
}

ScriptedAgent::~ScriptedAgent() {
  Stop();
  rmdir(folder_.c_str());
}

void ScriptedAgent::Start() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) abort();
  if (listen(listener, 128) != 0) abort();
  listener_ = listener;
  acceptor_ = std::thread([this, listener] { Accept(listener); });
}

void ScriptedAgent::Accept(int listener) {
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard<std::mutex> lock(mu_);
    fds_.push_back(fd);
    threads_.emplace_back([this, fd, index = connections_++] {
      ScriptedConnection connection(fd);
      script_(connection, index);
      shutdown(fd, SHUT_RDWR);
    });
  }
}

int ScriptedAgent::connections() {
  const std::lock_guard<std::mutex> lock(mu_);
  return connections_;
}

void ScriptedAgent::Stop() {
  if (listener_ < 0) return;
  unlink(path_.c_str());
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(std::exchange(listener_, -1));
  std::vector<std::thread> threads;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    for (const int fd : fds_) shutdown(fd, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  for (const int fd : fds_) close(fd);
  fds_.clear();
}

}  // namespace coppice
