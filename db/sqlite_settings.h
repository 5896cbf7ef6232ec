// What an administrator put in force, quotas and the profile, and the highest numbers that were
// ever given, as SQL: the writer's part and the reader's.
#ifndef COPPICE_DB_SQLITE_SETTINGS_H_
#define COPPICE_DB_SQLITE_SETTINGS_H_

#include "absl/status/status.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class SettingWriter {
 public:
  explicit SettingWriter(Connection& connection) : connection_(connection) {}
  // The connection must hold the newest schema.
  absl::Status Prepare();

  absl::Status Put(const PutQuota& put);
  absl::Status Put(const PutProfile& put);

 private:
  Connection& connection_;
  Statement put_quota_, delete_quota_, put_profile_, delete_profile_;
};

// As SqliteReader, part of which it is.
class SettingReader {
 public:
  explicit SettingReader(Connection& connection) : connection_(connection) {}
  absl::Status Prepare();

  // Fills quotas, the profile and what was highest of the state.
  absl::Status Load(StoredState& state);

 private:
  absl::Status LoadHighest(StoredState& state);
  absl::Status LoadQuotas(StoredState& state);

  Connection& connection_;
  Statement last_id_, setting_, quotas_, profile_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_SETTINGS_H_
