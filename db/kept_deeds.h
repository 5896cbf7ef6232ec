// Which deeds are kept, and which go when others come: the rule of deed_records.h. Knows whose
// rows they are and when, not what they say.
//
//   new row --> its kind has too many: the oldest of the kind become one
//           --> its share is full: those of an age go for good; then every kind of more than N rows
//               is folded to N of them, for the greatest N that makes room; then, if it is full of
//               single rows, callers with more than N rows lose the oldest, in the same way
#ifndef COPPICE_DB_KEPT_DEEDS_H_
#define COPPICE_DB_KEPT_DEEDS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/base/fair_level.h"
#include "db/deed_records.h"

namespace coppice {

class KeptDeeds {
 public:
  // What a new row does to others, to be done in this order.
  struct Changes {
    struct Folded {
      int64_t id;
      uint32_t count;
      absl::Time first;
    };
    std::vector<Folded> folded;  // rows that stand for others of their kind from now on
    std::vector<int64_t> gone;
  };

  // Ids rise from call to call. O(1), but for every kMostFree-th row of a full share.
  void Enter(const DeedRecord& deed, const DeedLimits& limits, Changes& changes) {
    last_ = std::max(last_, deed.id);
    Share& share = shares_[static_cast<size_t>(deed.share) % shares_.size()];
    Rows& rows = share.kinds[absl::StrCat(deed.user, "\n", deed.method, "\n", deed.outcome)];
    rows.push_back({deed.id, deed.time, deed.first, deed.count, absl::HashOf(deed.caller)});
    ++share.count;
    const int64_t singly = limits.singly;
    if (SizeOf(rows) > singly + singly / 32) Fold(share, rows, singly, changes);
    if (share.count > limits.per_share) MakeRoom(share, limits, deed.time, changes);
  }
  int64_t last() const { return last_; }

 private:
  // A full share is cleared for so many rows at once.
  static constexpr int64_t kMostFree = 1024;
  struct Row {
    int64_t id;
    absl::Time time, first;
    uint32_t count;
    size_t caller;  // a hash of the name
  };
  using Rows = std::deque<Row>;
  struct Share {
    absl::flat_hash_map<std::string, Rows> kinds;  // user, method and outcome; none is empty
    int64_t count = 0;
  };

  static int64_t SizeOf(const Rows& rows) { return static_cast<int64_t>(rows.size()); }

  // The oldest become one, so that `left` rows are left.
  static void Fold(Share& share, Rows& rows, int64_t left, Changes& changes) {
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

  static void MakeRoom(Share& share, const DeedLimits& limits, absl::Time now, Changes& changes) {
    DropOld(share, now - limits.age, changes);
    if (share.count <= limits.per_share) return;
    const int64_t most = limits.per_share - std::min(kMostFree, limits.per_share / 64);
    std::vector<int64_t> sizes;
    for (const auto& [kind, rows] : share.kinds) sizes.push_back(SizeOf(rows));
    const int64_t level = FairLevel(sizes, most, 1);
    for (auto& [kind, rows] : share.kinds) {
      if (SizeOf(rows) > level) Fold(share, rows, level, changes);
    }
    if (share.count > limits.per_share) DropSingle(share, most, changes);
  }

  static void DropOld(Share& share, absl::Time before, Changes& changes) {
    for (auto kind = share.kinds.begin(); kind != share.kinds.end();) {
      Rows& rows = kind->second;
      for (; !rows.empty() && rows.front().time < before; rows.pop_front(), --share.count) {
        changes.gone.push_back(rows.front().id);
      }
      const auto here = kind++;
      if (rows.empty()) share.kinds.erase(here);
    }
  }

  // Every kind has one row.
  static void DropSingle(Share& share, int64_t most, Changes& changes) {
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

  std::array<Share, 4> shares_;  // [DeedShare]
  int64_t last_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DB_KEPT_DEEDS_H_
