// The connection to a daemon that is away is tried again at a bounded rate.
#include "agents/node/daemon_link.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

namespace coppice::daemon_link_test {
namespace {

// Takes connections, counts them, and closes each at once.
class ClosingListener final {
 public:
  ClosingListener() : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    char folder[] = "/tmp/coppice-link-XXXXXX";
    folder_ = mkdtemp(folder);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    thread_ = std::thread([this] {
      for (;;) {
        const int fd = accept(fd_, nullptr, nullptr);
        if (fd < 0) return;
        ++connections_;
        close(fd);
      }
    });
  }
  ~ClosingListener() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
    std::filesystem::remove_all(folder_);
  }

  std::string path() const { return folder_ + "/d.sock"; }
  int connections() const { return connections_; }

 private:
  const int fd_;
  std::string folder_;
  std::atomic<int> connections_{0};
  std::thread thread_;
};

// As the renewals of many held jobs do: each would have its own connection.
TEST(DaemonLinkTest, ManyThatHurryDoNotUndoTheBackOff) {
  constexpr int kRenewals = 200;
  ClosingListener daemon;
  const auto loop = *EventLoop::Create();
  DaemonLink link(loop.get(), "unix:" + daemon.path(), grpc::InsecureChannelCredentials());
  for (int i = 0; i < kRenewals; ++i) {
    link.Hurry();
    bool is_next_due = false;
    loop->After(std::chrono::milliseconds(10), [&is_next_due] { is_next_due = true; });
    std::optional<grpc::Status> ended;
    ForwardedCall::Request request;
    request.method = "/coppice.v1.Jobs/KeepAlive";
    request.user = "1";
    ForwardedCall::Events events;
    events.on_message = [](const std::string&) {};
    events.on_end = [&ended](const grpc::Status& status) { ended = status; };
    const auto call = link.Call(request, std::move(events));
    loop->RunUntil([&] { return ended.has_value() && is_next_due; }, std::chrono::minutes(1));
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  EXPECT_GT(daemon.connections(), 0);
  EXPECT_LT(daemon.connections(), kRenewals / 2);
  loop->RunUntil([&] { return link.IsIdle(); }, std::chrono::minutes(1));
  EXPECT_TRUE(link.IsIdle());
}

}  // namespace
}  // namespace coppice::daemon_link_test
