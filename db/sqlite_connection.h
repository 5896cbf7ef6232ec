// SQLite's C interface as values with owners, and its result codes as statuses that name the
// database. The only place that knows result codes.
//
// A connection and its statements belong to one thread at a time.
#ifndef COPPICE_DB_SQLITE_CONNECTION_H_
#define COPPICE_DB_SQLITE_CONNECTION_H_

#include <sqlite3.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strong_id.h"

namespace coppice {

class SqliteConnection;

// A statement, prepared when it is first used. Must not outlive the connection.
class Statement {
 public:
  Statement(SqliteConnection& connection, std::string sql)
      : connection_(&connection), sql_(std::move(sql)) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Binds the next parameters, from the first one after each Run or Reset: whole numbers and ids as
  // such, times and durations in nanoseconds. Texts and bytes are not copied: they must live until
  // then.
  template <class... Values>
  Statement& Bind(const Values&... values) {
    (BindOne(values), ...);
    return *this;
  }
  struct Blob {
    std::string_view bytes;
  };
  // Bytes that are NULL if there are none.
  struct OptionalBlob {
    std::string_view bytes;
  };
  // A text that is NULL if it is empty.
  struct Optional {
    std::string_view text;
  };

  // Each binds `values`, too.
  // Runs to the end and resets.
  template <class... Values>
  absl::Status Run(const Values&... values) {
    ASSIGN_OR_RETURN(const bool row, Bind(values...).Step());
    if (row) Reset();
    return absl::OkStatus();
  }
  // True if there is a row to read. After false or an error the statement is reset.
  template <class... Values>
  absl::StatusOr<bool> Step(const Values&... values) {
    return Bind(values...).StepBound();
  }
  // The number that it finds: in the first column of its first row, and 0 if there is none, or
  // NULL. Resets.
  template <class... Values>
  absl::StatusOr<int64_t> Number(const Values&... values) {
    ASSIGN_OR_RETURN(const bool row, Bind(values...).StepBound());
    const int64_t number = row ? Integer(0) : 0;
    Reset();
    return number;
  }
  void Reset();
  // Calls read(*this) for each row and resets. `read` may return whether it goes on, or a status,
  // of which the first that is not OK ends it.
  template <class Read>
  absl::Status ForEach(const Read& read) {
    using Result = std::invoke_result_t<Read, const Statement&>;
    absl::Status status;
    for (bool goes_on = true; goes_on && status.ok();) {
      ASSIGN_OR_RETURN(const bool is_row, StepBound());
      if (!is_row) return absl::OkStatus();
      if constexpr (std::is_void_v<Result>) {
        read(std::as_const(*this));
      } else if constexpr (std::is_same_v<Result, bool>) {
        goes_on = read(std::as_const(*this));
      } else {
        status = read(std::as_const(*this));
      }
    }
    Reset();
    return status;
  }
  // The record of each row, which `read(row, record)` fills.
  template <class Record, class Read>
  absl::StatusOr<std::vector<Record>> List(const Read& read) {
    std::vector<Record> records;
    RETURN_IF_ERROR(
        ForEach([&](const Statement& row) { return read(row, records.emplace_back()); }));
    return records;
  }

  // Fills these from the columns from the first on, by their types. NULL is 0, an empty text, and
  // the infinite future.
  template <class... Fields>
  void Read(Fields&... fields) const {
    int column = 0;
    (ReadOne(column++, fields), ...);
  }
  int64_t Integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  // Valid until the next Step or Reset.
  std::string_view Text(int column) const;
  std::string_view Bytes(int column) const;
  bool IsNull(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  }
  Guid GuidAt(int column) const { return Guid(static_cast<uint64_t>(Integer(column))); }
  absl::Time TimeAt(int column) const { return absl::FromUnixNanos(Integer(column)); }

  // `damage` of a row, with the database's name and its own: "job 7".
  absl::Status Damaged(const absl::Status& damage, const std::string& row) const;

 private:
  friend class SqliteConnection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  absl::Status Prepare();
  absl::StatusOr<bool> StepBound();
  sqlite3_stmt* Handle();

