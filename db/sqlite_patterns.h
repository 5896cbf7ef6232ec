// Communication patterns as SQL: the writer's part and the reader's.
#ifndef COPPICE_DB_SQLITE_PATTERNS_H_
#define COPPICE_DB_SQLITE_PATTERNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_records.h"
#include "db/sqlite_connection.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class PatternWriter {
 public:
  explicit PatternWriter(Connection& connection) : connection_(connection) {}
  // The connection must hold the newest schema. Drops parts whose pattern never came.
  absl::Status Prepare();

  absl::Status Put(const PutPatternPart& put);
  absl::Status Put(const PutPattern& put);
  absl::Status Drop(const DropPatternParts& drop);
  absl::Status Drop(const DropPattern& drop);

 private:
  absl::StatusOr<bool> IsThere(int64_t id);
  absl::Status DropName(const std::string& name, const std::string& owner, bool by_administrator);

  Connection& connection_;
  Statement insert_part_, count_parts_, find_, drop_parts_, drop_name_, drop_shared_, insert_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class PatternReader {
 public:
  explicit PatternReader(Connection& connection) : connection_(connection) {}
  absl::Status Prepare();

  absl::StatusOr<std::vector<PatternRecord>> List();
  absl::StatusOr<std::string> Data(int64_t id);

 private:
  Connection& connection_;
  Statement list_, find_, parts_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_PATTERNS_H_
