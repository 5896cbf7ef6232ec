#include "daemon/rpc/listen/listen_address.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";
constexpr int kMaxPort = 65535;
constexpr size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;  // 107 on Linux

absl::Status BadAddress(absl::string_view address, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("listen address \"", address, "\": ", what));
}

absl::Status CheckSocketPath(absl::string_view address) {
  const std::string path = SocketPath(address);
  if (path.empty()) return BadAddress(address, "give the path of the socket: unix:/PATH");
  if (absl::StartsWith(address, "unix://") && path.front() != '/') {
    return BadAddress(address, "a path after unix:// must be absolute");
  }
  if (path.size() > kMaxSocketPath) {
    return BadAddress(address, absl::StrCat("the path has ", path.size(),
                                            " bytes; a socket's may have ", kMaxSocketPath));
  }
  return absl::OkStatus();
}

// True if a process accepts connections at `path`.
bool IsAlive(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = errno;
  close(fd);
  return result == 0 || error == EAGAIN;  // EAGAIN: its queue of connections is full
}

absl::Status CheckDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0               ? "/"
                                                           : path.substr(0, slash);
  if (access(directory.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("socket ", path, ": its directory ", directory, ": ", std::strerror(errno),
                   "; create it, writable for the daemon, or listen elsewhere"));
}

}  // namespace

bool IsUnixAddress(absl::string_view address) { return absl::StartsWith(address, kUnixPrefix); }

std::string SocketPath(absl::string_view address) {
  absl::string_view path = address.substr(kUnixPrefix.size());
  absl::ConsumePrefix(&path, "//");
  return std::string(path);
}

absl::Status CheckListenAddress(absl::string_view address) {
  if (IsUnixAddress(address)) return CheckSocketPath(address);
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0) {
    return BadAddress(address, "give unix:PATH or HOST:PORT");
  }
  if (!absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > kMaxPort) {
    return BadAddress(address, "the port must be a number from 0 (any free one) to 65535");
  }
  return absl::OkStatus();
}

absl::Status CheckNeedsNoTls(absl::string_view address) {
  if (IsUnixAddress(address)) return absl::OkStatus();
  return BadAddress(
      address,
      "TCP without TLS is refused: give [tls] certificate and key, or state "
      "insecure_tcp = true (--insecure-tcp) to let anybody who reaches it use the daemon");
}

absl::Status PrepareListenAddress(const std::string& address) {
  if (!IsUnixAddress(address)) return absl::OkStatus();
  const std::string path = SocketPath(address);
  if (absl::Status status = CheckDirectory(path); !status.ok()) return status;
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();  // nothing there
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "socket ", path, ": a file that is no socket is there; remove it or listen elsewhere"));
  }
  if (IsAlive(path)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "socket ", path, ": another process listens there; stop it or listen elsewhere"));
  }
  if (unlink(path.c_str()) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("socket ", path, ": cannot remove the stale file: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace coppice
