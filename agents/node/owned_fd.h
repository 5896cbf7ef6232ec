// A file descriptor that is closed with its holder.
#ifndef COPPICE_AGENTS_NODE_OWNED_FD_H_
#define COPPICE_AGENTS_NODE_OWNED_FD_H_

#include <unistd.h>

#include <utility>

namespace coppice {

class OwnedFd final {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() { Close(); }

  int get() const { return fd_; }  // -1: none
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_OWNED_FD_H_
