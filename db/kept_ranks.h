// Of which ended jobs the lists of ranks are kept: those that ended last, within a bound of bytes
// for each owner and one for all, where whoever has the most loses first.
#ifndef COPPICE_DB_KEPT_RANKS_H_
#define COPPICE_DB_KEPT_RANKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "db/store.h"

namespace coppice {

// Bytes of a list of so many ranks as the database keeps it (number_list.h), and back.
inline constexpr int64_t kBytesOfRank = 19;
inline int64_t BytesOfRanks(size_t ranks) {
  return ranks == 0 ? 0 : kBytesOfRank * static_cast<int64_t>(ranks) + 1;
}
inline uint32_t RanksOfBytes(int64_t bytes) { return static_cast<uint32_t>(bytes / kBytesOfRank); }

class KeptRanks {
 public:
  void Enter(const std::string& owner, absl::Time ended, JobId id, int64_t bytes) {
    if (bytes == 0) return;
    Owner& of = owners_[owner];
    of.rows.insert({ended, id, bytes});
    of.bytes += bytes;
    all_ += bytes;
  }
  void Leave(const std::string& owner, absl::Time ended, JobId id, int64_t bytes) {
    const auto found = owners_.find(owner);
    if (found == owners_.end() || found->second.rows.erase({ended, id, bytes}) == 0) return;
    found->second.bytes -= bytes;
    all_ -= bytes;
    if (found->second.rows.empty()) owners_.erase(found);
  }
  // The jobs whose lists go, out of here already. At most kMostAtOnce older ones of the owner, then
  // the list that came last, if there is still no room: so the bound always holds for the owner.
  std::vector<JobId> TakeSurplus(const std::string& owner, const KeptRankBytes& limits) {
    std::vector<JobId> gone;
    const auto own = owners_.find(owner);
    if (own != owners_.end()) Shrink(own, limits.per_owner, gone);
    while (all_ > limits.all && gone.size() < 2 * kMostAtOnce) {
      Shrink(std::max_element(
                 owners_.begin(), owners_.end(),
                 [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; }),
             -1, gone);
    }
    return gone;
  }

 private:
  static constexpr size_t kMostAtOnce = 64;
  using Row = std::tuple<absl::Time, JobId, int64_t>;
  struct Owner {
    std::set<Row> rows;
    int64_t bytes = 0;
  };
  using Owners = absl::flat_hash_map<std::string, Owner>;

  // To `most` bytes; below 0: by one row.
  void Shrink(Owners::iterator owner, int64_t most, std::vector<JobId>& gone) {
    Owner& of = owner->second;
    for (size_t n = 0; !of.rows.empty() && (most < 0 ? n < 1 : of.bytes > most); ++n) {
      const auto row = n < kMostAtOnce ? of.rows.begin() : std::prev(of.rows.end());
      gone.push_back(std::get<1>(*row));
      of.bytes -= std::get<2>(*row);
      all_ -= std::get<2>(*row);
      of.rows.erase(row);
    }
    if (of.rows.empty()) owners_.erase(owner);
  }

  Owners owners_;
  int64_t all_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DB_KEPT_RANKS_H_
