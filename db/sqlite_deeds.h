// The account of deeds as SQL: the writer's part and the reader's.
#ifndef COPPICE_DB_SQLITE_DEEDS_H_
#define COPPICE_DB_SQLITE_DEEDS_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/deed_records.h"
#include "db/kept_deeds.h"
#include "db/sqlite_connection.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class DeedWriter {
 public:
  explicit DeedWriter(Connection& connection) : connection_(connection) {}
  // The connection must hold the newest schema.
  absl::Status Prepare();

  absl::Status Append(const AppendDeeds& append);
  absl::Status Append(const DeedRecord& deed, const DeedLimits& limits);
  // What became of the transaction.
  void Committed() { changed_ = false; }
  void RolledBack() {
    if (changed_) kept_.reset();
    changed_ = false;
  }

 private:
  absl::Status ReadKept();

  Connection& connection_;
  Statement insert_, fold_, delete_, list_;
  std::optional<KeptDeeds> kept_;  // unset: not read, or what was read is undone
  bool changed_ = false;           // in the open transaction
  KeptDeeds::Changes changes_;     // reused from deed to deed
};

// As SqliteReader, part of which it is. Contracts as of Store.
class DeedReader {
 public:
  explicit DeedReader(Connection& connection) : connection_(connection) {}
  absl::Status Prepare();

  absl::StatusOr<std::vector<DeedRecord>> Find(const DeedFilter& filter);

 private:
  Connection& connection_;
  Statement find_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_DEEDS_H_
