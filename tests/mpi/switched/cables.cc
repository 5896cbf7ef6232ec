// Cables between network namespaces that delay, lose and reorder packets, where the kernel has no
// netem: cables DELAY_US LOSS REORDERED SEED. Lines "PID INTERFACE PID INTERFACE" on standard input
// lay one each, between an interface in the namespace of either process, and are answered by
// "laid"; "go" ends them, and packets go until the program is killed.
//
// Each packet is lost with probability LOSS, else it arrives after DELAY_US, or with probability
// REORDERED up to a millisecond later, behind packets that were sent after it.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

int64_t NowUs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

// An interface of that name in the namespace of the process; what is written comes out of it.
int Interface(int pid, const std::string& name) {
  const int space = open(("/proc/" + std::to_string(pid) + "/ns/net").c_str(), O_RDONLY);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) Fail("the namespace of " + std::to_string(pid));
  close(space);
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  if (tap < 0) Fail("/dev/net/tun");
  ifreq request = {};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  if (ioctl(tap, TUNSETIFF, &request) != 0) Fail(name);
  return tap;
}

struct Packet {
  int64_t due_us = 0;
  uint64_t number = 0;
  int to = -1;
  std::string bytes;
  bool operator>(const Packet& other) const {
    return std::pair(due_us, number) > std::pair(other.due_us, other.number);
  }
};

class Cables {
 public:
  Cables(int64_t delay_us, double loss, double reordered, uint64_t seed)
      : delay_us_(delay_us), loss_(loss), reordered_(reordered), random_(seed) {}

  void Lay(int near, int far) {
    for (const auto& [from, to] : {std::pair(near, far), std::pair(far, near)}) {
      other_[from] = to;
      epoll_event event = {};
      event.events = EPOLLIN;
      event.data.fd = from;
      if (epoll_ctl(poll_, EPOLL_CTL_ADD, from, &event) != 0) Fail("epoll_ctl");
    }
  }

  [[noreturn]] void Run() {
    for (;;) {
      timespec wait = {1, 0};
      if (!packets_.empty()) {
        const int64_t left = std::max<int64_t>(0, packets_.top().due_us - NowUs());
        wait = {left / 1'000'000, left % 1'000'000 * 1000};
      }
      epoll_event events[64];
      const int count = epoll_pwait2(poll_, events, 64, &wait, nullptr);
      for (int i = 0; i < count; ++i) Take(events[i].data.fd);
      // One that finds no room in the interface is lost.
      for (; !packets_.empty() && packets_.top().due_us <= NowUs(); packets_.pop()) {
        const Packet& packet = packets_.top();
        if (write(packet.to, packet.bytes.data(), packet.bytes.size()) < 0) continue;
      }
    }
  }

 private:
  void Take(int from) {
    char bytes[65536];
    for (ssize_t size; (size = read(from, bytes, sizeof bytes)) > 0;) {
      if (share_(random_) < loss_) continue;
      int64_t due_us = NowUs() + delay_us_;
      if (share_(random_) < reordered_) due_us += static_cast<int64_t>(share_(random_) * 1000);
      packets_.push({due_us, ++number_, other_[from], std::string(bytes, size)});
    }
  }

  const int64_t delay_us_;
  const double loss_, reordered_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> share_{0, 1};
  const int poll_ = epoll_create1(0);
  std::map<int, int> other_;
  std::priority_queue<Packet, std::vector<Packet>, std::greater<>> packets_;
  uint64_t number_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: cables DELAY_US LOSS REORDERED SEED\n");
    return 2;
  }
  Cables cables(std::atoll(argv[1]), std::atof(argv[2]), std::atof(argv[3]),
                std::strtoull(argv[4], nullptr, 10));
  for (std::string word; std::cin >> word && word != "go";) {
    int far = 0;
    std::string near_name, far_name;
    std::cin >> near_name >> far >> far_name;
    const int near_tap = Interface(std::atoi(word.c_str()), near_name);
    cables.Lay(near_tap, Interface(far, far_name));
    std::cout << "laid" << std::endl;
  }
  cables.Run();
}
