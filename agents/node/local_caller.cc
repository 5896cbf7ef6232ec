#include "agents/node/local_caller.h"

#include <sys/socket.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace coppice {

absl::StatusOr<LocalCaller> IdentifyCaller(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return absl::InternalError("the kernel does not say who connected");
  }
  return LocalCaller{credentials.uid, credentials.pid, absl::StrCat(credentials.uid)};
}

}  // namespace coppice
