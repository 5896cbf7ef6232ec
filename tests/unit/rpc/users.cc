#include "tests/unit/rpc/users.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "daemon/rpc/listen/listeners.h"

namespace coppice {
namespace {

// Clients' descriptors are from here on: the numbers below are left to the server.
constexpr int kFirstOfClients = 500;

int Connect(const std::string& path) {
  const int low = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int fd = fcntl(low, F_DUPFD_CLOEXEC, kFirstOfClients);
  close(low);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

}  // namespace

bool MayActAsOthers() {
  EXPECT_EQ(geteuid(), 0) << "run as root: only root can connect as another user";
  return geteuid() == 0;
}

int ConnectAs(uid_t uid, const std::string& address) {
  int fd = -1, error = 0;
  // The bare system call changes the user of its own thread only.
  std::thread([&] {
    if (syscall(SYS_setresuid, uid, uid, uid) == 0) fd = Connect(SocketPath(address));
    error = errno;
  }).join();
  EXPECT_GE(fd, 0) << "user " << uid << " at " << address << ": " << std::strerror(error);
  return fd;
}

std::shared_ptr<grpc::Channel> ChannelOf(int fd) {
  return grpc::CreateInsecureChannelFromFd("user", fd);
}

}  // namespace coppice
