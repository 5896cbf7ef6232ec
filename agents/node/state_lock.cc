#include "agents/node/state_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace coppice {

absl::StatusOr<StateLock> StateLock::Take(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return absl::UnavailableError(absl::StrCat("state_dir ", folder, ": ", std::strerror(errno),
                                               "; make a folder that the agent may write to"));
  }
  StateLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  return absl::FailedPreconditionError(
      absl::StrCat("state_dir ", folder, ": another agent uses it; stop it, or use --state-dir"));
}

StateLock::~StateLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace coppice
