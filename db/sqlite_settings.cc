#include "db/sqlite_settings.h"

#include <string>

#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr char kQuotas[] = R"sql(
    SELECT holder_kind, holder, limit_name, value FROM quota
    ORDER BY instr('user   account tenant', holder_kind), holder, limit_name)sql";

}  // namespace

absl::Status SettingWriter::Prepare() {
  ASSIGN_OR_RETURN(put_quota_, connection_.Prepare(R"sql(
      INSERT INTO quota (holder_kind, holder, limit_name, value) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET value = excluded.value)sql"));
  ASSIGN_OR_RETURN(delete_quota_, connection_.Prepare(R"sql(
      DELETE FROM quota WHERE holder_kind = ? AND holder = ? AND limit_name = ?)sql"));
  ASSIGN_OR_RETURN(put_profile_, connection_.Prepare(R"sql(
      INSERT INTO profile (id, toml) VALUES (1, ?)
      ON CONFLICT (id) DO UPDATE SET toml = excluded.toml)sql"));
  ASSIGN_OR_RETURN(delete_profile_, connection_.Prepare("DELETE FROM profile"));
  return absl::OkStatus();
}

absl::Status SettingWriter::Put(const PutQuota& put) {
  static constexpr const char* kKinds[] = {"", "user", "account", "tenant"};
  const QuotaRecord& quota = put.quota;
  Statement& statement = put.drop ? delete_quota_ : put_quota_;
  statement.Bind(kKinds[static_cast<size_t>(quota.kind)]).Bind(quota.holder).Bind(quota.limit);
  if (!put.drop) statement.Bind(quota.value);
  return statement.Run();
}

absl::Status SettingWriter::Put(const PutProfile& put) {
  return put.toml.empty() ? delete_profile_.Run() : put_profile_.Bind(put.toml).Run();
}

absl::Status SettingReader::Prepare() {
  ASSIGN_OR_RETURN(last_id_, connection_.Prepare("SELECT seq FROM sqlite_sequence WHERE name = ?"));
  ASSIGN_OR_RETURN(setting_, connection_.Prepare("SELECT value FROM setting WHERE name = ?"));
  ASSIGN_OR_RETURN(quotas_, connection_.Prepare(kQuotas));
  ASSIGN_OR_RETURN(profile_, connection_.Prepare("SELECT toml FROM profile"));
  return absl::OkStatus();
}

absl::Status SettingReader::Load(StoredState& state) {
  RETURN_IF_ERROR(LoadHighest(state));
  RETURN_IF_ERROR(LoadQuotas(state));
  ASSIGN_OR_RETURN(const bool has_profile, profile_.Step());
  if (has_profile) state.profile_toml = std::string(profile_.Text(0));
  profile_.Reset();
  return absl::OkStatus();
}

absl::Status SettingReader::LoadHighest(StoredState& state) {
  ASSIGN_OR_RETURN(const int64_t job, last_id_.Bind("job").Number());
  ASSIGN_OR_RETURN(const int64_t tree, last_id_.Bind("tree").Number());
  ASSIGN_OR_RETURN(const int64_t placement, last_id_.Bind("placement").Number());
  ASSIGN_OR_RETURN(const int64_t version, setting_.Bind("fabric_version").Number());
  state.last_job = JobId(job);
  state.last_tree = TreeId(tree);
  state.last_placement = PlacementId(placement);
  state.last_fabric_version = static_cast<uint64_t>(version);
  return absl::OkStatus();
}

absl::Status SettingReader::LoadQuotas(StoredState& state) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, quotas_.Step());
    if (!row) return absl::OkStatus();
    const std::string_view kind = quotas_.Text(0);
    state.quotas.push_back({kind == "user"      ? QuotaHolder::kUser
                            : kind == "account" ? QuotaHolder::kAccount
                                                : QuotaHolder::kTenant,
                            std::string(quotas_.Text(1)), std::string(quotas_.Text(2)),
                            quotas_.Integer(3)});
  }
}

}  // namespace coppice
