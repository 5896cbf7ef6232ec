// Keeps a second daemon off a database, while leaving readers alone: flock(2) on a file beside the
// database and on the database itself, held for the life of the object and let go by the kernel
// however the process ends. The file beside holds the process id of the holder and is never removed
// (removing it would let two processes lock two files of one name). The database's own lock is the
// inode's, whatever link leads there. SQLite's locks are fcntl(2)'s: the two do not meet.
#ifndef COPPICE_DB_LOCK_FILE_H_
#define COPPICE_DB_LOCK_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace coppice {

class LockFile {
 public:
  // Locks `database` + ".lock", then `database`, which is made if it is absent.
  // FAILED_PRECONDITION: another process holds one of them (the message says which), or the lock
  // file cannot be made. A database that cannot be opened is not locked: whoever goes on cannot,
  // either.
  //
  // To be called before anything else of this process opens the database: the end of a refused
  // object takes away this process's fcntl(2) locks on it.
  static absl::StatusOr<LockFile> Acquire(const std::string& database);
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&& other) = delete;
  ~LockFile();

 private:
  explicit LockFile(int descriptor) : descriptor_(descriptor) {}
  absl::Status LockDatabase(const std::string& database);

  int descriptor_;     // -1: moved from
  int database_ = -1;  // the same, or it cannot be opened
};

}  // namespace coppice

#endif  // COPPICE_DB_LOCK_FILE_H_
