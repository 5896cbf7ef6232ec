// Brings a database file of any age to the newest schema, or says why it will not touch it.
//
// user_version holds the number of the last migration applied, application_id says that the file
// is ours. A migration, once released, is never edited: the next change is the next number.
#ifndef COPPICE_DB_SQLITE_SCHEMA_H_
#define COPPICE_DB_SQLITE_SCHEMA_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "db/sqlite_connection.h"

namespace coppice {

// "Copi": tells file(1) and us whose database it is.
inline constexpr int64_t kApplicationId = 0x436f7069;

// SQL text of db/migrations/0001_*.sql, 0002_*.sql, ... in order.
absl::Span<const char* const> Migrations();

// Applies those of `migrations` that the database lacks, in one transaction: all or none.
// FAILED_PRECONDITION: the schema is newer than `migrations`, or the file is another program's.
absl::Status Migrate(SqliteConnection& connection, absl::Span<const char* const> migrations);

// DATA_LOSS if a page of a table is damaged that decides what the daemon does. Reads those tables
// and their indexes whole; neither events nor history.
absl::Status CheckIntegrity(SqliteConnection& connection);

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_SCHEMA_H_
