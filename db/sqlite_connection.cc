#include "db/sqlite_connection.h"

#include <errno.h>

#include "absl/strings/str_cat.h"

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
  const auto failed = [&](absl::StatusCode status, absl::string_view what_to_do) {
    return absl::Status(status, absl::StrCat("database ", path, ": ", message, ": ", what_to_do));
  };
  using Code = absl::StatusCode;
  if (IsFull(code, system_error)) {
    return absl::UnavailableError(absl::StrCat("database ", path, ": disk full (", message,
                                               "): free space; it goes on then"));
  }
  switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return failed(Code::kUnavailable, "another program is writing to it: end that, then retry");
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT:
      return failed(Code::kUnavailable, "check the disk, then retry");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return failed(Code::kFailedPrecondition,
                    "it is read-only: make the file and its directory writable");
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return failed(Code::kFailedPrecondition,
                    "make its folder, and let this user read and write there");
    case SQLITE_NOTADB:
      return failed(Code::kDataLoss,
                    "it is no SQLite database, or its first page is damaged: move "
                    "it away or restore a copy");
    case SQLITE_CORRUPT:
      return failed(Code::kDataLoss, "it is damaged: move it away or restore a copy");
    case SQLITE_NOMEM:
      return failed(Code::kUnavailable, "give the daemon more memory");
    case SQLITE_TOOBIG:
      return failed(Code::kInvalidArgument, "the record is too large to keep");
    default:
      return absl::InternalError(absl::StrCat("database ", path, ": ", message));
  }
}

}  // namespace

absl::Status Statement::Prepare() {
  if (statement_ != nullptr) return absl::OkStatus();
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v3(connection_->database_.get(), sql_.data(), static_cast<int>(sql_.size()),
                         SQLITE_PREPARE_PERSISTENT, &raw, nullptr) != SQLITE_OK) {
    return connection_->Failed();
  }
  statement_.reset(raw);
  return absl::OkStatus();
}

// Null if it cannot be prepared, as Step will tell.
sqlite3_stmt* Statement::Handle() {
  if (statement_ == nullptr) Prepare().IgnoreError();
  return statement_.get();
}

void Statement::BindOne(std::string_view text) {
  // A null pointer would bind NULL: an empty view may have one. Too long a text is left unbound:
  // NULL, which the column's NOT NULL then refuses.
  static_cast<void>(sqlite3_bind_text64(Handle(), ++bound_,
                                        text.data() != nullptr ? text.data() : "", text.size(),
                                        SQLITE_STATIC, SQLITE_UTF8));
}

void Statement::BindOne(Blob blob) {
  const char* const bytes = blob.bytes.data() != nullptr ? blob.bytes.data() : "";
  static_cast<void>(  // as of texts
      sqlite3_bind_blob64(Handle(), ++bound_, bytes, blob.bytes.size(), SQLITE_STATIC));
}

void Statement::ReadOne(int column, absl::Duration& duration) const {
  const int64_t ns = Integer(column);
  duration = ns == INT64_MAX ? absl::InfiniteDuration() : absl::Nanoseconds(ns);
}

absl::StatusOr<bool> Statement::StepBound() {
  RETURN_IF_ERROR(Prepare());
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

absl::Status Statement::Damaged(const absl::Status& damage, const std::string& row) const {
  return Annotate(damage, absl::StrCat("database ", connection_->path(), ": ", row));
}

std::string_view Statement::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view Statement::Bytes(int column) const {
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

Statement& SqliteConnection::Sql(absl::string_view sql) {
  std::unique_ptr<Statement>& kept = statements_[sql];
  if (kept == nullptr) kept = std::make_unique<Statement>(*this, std::string(sql));
  return *kept;
}

absl::Status SqliteConnection::Execute(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  return Failed();
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
