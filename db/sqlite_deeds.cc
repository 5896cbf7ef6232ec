#include "db/sqlite_deeds.h"

#include <limits>
#include <string>
#include <utility>

#include "daemon/base/status_macros.h"

namespace coppice {

absl::Status DeedWriter::Prepare() {
  ASSIGN_OR_RETURN(insert_,
                   connection_.Prepare("INSERT INTO deed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(delete_, connection_.Prepare("DELETE FROM deed WHERE id = ?"));
  ASSIGN_OR_RETURN(list_,
                   connection_.Prepare("SELECT id, share, caller, method FROM deed ORDER BY id"));
  return absl::OkStatus();
}

absl::Status DeedWriter::ReadKept() {
  KeptDeeds kept;
  const DeedLimits all{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()};
  std::vector<int64_t> none;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_.Step());
    if (!row) break;
    const std::string_view caller = list_.Text(2), method = list_.Text(3);
    kept.Enter(list_.Integer(0), static_cast<DeedShare>(list_.Integer(1)),
               {caller.data(), caller.size()}, {method.data(), method.size()}, all, none);
  }
  kept_ = std::move(kept);
  return absl::OkStatus();
}

absl::Status DeedWriter::Append(const AppendDeeds& append) {
  for (const DeedRecord& deed : append.deeds) RETURN_IF_ERROR(Append(deed, append.limits));
  return absl::OkStatus();
}

absl::Status DeedWriter::Append(const DeedRecord& deed, const DeedLimits& limits) {
  if (!kept_.has_value()) RETURN_IF_ERROR(ReadKept());
  changed_ = true;
  const int64_t id = kept_->last() + 1;
  gone_.clear();
  kept_->Enter(id, deed.share, deed.caller, deed.method, limits, gone_);
  insert_.Bind(id).Bind(deed.time).Bind(static_cast<int64_t>(deed.share)).Bind(deed.caller);
  insert_.Bind(deed.user).Bind(deed.origin).Bind(deed.method).Bind(deed.object);
  RETURN_IF_ERROR(insert_.Bind(deed.outcome).Bind(int64_t{deed.count}).Run());
  for (const int64_t old : gone_) RETURN_IF_ERROR(delete_.Bind(old).Run());
  return absl::OkStatus();
}

absl::Status DeedReader::Prepare() {
  ASSIGN_OR_RETURN(find_, connection_.Prepare(R"sql(
      SELECT id, time_ns, share, caller, user, origin, method, object, outcome, count FROM deed
      WHERE id > ?1 AND (?2 = '' OR user = ?2 OR caller = ?2)
        AND substr(method, 1, length(?3)) = ?3 AND time_ns >= ?4 AND share >= ?5
      ORDER BY id LIMIT ?6)sql"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DeedRecord>> DeedReader::Find(const DeedFilter& filter) {
  const int64_t start = filter.start == absl::InfinitePast() ? std::numeric_limits<int64_t>::min()
                                                             : absl::ToUnixNanos(filter.start);
  const DeedShare first = filter.only_denials ? DeedShare::kDenial : DeedShare::kUser;
  find_.Bind(filter.after_id).Bind(filter.user).Bind(filter.method_prefix).Bind(start);
  find_.Bind(static_cast<int64_t>(first)).Bind(int64_t{filter.limit});
  std::vector<DeedRecord> found;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, find_.Step());
    if (!row) return found;
    DeedRecord deed;
    deed.id = find_.Integer(0);
    deed.time = find_.TimeAt(1);
    deed.share = static_cast<DeedShare>(find_.Integer(2));
    deed.caller = std::string(find_.Text(3));
    deed.user = std::string(find_.Text(4));
    deed.origin = std::string(find_.Text(5));
    deed.method = std::string(find_.Text(6));
    deed.object = std::string(find_.Text(7));
    deed.outcome = std::string(find_.Text(8));
    deed.count = static_cast<uint32_t>(find_.Integer(9));
    found.push_back(std::move(deed));
  }
}

}  // namespace coppice
