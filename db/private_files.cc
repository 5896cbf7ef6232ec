#include "db/private_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"

namespace coppice {
namespace {

constexpr mode_t kOwners = 0600, kOthers = 077, kAll = 07777;

}  // namespace

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

}  // namespace coppice
