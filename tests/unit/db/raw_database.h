// The database file as an administrator's sqlite3 shell sees it: another connection, none of the
// store's settings.
#ifndef COPPICE_TESTS_UNIT_DB_RAW_DATABASE_H_
#define COPPICE_TESTS_UNIT_DB_RAW_DATABASE_H_

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

namespace coppice {

class RawDatabase {
 public:
  explicit RawDatabase(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
  }
  ~RawDatabase() { sqlite3_close(database_); }
  RawDatabase(const RawDatabase&) = delete;
  RawDatabase& operator=(const RawDatabase&) = delete;

  // The first column of every row, one a line; or "error: ...".
  std::string Run(const std::string& sql) {
    std::string rows;
    char* message = nullptr;
    const auto add = [](void* all, int columns, char** values, char**) {
      static_cast<std::string*>(all)->append(columns > 0 && values[0] ? values[0] : "NULL");
      static_cast<std::string*>(all)->push_back('\n');
      return 0;
    };
    if (sqlite3_exec(database_, sql.c_str(), add, &rows, &message) != SQLITE_OK) {
      rows = std::string("error: ") + (message != nullptr ? message : "");
      sqlite3_free(message);
    }
    return rows;
  }

 private:
  sqlite3* database_ = nullptr;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_DB_RAW_DATABASE_H_
