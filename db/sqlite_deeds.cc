#include "db/sqlite_deeds.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/fair_level.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr char kColumns[] =
    "SELECT id, time_ns, share, caller, user, origin, method, object, outcome, count, first_ns";

// The row that a statement of these columns stands at.
DeedRecord DeedOf(const Statement& row) {
  DeedRecord deed;
  deed.id = row.Integer(0);
  deed.time = row.TimeAt(1);
  deed.share = static_cast<DeedShare>(row.Integer(2));
  deed.caller = std::string(row.Text(3));
  deed.user = std::string(row.Text(4));
  deed.origin = std::string(row.Text(5));
  deed.method = std::string(row.Text(6));
  deed.object = std::string(row.Text(7));
  deed.outcome = std::string(row.Text(8));
  deed.count = row.Word(9);
  deed.first = row.TimeAt(10);
  return deed;
}

}  // namespace

void KeptDeeds::Enter(const DeedRecord& deed, const DeedLimits& limits, Changes& changes) {
  last_ = std::max(last_, deed.id);
  Share& share = shares_[static_cast<size_t>(deed.share) % shares_.size()];
  Rows& rows = share.kinds[absl::StrCat(deed.user, "\n", deed.method, "\n", deed.outcome)];
  rows.push_back({deed.id, deed.time, deed.first, deed.count, absl::HashOf(deed.caller)});
  ++share.count;
  const int64_t singly = limits.singly;
  if (SizeOf(rows) > singly + singly / 32) Fold(share, rows, singly, changes);
  if (share.count > limits.per_share) MakeRoom(share, limits, deed.time, changes);
}

void KeptDeeds::Fold(Share& share, Rows& rows, int64_t left, Changes& changes) {
  const auto last = rows.begin() + (SizeOf(rows) - left);
  uint64_t count = last->count;
  for (auto row = rows.begin(); row != last; ++row) {
    count += row->count;
    last->first = std::min(last->first, row->first);
    changes.gone.push_back(row->id);
  }
  last->count =
      static_cast<uint32_t>(std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max()));
  share.count -= last - rows.begin();
  rows.erase(rows.begin(), last);
  changes.folded.push_back({rows.front().id, rows.front().count, rows.front().first});
}

void KeptDeeds::MakeRoom(Share& share, const DeedLimits& limits, absl::Time now, Changes& changes) {
  DropOld(share, now - limits.age, changes);
  if (share.count <= limits.per_share) return;
  const int64_t most = limits.per_share - std::min(kMaxFree, limits.per_share / 64);
  std::vector<int64_t> sizes;
  for (const auto& [kind, rows] : share.kinds) sizes.push_back(SizeOf(rows));
  const int64_t level = FairLevel(sizes, most, 1);
  for (auto& [kind, rows] : share.kinds) {
    if (SizeOf(rows) > level) Fold(share, rows, level, changes);
  }
  if (share.count > limits.per_share) DropSingle(share, most, changes);
}

void KeptDeeds::DropOld(Share& share, absl::Time before, Changes& changes) {
  for (auto kind = share.kinds.begin(); kind != share.kinds.end();) {
    Rows& rows = kind->second;
    for (; !rows.empty() && rows.front().time < before; rows.pop_front(), --share.count) {
      changes.gone.push_back(rows.front().id);
    }
    const auto here = kind++;
    if (rows.empty()) share.kinds.erase(here);
  }
}

void KeptDeeds::DropSingle(Share& share, int64_t most, Changes& changes) {
  std::map<size_t, std::vector<std::pair<int64_t, std::string>>> callers;  // ids and kinds
  for (const auto& [kind, rows] : share.kinds) {
    callers[rows.front().caller].emplace_back(rows.front().id, kind);
  }
  std::vector<int64_t> sizes;
  for (const auto& [caller, rows] : callers) sizes.push_back(static_cast<int64_t>(rows.size()));
  const int64_t level = FairLevel(sizes, most);
  for (auto& [caller, rows] : callers) {
    std::sort(rows.begin(), rows.end());
    const int64_t surplus = static_cast<int64_t>(rows.size()) - level;
    for (int64_t i = 0; i < surplus; ++i, --share.count) {
      changes.gone.push_back(rows[static_cast<size_t>(i)].first);
      share.kinds.erase(rows[static_cast<size_t>(i)].second);
    }
  }
}

absl::Status DeedWriter::Prepare() {
  ASSIGN_OR_RETURN(
      insert_, connection_.Prepare("INSERT INTO deed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(fold_,
                   connection_.Prepare("UPDATE deed SET count = ?, first_ns = ? WHERE id = ?"));
  ASSIGN_OR_RETURN(delete_, connection_.Prepare("DELETE FROM deed WHERE id = ?"));
  ASSIGN_OR_RETURN(list_, connection_.Prepare(absl::StrCat(kColumns, " FROM deed ORDER BY id")));
  return absl::OkStatus();
}

absl::Status DeedWriter::ReadKept() {
  KeptDeeds kept;
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  const DeedLimits all{kAll / 2, kAll, absl::InfiniteDuration()};
  KeptDeeds::Changes none;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_.Step());
    if (!row) break;
    kept.Enter(DeedOf(list_), all, none);
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
  DeedRecord entered = deed;
  entered.id = kept_->last() + 1;
  entered.first = std::min(deed.first, deed.time);
  changes_.folded.clear();
  changes_.gone.clear();
  kept_->Enter(entered, limits, changes_);
  insert_.Bind(entered.id).Bind(deed.time).Bind(static_cast<int64_t>(deed.share));
  insert_.Bind(deed.caller).Bind(deed.user).Bind(deed.origin).Bind(deed.method).Bind(deed.object);
  RETURN_IF_ERROR(insert_.Bind(deed.outcome).Bind(int64_t{deed.count}).Bind(entered.first).Run());
  for (const KeptDeeds::Changes::Folded& folded : changes_.folded) {
    RETURN_IF_ERROR(fold_.Bind(int64_t{folded.count}).Bind(folded.first).Bind(folded.id).Run());
  }
  for (const int64_t old : changes_.gone) RETURN_IF_ERROR(delete_.Bind(old).Run());
  return absl::OkStatus();
}

absl::Status DeedReader::Prepare() {
  ASSIGN_OR_RETURN(find_, connection_.Prepare(absl::StrCat(kColumns, R"sql( FROM deed
      WHERE id > ?1 AND (?2 = '' OR user = ?2 OR caller = ?2)
        AND substr(method, 1, length(?3)) = ?3 AND time_ns >= ?4 AND share >= ?5
      ORDER BY id LIMIT ?6)sql")));
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
    found.push_back(DeedOf(find_));
  }
}

}  // namespace coppice
