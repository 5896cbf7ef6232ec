#include "client/library/own_descriptor.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>

namespace coppice {
namespace {

// Held for a system call or a step in the list, and by fork().
std::mutex mu;
OwnDescriptor* first = nullptr;  // guarded by mu

}  // namespace

// In a child, with mu held since before fork().
void OwnDescriptor::CloseAll() {
  for (OwnDescriptor* each = first; each != nullptr; each = each->after_) {
    close(each->fd_);
    each->fd_ = -1;
  }
  mu.unlock();
}

void OwnDescriptor::Watch() {
  static const int watched = pthread_atfork([] { mu.lock(); }, [] { mu.unlock(); }, CloseAll);
  static_cast<void>(watched);  // without memory for it a child keeps what it has
}

bool OwnDescriptor::Keep(int fd) {
  if (fd < 0) return false;
  fd_ = fd;
  after_ = first;
  if (first != nullptr) first->before_ = this;
  first = this;
  return true;
}

bool OwnDescriptor::OpenUnixSocket() {
  Watch();
  const std::lock_guard<std::mutex> lock(mu);
  return Keep(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

bool OwnDescriptor::OpenEvent() {
  Watch();
  const std::lock_guard<std::mutex> lock(mu);
  return Keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

OwnDescriptor::~OwnDescriptor() {
  const std::lock_guard<std::mutex> lock(mu);
  if (fd_ < 0) return;
  if (first == this) first = after_;
  if (before_ != nullptr) before_->after_ = after_;
  if (after_ != nullptr) after_->before_ = before_;
  close(fd_);
}

}  // namespace coppice
