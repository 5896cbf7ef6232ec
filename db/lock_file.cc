#include "db/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

std::string Reason(int error) {
  char buffer[128];
  return strerror_r(error, buffer, sizeof(buffer));  // glibc's form returns the text
}

std::string HolderOf(int descriptor) {
  char text[32] = {};
  const ssize_t size = pread(descriptor, text, sizeof(text) - 1, 0);
  const std::string pid(absl::StripAsciiWhitespace(std::string(text, size > 0 ? size : 0)));
  return pid.empty() ? "another process" : absl::StrCat("process ", pid);
}

}  // namespace

absl::StatusOr<LockFile> LockFile::Acquire(const std::string& database) {
  const std::string path = absl::StrCat(database, ".lock");
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("database ", database, ": cannot open its lock file ", path, ": ",
                     Reason(errno), ": make the directory and the file writable to the daemon"));
  }
  LockFile lock(descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return absl::FailedPreconditionError(
          absl::StrCat("database ", database, ": cannot lock ", path, ": ", Reason(errno)));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("database ", database, " is in use by ", HolderOf(descriptor),
                     ": stop it, or give this daemon a database of its own"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  // The id is a courtesy to whoever finds the lock held: a full disk must not refuse the lock.
  if (ftruncate(descriptor, 0) == 0) (void)!pwrite(descriptor, pid.data(), pid.size(), 0);
  if (absl::Status status = lock.LockDatabase(database); !status.ok()) return status;
  return lock;
}

absl::Status LockFile::LockDatabase(const std::string& database) {
  database_ = open(database.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
  if (database_ < 0 || flock(database_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("database ", database, " is in use by another process, by another name of the ",
                   "same file: stop it, or give this daemon a database of its own"));
}

LockFile::LockFile(LockFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      database_(std::exchange(other.database_, -1)) {}

LockFile::~LockFile() {
  if (database_ >= 0) close(database_);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace coppice
