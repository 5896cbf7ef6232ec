// What goes over NOTIFY_SOCKET, as the service manager reads it.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/service/signal_loop.h"
#include "gtest/gtest.h"

namespace coppice::systemd_test {
namespace {

// A socket of the abstract name space, where no file is left behind.
class SystemdTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = absl::StrCat("@coppice-systemd-test-", getpid());
    ear_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(ear_, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    ASSERT_EQ(bind(ear_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    close(ear_);
  }

  std::string Heard() const {
    char text[4096];
    const ssize_t size = recv(ear_, text, sizeof(text), 0);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

  int ear_ = -1;
};

// Node descriptions come from whoever runs a host, and are in the errors of sweeps.
TEST_F(SystemdTest, AStatusIsOneLineWhateverItSays) {
  const ServiceManager service;
  ASSERT_TRUE(service.is_there());
  service.Status("sweeps fail: node \"a\nMAINPID=1\r\nSTOPPING=1\"");
  EXPECT_EQ(Heard(), "STATUS=sweeps fail: node \"a MAINPID=1  STOPPING=1\"\n");
  service.Ready("two\nlines");
  EXPECT_EQ(Heard(), "STATUS=two lines\nREADY=1");
}

TEST_F(SystemdTest, ReadsWhatItIsToldAtTheStart) {
  EXPECT_EQ(ServiceManager().watchdog(), absl::InfiniteDuration());
  setenv("WATCHDOG_USEC", "3000000", 1);
  EXPECT_EQ(ServiceManager().watchdog(), absl::Seconds(3));
  unsetenv("NOTIFY_SOCKET");
  const ServiceManager nobody;
  EXPECT_FALSE(nobody.is_there());
  nobody.KeepAlive();  // to nobody
}

}  // namespace
}  // namespace coppice::systemd_test
