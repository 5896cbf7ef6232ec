// What a stranger says to the measuring socket, over a real connection: it is turned away, or
// served as far as it goes. By the first byte the rest follows a good greeting of one of the two
// protocols: the header and the pings, or the header and the words about verbs, of which there is
// no port here: no program is started.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "agents/node/ping_pong.h"

namespace {

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

// Says `text` and no more.
int ConnectAndSay(uint16_t port, const std::string& text) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    __builtin_trap();
  }
  // Its end is a reset: thousands of connections a second that waited to be forgotten would take
  // all ports.
  const linger reset{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  (void)!send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(fd, SHUT_WR);
  return fd;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // Its own each time: who is not heard stays in the queue.
  auto listener = coppice::PingPongListener::Listen("127.0.0.1:0");
  if (!listener.ok()) __builtin_trap();
  const std::string greeting = std::string("coppice-ping-pong/1 ") + kToken;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string said[] = {rest, greeting + rest,
                              std::string("coppice-ping-pong/3 ") + kToken + rest};
  const int stranger = ConnectAndSay(listener->port(), said[data[0] % 3]);
  const int active = ConnectAndSay(listener->port(), greeting);  // ends the wait, and breaks off
  coppice::PingPongPlan plan;
  plan.token = kToken;
  plan.port.is_none = true;
  plan.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const absl::Status served = listener->Serve(plan);
  if (absl::IsDeadlineExceeded(served) || absl::IsInternal(served)) __builtin_trap();
  close(active);
  close(stranger);
  return 0;
}
