// The database's files as the file system has them: one daemon's at a time, their owner's alone to
// read and to write, and still in their place. Knows nothing of what is in them.
#ifndef COPPICE_DB_DATABASE_FILES_H_
#define COPPICE_DB_DATABASE_FILES_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace coppice {

// Keeps a second daemon off a database, while leaving readers alone: flock(2) on a file beside the
// database and on the database itself, held for the life of the object and let go by the kernel
// however the process ends. The file beside holds the process id of the holder and is never removed
// (removing it would let two processes lock two files of one name).
class LockFile {
 public:
  // Locks `database` + ".lock", then `database`, which is made if it is absent.
  // FAILED_PRECONDITION: another process holds one of them (the message says which), or the lock
  // file cannot be made. NOT_FOUND: its folder is not there. A database that cannot be opened is
  // not locked: whoever goes on cannot, either.
  //
  // To be called before anything else of this process opens the database: the end of a refused
  // object takes away this process's fcntl(2) locks on it.
  static absl::StatusOr<std::unique_ptr<LockFile>> Acquire(const std::string& database);
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  ~LockFile();

 private:
  explicit LockFile(int descriptor) : descriptor_(descriptor) {}
  absl::Status LockDatabase(const std::string& database);

  const int descriptor_;
  int database_ = -1;  // it cannot be opened
};

// The files are their owner's alone: they hold who runs what, and patterns of programs, and a
// reader could hold a lock that stops the daemon.
//
// Makes `database`, empty and with mode 0600, if it is not there; SQLite gives the mode of it to
// the files beside it. Takes away what others may do to those that are there (-wal, -shm and .lock,
// too), as releases before left them, and says so in the log, or why it cannot. Before SQLite opens
// the database, as a close would take its locks away.
void KeepPrivate(const std::string& database);

// Whether a database is still where its name says: what was deleted, moved away or exchanged stays
// open, and takes what is written to it along. Told by device and inode, as names say nothing.
//
// Immutable: safe from any thread.
class FilesInPlace {
 public:
  // Notes the database, its log and its shared memory as they are now, open already. What the name
  // leads to counts, so a link that is pointed elsewhere is noticed, too.
  explicit FilesInPlace(const std::string& database);

  // UNAVAILABLE: another file, or none, is in the place of one of them; the message names it. Three
  // stat(2).
  absl::Status Check() const;

 private:
  struct File {
    std::string path;
    dev_t device;
    ino_t number;
  };
  const std::string database_;
  std::vector<File> files_;
};

}  // namespace coppice

#endif  // COPPICE_DB_DATABASE_FILES_H_
