// SQLite's C interface as values with owners, and its result codes as statuses that name the
// database. The only place that knows result codes.
//
// A connection and its statements belong to one thread at a time.
#ifndef COPPICE_DB_SQLITE_CONNECTION_H_
#define COPPICE_DB_SQLITE_CONNECTION_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strong_id.h"

namespace coppice {

class SqliteConnection;

// A prepared statement. Must not outlive its connection.
class Statement {
 public:
  Statement() = default;

  // Binds the next parameter, from the first one after each Run or Reset. Texts and bytes are not
  // copied: they must live until then.
  Statement& Bind(int64_t value);
  Statement& Bind(double value);
  Statement& Bind(std::string_view text);
  Statement& BindBlob(std::string_view bytes);
  Statement& Bind(const char* text) { return Bind(std::string_view(text)); }
  Statement& Bind(Guid guid) { return Bind(static_cast<int64_t>(guid.value())); }
  Statement& Bind(absl::Time time) { return Bind(absl::ToUnixNanos(time)); }
  Statement& BindNull();
  // NULL if empty.
  Statement& BindOptional(const std::string& text) {
    return text.empty() ? BindNull() : Bind(std::string_view(text));
  }

  // Runs to the end and resets.
  absl::Status Run();
  // True if there is a row to read. After false or an error the statement is reset.
  absl::StatusOr<bool> Step();
  void Reset();
  // Calls read(*this) for each row and resets; what `read` returns, if it does, is a status, and
  // the first that is not OK ends it.
  template <class Read>
  absl::Status ForEach(const Read& read) {
    for (;;) {
      ASSIGN_OR_RETURN(const bool is_row, Step());
      if (!is_row) return absl::OkStatus();
      if constexpr (std::is_void_v<std::invoke_result_t<Read, const Statement&>>) {
        read(std::as_const(*this));
      } else if (absl::Status status = read(std::as_const(*this)); !status.ok()) {
        Reset();
        return status;
      }
    }
  }
  // The number that it finds: in the first column of its first row, and 0 if there is none, or
  // NULL. Resets.
  absl::StatusOr<int64_t> Number();

  int64_t Integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  uint32_t Word(int column) const { return static_cast<uint32_t>(Integer(column)); }
  double Real(int column) const { return sqlite3_column_double(statement_.get(), column); }
  // Valid until the next Step or Reset.
  std::string_view Text(int column) const;
  std::string_view Blob(int column) const;
  bool IsNull(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  }
  Guid GuidAt(int column) const { return Guid(static_cast<uint64_t>(Integer(column))); }
  absl::Time TimeAt(int column) const { return absl::FromUnixNanos(Integer(column)); }

 private:
  friend class SqliteConnection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  SqliteConnection* connection_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

class SqliteConnection {
 public:
  // `flags` as sqlite3_open_v2 takes them. Errors as ErrorStatus.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path, int flags,
                                                                absl::Duration busy_timeout);
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // Runs statements that return nothing of interest.
  absl::Status Execute(const char* sql);
  // The number that `sql` returns.
  absl::StatusOr<int64_t> QueryInteger(std::string_view sql);

  // Frees the pages that it has in memory and that no transaction needs.
  void ReleaseMemory() { sqlite3_db_release_memory(database_.get()); }

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
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_CONNECTION_H_
