// Which deeds are kept, and which go when others come: the rule of deed_records.h, shared by both
// stores. Knows ids and whose they are, not what they say.
#ifndef COPPICE_DB_KEPT_DEEDS_H_
#define COPPICE_DB_KEPT_DEEDS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "db/deed_records.h"

namespace coppice {

class KeptDeeds {
 public:
  // Ids rise from call to call. Adds the ids of those that go to `gone`. O(1), but for every 64th
  // row of a full share: O(callers * methods) there.
  void Enter(int64_t id, DeedShare of, absl::string_view caller, absl::string_view method,
             const DeedLimits& limits, std::vector<int64_t>& gone) {
    last_ = std::max(last_, id);
    Share& share = shares_[static_cast<size_t>(of) % shares_.size()];
    std::deque<int64_t>& rows = share.rows[absl::StrCat(caller, "\n", method)];
    rows.push_back(id);
    ++share.count;
    while (static_cast<int64_t>(rows.size()) > limits.per_caller_and_method) {
      DropOldest(share, rows, gone);
    }
    if (share.count > limits.per_share) DropFromLargest(share, limits, gone);
  }
  int64_t last() const { return last_; }

 private:
  static constexpr int64_t kAtOnce = 64;
  struct Share {
    absl::flat_hash_map<std::string, std::deque<int64_t>> rows;  // by caller and method; none empty
    int64_t count = 0;
  };

  static void DropOldest(Share& share, std::deque<int64_t>& rows, std::vector<int64_t>& gone) {
    gone.push_back(rows.front());
    rows.pop_front();
    --share.count;
  }
  static void DropFromLargest(Share& share, const DeedLimits& limits, std::vector<int64_t>& gone) {
    const auto largest =
        std::max_element(share.rows.begin(), share.rows.end(), [](const auto& a, const auto& b) {
          if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
          return a.second.front() > b.second.front();
        });
    // Some at once where there are many, so that the largest is not looked for each time.
    const int64_t surplus = share.count - limits.per_share;
    const int64_t most = static_cast<int64_t>(largest->second.size()) - 1;
    for (int64_t n = std::max(surplus, std::min(kAtOnce, most / 16)); n > 0; --n) {
      if (largest->second.empty()) break;
      DropOldest(share, largest->second, gone);
    }
    if (largest->second.empty()) share.rows.erase(largest);
  }

  std::array<Share, 4> shares_;  // [DeedShare]
  int64_t last_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DB_KEPT_DEEDS_H_
