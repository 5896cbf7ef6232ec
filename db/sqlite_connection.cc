#include "db/sqlite_connection.h"

#include <errno.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// An I/O error whose cause is a lack of space is a full disk: SQLite tells ENOSPC of a write as
// SQLITE_FULL, but that of a flush or a truncation, and a quota, as SQLITE_IOERR.
bool IsFull(int code, int system_error) {
  if (code == SQLITE_FULL) return true;
  return code == SQLITE_IOERR && (system_error == ENOSPC || system_error == EDQUOT);
}

absl::Status MakeStatus(const std::string& path, int code, int system_error,
                        absl::string_view message) {
  const std::string text = absl::StrCat("database ", path, ": ", message);
  if (IsFull(code, system_error)) {
    return absl::UnavailableError(absl::StrCat("database ", path, ": disk full (", message,
                                               "): free space; it goes on then"));
  }
  switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(
          absl::StrCat(text, ": another program is writing to it: end that, then retry"));
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT:
      return absl::UnavailableError(absl::StrCat(text, ": check the disk, then retry"));
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return absl::FailedPreconditionError(
          absl::StrCat(text, ": it is read-only: make the file and its directory writable"));
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return absl::FailedPreconditionError(
          absl::StrCat(text, ": make the directory exist and be usable by the daemon"));
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat(text,
                       ": it is no SQLite database, or its first page is damaged: move it "
                       "away or restore a copy"));
    case SQLITE_CORRUPT:
      return absl::DataLossError(
          absl::StrCat(text, ": it is damaged: move it away or restore a copy"));
    case SQLITE_NOMEM:
      return absl::UnavailableError(absl::StrCat(text, ": give the daemon more memory"));
    case SQLITE_TOOBIG:
      return absl::InvalidArgumentError(absl::StrCat(text, ": the record is too large to keep"));
    default:
      return absl::InternalError(text);
  }
}

}  // namespace

Statement& Statement::Bind(int64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::Bind(double value) {
  sqlite3_bind_double(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::Bind(std::string_view text) {
  // A null pointer would bind NULL: an empty view may have one.
  const int result =
      sqlite3_bind_text64(statement_.get(), ++bound_, text.data() != nullptr ? text.data() : "",
                          text.size(), SQLITE_STATIC, SQLITE_UTF8);
  // Too long a text is left unbound: NULL, which the column's NOT NULL then refuses.
  static_cast<void>(result);
  return *this;
}

Statement& Statement::BindBlob(std::string_view bytes) {
  const int result =
      sqlite3_bind_blob64(statement_.get(), ++bound_, bytes.data() != nullptr ? bytes.data() : "",
                          bytes.size(), SQLITE_STATIC);
  static_cast<void>(result);  // as of texts
  return *this;
}

Statement& Statement::BindNull() {
  sqlite3_bind_null(statement_.get(), ++bound_);
  return *this;
}

absl::Status Statement::Run() {
  ASSIGN_OR_RETURN(const bool row, Step());
  if (row) Reset();
  return absl::OkStatus();
}

absl::StatusOr<bool> Statement::Step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) {
    Reset();
    return false;
  }
  absl::Status status = connection_->Failed();
  Reset();
  return status;
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());
  bound_ = 0;
}

absl::StatusOr<int64_t> Statement::Number() {
  ASSIGN_OR_RETURN(const bool row, Step());
  const int64_t number = row ? Integer(0) : 0;
  Reset();
  return number;
}

std::string_view Statement::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view Statement::Blob(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes),
          static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(
    const std::string& path, int flags, absl::Duration busy_timeout) {
  // Counting its memory would cost SQLite a lock at every allocation. Refused, harmlessly, once
  // somebody else in the process has used SQLite.
  [[maybe_unused]] static const int configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  sqlite3* database = nullptr;
  const int result = sqlite3_open_v2(path.c_str(), &database, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (database == nullptr) return absl::UnavailableError("out of memory opening " + path);
  auto connection = std::unique_ptr<SqliteConnection>(new SqliteConnection(path, database));
  if (result != SQLITE_OK) return connection->Failed();
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_timeout(database, static_cast<int>(absl::ToInt64Milliseconds(busy_timeout)));
  return connection;
}

absl::StatusOr<Statement> SqliteConnection::Prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &raw, nullptr) != SQLITE_OK) {
    return Failed();
  }
  Statement statement;
  statement.connection_ = this;
  statement.statement_.reset(raw);
  return statement;
}

absl::Status SqliteConnection::Execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  return Failed();
}

absl::StatusOr<int64_t> SqliteConnection::QueryInteger(std::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  const int64_t value = row ? statement.Integer(0) : 0;
  statement.Reset();
  return value;
}

absl::Status SqliteConnection::ErrorStatus() const {
  return MakeStatus(path_, sqlite3_errcode(database_.get()) & 0xff,
                    sqlite3_system_errno(database_.get()), sqlite3_errmsg(database_.get()));
}

absl::Status SqliteConnection::Failed() {
  absl::Status status = ErrorStatus();
  if (!absl::IsInternal(status) && !absl::IsInvalidArgument(status) && storage_failure_.ok())
    storage_failure_ = status;
  return status;
}

}  // namespace coppice