  template <std::integral Value>
  void BindOne(Value value) {
    sqlite3_bind_int64(Handle(), ++bound_, static_cast<int64_t>(value));
  }
  template <class Tag, class Rep>
  void BindOne(StrongId<Tag, Rep> id) {
    BindOne(id.value());
  }
  void BindOne(absl::Time time) { BindOne(absl::ToUnixNanos(time)); }
  void BindOne(absl::Duration duration) { BindOne(absl::ToInt64Nanoseconds(duration)); }
  void BindOne(double value) { sqlite3_bind_double(Handle(), ++bound_, value); }
  void BindOne(std::nullptr_t) { sqlite3_bind_null(Handle(), ++bound_); }
  void BindOne(std::string_view text);
  void BindOne(Blob blob);
  void BindOne(OptionalBlob blob) {
    blob.bytes.empty() ? BindOne(nullptr) : BindOne(Blob{blob.bytes});
  }
  void BindOne(Optional text) { text.text.empty() ? BindOne(nullptr) : BindOne(text.text); }

  template <std::integral Field>
  void ReadOne(int column, Field& field) const {
    field = static_cast<Field>(Integer(column));
  }
  template <class Tag, class Rep>
  void ReadOne(int column, StrongId<Tag, Rep>& id) const {
    id = StrongId<Tag, Rep>(static_cast<Rep>(Integer(column)));
  }
  void ReadOne(int column, absl::Time& time) const {
    time = IsNull(column) ? absl::InfiniteFuture() : TimeAt(column);
  }
  void ReadOne(int column, absl::Duration& duration) const;
  void ReadOne(int column, double& value) const {
    value = sqlite3_column_double(statement_.get(), column);
  }
  void ReadOne(int column, std::string& text) const { text = std::string(Text(column)); }
  void ReadOne(int column, std::string_view& text) const { text = Text(column); }

  SqliteConnection* const connection_;
  const std::string sql_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

// How the database calls the values of an enumeration: [value]; null where there is none.
template <class Value, size_t kCount>
const char* NameOf(const char* const (&names)[kCount], Value value) {
  const auto i = static_cast<size_t>(value);
  return i < kCount && names[i] != nullptr ? names[i] : "unknown";  // which the tables refuse
}
// The last of them if there is no such name.
template <class Value, size_t kCount>
Value ValueOf(const char* const (&names)[kCount], std::string_view name) {
  size_t i = 0;
  while (i + 1 < kCount && (names[i] == nullptr || name != names[i])) ++i;
  return static_cast<Value>(i);
}

class SqliteConnection {
 public:
  // `flags` as sqlite3_open_v2 takes them. Errors as ErrorStatus.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path, int flags,
                                                                absl::Duration busy_timeout);
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  // The statement of that text, which is kept: to be asked for once before a loop of many rows, as
  // reading the text takes as long as a twentieth of an update. Not while its rows are read.
  Statement& Sql(absl::string_view sql);
  // Runs statements that return nothing of interest.
  absl::Status Execute(const std::string& sql);

  // Frees the pages that it has in memory and that no transaction needs.
  void ReleaseMemory() { sqlite3_db_release_memory(database_.get()); }

  // Rows that the last statement has changed.
  int64_t changes() const { return sqlite3_changes64(database_.get()); }
  bool in_transaction() const { return sqlite3_get_autocommit(database_.get()) == 0; }
  bool read_only() const { return sqlite3_db_readonly(database_.get(), "main") == 1; }
  const std::string& path() const { return path_; }

  // The status of the last failed call: INTERNAL for a broken constraint or wrong SQL, else the
  // storage failures that store.h lists.
  absl::Status ErrorStatus() const;
  // The storage failure since the last call, if any: what a transaction cannot outlive. A broken
  // constraint is none.
  absl::Status TakeStorageFailure() { return std::exchange(storage_failure_, absl::OkStatus()); }

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  SqliteConnection(std::string path, sqlite3* database)
      : path_(std::move(path)), database_(database) {}
  absl::Status Failed();  // ErrorStatus, noted if it is the storage's

  const std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
  absl::Status storage_failure_;
  absl::flat_hash_map<std::string, std::unique_ptr<Statement>> statements_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_CONNECTION_H_
