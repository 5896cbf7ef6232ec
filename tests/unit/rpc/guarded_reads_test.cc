// Connections whose frames would cost gRPC memory or time without bound are closed, over a real
// server, and others go on.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <string>

#include "tests/unit/rpc/http2_frames.h"
#include "tests/unit/rpc/loopback.h"
#include "tests/unit/rpc/users.h"

namespace coppice::guarded_reads_test {
namespace {

constexpr size_t kMaxSent = 64 << 20;

// Sends `begin`, then `again` until the server closes the connection; bytes that were sent. The
// server's own words are read and thrown away. A server that takes all of kMaxSent fails the test.
size_t SendUntilClosed(int fd, const std::string& begin, const std::string& again) {
  timeval bound{30, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
  std::string next = begin;
  size_t sent = 0;
  while (sent < kMaxSent) {
    const ssize_t size = send(fd, next.data(), next.size(), MSG_NOSIGNAL);
    if (size <= 0) break;
    sent += static_cast<size_t>(size);
    next = again;
    char heard[4096];
    while (recv(fd, heard, sizeof(heard), MSG_DONTWAIT) > 0) {
    }
  }
  close(fd);
  EXPECT_LT(sent, kMaxSent);
  return sent;
}

bool Answers(Loopback& loopback) {
  return loopback.Call(loopback.fabric(), &v1::Fabric::Stub::GetFabric, v1::GetFabricRequest())
      .ok();
}

TEST(GuardedReadsTest, HeadersWithoutEndAreCutOff) {
  Loopback loopback;
  ASSERT_TRUE(Answers(loopback));
  // A literal header without indexing (RFC 7541, section 6.2.2), whole in each frame: gRPC bounds
  // what one frame decodes to, not the sum.
  std::string header = std::string("\x00\x01", 2) + "a" + "\x7f\x81\x3e";
  header.append(127 + 0x1f01, 'b');
  const int fd = ConnectAs(geteuid(), loopback.server().addresses()[0]);
  ASSERT_GE(fd, 0);
  const size_t sent = SendUntilClosed(fd,
                                      kHttp2Preface + Http2Frame(kSettingsFrame, 0, 0, "") +
                                          Http2Frame(kHeadersFrame, 0, 1, header),
                                      Http2Frame(kContinuationFrame, 0, 1, header));
  EXPECT_LT(sent, 4u << 20);  // what a socket holds beside what was read
  EXPECT_TRUE(Answers(loopback));
}

TEST(GuardedReadsTest, FloodOfSettingsIsCutOff) {
  Loopback loopback;
  const int fd = ConnectAs(geteuid(), loopback.server().addresses()[0]);
  ASSERT_GE(fd, 0);
  SendUntilClosed(fd, kHttp2Preface, Http2Frame(kSettingsFrame, 0, 0, ""));
  EXPECT_TRUE(Answers(loopback));
}

}  // namespace
}  // namespace coppice::guarded_reads_test
