#include "db/files_in_place.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace coppice {

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
