// Whether a database is still where its name says: what was deleted, moved away or exchanged stays
// open, and takes what is written to it along. Told by device and inode, as names say nothing.
#ifndef COPPICE_DB_FILES_IN_PLACE_H_
#define COPPICE_DB_FILES_IN_PLACE_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace coppice {

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

#endif  // COPPICE_DB_FILES_IN_PLACE_H_
