#include "daemon/rpc/listen/accept_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/log.h"

namespace coppice {
namespace {

constexpr int kPauseMs = 100;  // when no descriptor is left; poll would return at once

}  // namespace

absl::StatusOr<std::unique_ptr<AcceptLoop>> AcceptLoop::Create(std::string what) {
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return absl::UnavailableError(absl::StrCat("eventfd: ", std::strerror(errno)));
  return std::unique_ptr<AcceptLoop>(new AcceptLoop(std::move(what), wake));
}

AcceptLoop::~AcceptLoop() {
  Stop();
  close(wake_);
}

void AcceptLoop::Start(const std::vector<int>& listening, int threads, OnConnection on_connection) {
  on_connection_ = std::move(on_connection);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, listening] { Run(listening); });
}

void AcceptLoop::Stop() {
  if (threads_.empty()) return;
  eventfd_write(wake_, 1);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void AcceptLoop::Run(const std::vector<int>& listening) {
  std::vector<pollfd> watched = {{wake_, POLLIN, 0}};
  for (const int fd : listening) watched.push_back({fd, POLLIN, 0});
  while (true) {
    if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) {
      spdlog::error("{}: poll: {}; nobody can connect any more", what_, std::strerror(errno));
      return;
    }
    if (watched[0].revents != 0) return;
    bool can_go_on = true;
    for (size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0 && !AcceptAll(i - 1, watched[i].fd)) can_go_on = false;
    }
    if (!can_go_on) poll(watched.data(), 1, kPauseMs);
  }
}

bool AcceptLoop::AcceptAll(size_t index, int listening) {
  while (true) {
    const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return true;
      if (!is_short_.exchange(true)) {
        spdlog::error("{}: cannot accept: {}; connections wait", what_, std::strerror(errno));
      }
      return false;
    }
    is_short_ = false;
    on_connection_(index, fd);
  }
}

}  // namespace coppice
