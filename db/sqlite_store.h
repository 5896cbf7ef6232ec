// The Store that survives: one SQLite file in WAL mode with synchronous=FULL.
//
// Invariants: one thread writes, through one connection, and commits all mutations that wait
// together in one transaction; queries use a second connection and see only what is committed. One
// process at a time holds the file (LockFile), yet anybody may read it with the sqlite3 shell.
// Knows nothing of fabrics, plans or services.
#ifndef COPPICE_DB_SQLITE_STORE_H_
#define COPPICE_DB_SQLITE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/store.h"

namespace coppice {

// The log is copied into the database when it has grown to this, and then written over from its
// begin: its file is as large as that and one group of mutations, unless a shell keeps a
// transaction open.
inline constexpr int64_t kLogBytes = 8 << 20;

struct SqliteOptions {
  // How long a write waits for another program (an administrator's shell) that is writing.
  absl::Duration busy_timeout = absl::Seconds(5);
  // Largest database in pages of 4 KiB; beyond it mutations fail as on a full disk. 0: no limit.
  int64_t max_pages = 0;
};

class SqliteStore : public Store {
 public:
  // Opens the database at `path`, which may be absent or of any older schema: it is created, or
  // migrated in one transaction. FAILED_PRECONDITION: the directory or the file cannot be used or
  // written, the schema is newer than this program, the file belongs to another program, or another
  // daemon has it open (the message names its process). NOT_FOUND: its folder. DATA_LOSS: not a
  // database, or a damaged one. Reads every page once to find damage.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& path,
                                                           const SqliteOptions& options = {});
  // The end of it applies everything that was submitted, then closes.
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_STORE_H_
