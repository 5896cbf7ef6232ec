// Keeps a second daemon off a database, while leaving readers alone: an flock(2) on a file beside
// the database, held for the life of the object and let go by the kernel however the process ends.
// The file holds the process id of the holder and is never removed (removing it would let two
// processes lock two files of one name).
#ifndef COPPICE_DB_LOCK_FILE_H_
#define COPPICE_DB_LOCK_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace coppice {

class LockFile {
 public:
  // Locks `database` + ".lock". FAILED_PRECONDITION: another process holds it (the message says
  // which), or the file cannot be made.
  static absl::StatusOr<LockFile> Acquire(const std::string& database);
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&& other) = delete;
  ~LockFile();

 private:
  explicit LockFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;  // -1: moved from
};

}  // namespace coppice

#endif  // COPPICE_DB_LOCK_FILE_H_
