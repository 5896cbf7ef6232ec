// Migrations and the check of integrity (sqlite_tables.h).
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

absl::Status CheckOwner(SqliteConnection& connection, int64_t version) {
  ASSIGN_OR_RETURN(const int64_t owner, connection.Sql("PRAGMA application_id").Number());
  if (owner == kApplicationId) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t objects,
                   connection.Sql("SELECT count(*) FROM sqlite_schema").Number());
  if (owner == 0 && version == 0 && objects == 0) return absl::OkStatus();  // a new file
  return absl::FailedPreconditionError(
      absl::StrCat("database ", connection.path(),
                   " belongs to another program: give the daemon a file of its own"));
}

absl::Status ApplyAll(SqliteConnection& connection, absl::Span<const char* const> migrations,
                      const char* newest) {
  // Read again inside the transaction: nobody else can change it now.
  ASSIGN_OR_RETURN(const int64_t version, connection.Sql("PRAGMA user_version").Number());
  const bool is_at_once = version == 0 && newest != nullptr;
  if (is_at_once) RETURN_IF_ERROR(connection.Execute(newest));
  const size_t first = is_at_once ? migrations.size() : static_cast<size_t>(version);
  for (size_t next = first; next < migrations.size(); ++next) {
    absl::Status status = connection.Execute(migrations[next]);
    if (!status.ok()) return Annotate(status, absl::StrCat("migration to schema ", next + 1));
  }
  return connection.Execute(absl::StrCat("PRAGMA user_version = ", migrations.size(),
                                         "; PRAGMA application_id = ", kApplicationId));
}

// Not what only tells of the past: it may be gigabytes.
constexpr char kCheckedTables[] = R"sql(
    SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN
        ('event', 'deed', 'history_slot', 'reading_history', 'minute_history', 'hour_history'))sql";

absl::Status CheckTable(SqliteConnection& connection, const std::string& table) {
  Statement check(connection, absl::StrCat("PRAGMA integrity_check(\"", table, "\")"));
  ASSIGN_OR_RETURN(const bool row, check.Step());
  const std::string verdict = row ? std::string(check.Text(0)) : "no answer";
  check.Reset();
  if (verdict == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("database ", connection.path(), " is damaged (table ",
                                          table, ": ", verdict,
                                          "): move it away or restore a copy"));
}

}  // namespace

absl::Status Migrate(SqliteConnection& connection, absl::Span<const char* const> migrations,
                     const char* newest) {
  ASSIGN_OR_RETURN(const int64_t version, connection.Sql("PRAGMA user_version").Number());
  RETURN_IF_ERROR(CheckOwner(connection, version));
  const int64_t last = static_cast<int64_t>(migrations.size());
  if (version == last) return absl::OkStatus();
  if (version > last || version < 0) {
    return absl::FailedPreconditionError(absl::StrCat("database ", connection.path(), ": schema ",
                                                      version, " is newer than this program's ",
                                                      last, ": upgrade coppiced"));
  }
  RETURN_IF_ERROR(connection.Execute("BEGIN IMMEDIATE"));
  absl::Status status = ApplyAll(connection, migrations, newest);
  if (status.ok()) status = connection.Execute("COMMIT");
  if (!status.ok() && connection.in_transaction()) {
    connection.Execute("ROLLBACK").IgnoreError();  // the first error is the one to tell
  }
  return status;
}

absl::Status CheckIntegrity(SqliteConnection& connection) {
  std::vector<std::string> tables = {"sqlite_schema"};
  Statement list(connection, kCheckedTables);
  RETURN_IF_ERROR(list.ForEach([&](const Statement& row) { tables.emplace_back(row.Text(0)); }));
  for (const std::string& table : tables) RETURN_IF_ERROR(CheckTable(connection, table));
  return absl::OkStatus();
}

}  // namespace coppice
