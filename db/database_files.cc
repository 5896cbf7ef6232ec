#include "db/database_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/text/log.h"

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

constexpr mode_t kOwners = 0600, kOthers = 077, kAll = 07777;

}  // namespace

absl::StatusOr<std::unique_ptr<LockFile>> LockFile::Acquire(const std::string& database) {
  const std::string path = absl::StrCat(database, ".lock");
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    const int fault = errno;
    const std::string what = absl::StrCat("database ", database, ": cannot open its lock file ",
                                          path, ": ", Reason(fault));
    if (fault == ENOENT) return absl::NotFoundError(what + ": make the folder, or name another");
    return absl::FailedPreconditionError(what + ": make folder and file writable to this user");
  }
  std::unique_ptr<LockFile> lock(new LockFile(descriptor));
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return absl::FailedPreconditionError(
          absl::StrCat("database ", database, ": cannot lock ", path, ": ", Reason(errno)));
    }
    return absl::FailedPreconditionError(absl::StrCat("database ", database, " is in use by ",
                                                      HolderOf(descriptor),
                                                      ": stop it, or name another database"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  // The id is a courtesy to whoever finds the lock held: a full disk must not refuse the lock.
  if (ftruncate(descriptor, 0) == 0) (void)!pwrite(descriptor, pid.data(), pid.size(), 0);
  if (absl::Status status = lock->LockDatabase(database); !status.ok()) return status;
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

LockFile::~LockFile() {
  if (database_ >= 0) close(database_);
  close(descriptor_);
}

void KeepPrivate(const std::string& database) {
  const int made = open(database.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kOwners);
  if (made >= 0) close(made);
  for (const char* const end : {"", "-wal", "-shm", ".lock"}) {
    const std::string path = database + end;
    struct stat info {};
    if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if ((info.st_mode & kOthers) == 0) continue;
    if (chmod(path.c_str(), info.st_mode & kAll & ~kOthers) == 0) {
      spdlog::warn("database: others could open {}; from now on only its owner and root can", path);
    } else {
      spdlog::warn(
          "database: others can open {}, and that cannot be changed: {}; make it the "
          "daemon's user's own",
          path, strerror(errno));
    }
  }
}

FilesInPlace::FilesInPlace(const std::string& database) : database_(database) {
  // SQLite keeps the other two beside the file itself, not beside a link to it.
  std::error_code absent;
  const std::filesystem::path resolved = std::filesystem::canonical(database, absent);
  const std::string real = absent ? database : resolved.string();
  for (const std::string& path : {database, real + "-wal", real + "-shm"}) {
    struct stat now {};
    if (stat(path.c_str(), &now) == 0) files_.push_back({path, now.st_dev, now.st_ino});
  }
}

absl::Status FilesInPlace::Check() const {
  for (const File& file : files_) {
    struct stat now {};
    const bool is_there = stat(file.path.c_str(), &now) == 0;
    if (is_there && now.st_dev == file.device && now.st_ino == file.number) continue;
    return absl::UnavailableError(
        absl::StrCat("database ", database_, ": ", file.path,
                     is_there ? " was exchanged" : " was deleted or moved",
                     " under the daemon, and what it grants would be lost: nothing is written "
                     "until that very file "
                     "is moved back; else restore one and start the daemon again"));
  }
  return absl::OkStatus();
}

}  // namespace coppice
