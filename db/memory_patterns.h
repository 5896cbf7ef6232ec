// Communication patterns in memory, as sqlite_patterns.h keeps them in the database.
#ifndef COPPICE_DB_MEMORY_PATTERNS_H_
#define COPPICE_DB_MEMORY_PATTERNS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/pattern_records.h"
#include "db/refusals.h"

namespace coppice {

// Contracts as of the mutations and of Store.
class MemoryPatterns {
 public:
  absl::Status Put(PutPatternPart& put) {
    if (IsThere(put.pattern)) return PatternIdTaken(put.pattern);
    const auto [part, is_new] = parts_[put.pattern].try_emplace(put.part, std::move(put.data));
    return is_new ? absl::OkStatus() : PatternPartTaken(put.pattern, put.part);
  }
  absl::Status Put(PutPattern& put) {
    const PatternRecord& pattern = put.pattern;
    if (IsThere(pattern.id)) return PatternIdTaken(pattern.id);
    const std::map<uint32_t, std::string>& parts = parts_[pattern.id];
    const uint64_t end = parts.empty() ? 0 : uint64_t{parts.rbegin()->first} + 1;
    if (parts.size() != put.parts || end != put.parts) {
      return PatternPartsMissing(pattern, put.parts, parts.size());
    }
    if (const auto old = Find(pattern.name, pattern.owner, pattern.by_administrator);
        old != patterns_.end()) {
      parts_.erase(old->second.id);
      patterns_.erase(old);
    }
    patterns_.emplace(Key{pattern.name, pattern.owner, pattern.by_administrator}, pattern);
    return absl::OkStatus();
  }
  absl::Status Drop(const DropPatternParts& drop) {
    if (IsThere(drop.pattern)) return PatternIdTaken(drop.pattern);
    parts_.erase(drop.pattern);
    return absl::OkStatus();
  }
  absl::Status Drop(const DropPattern& drop) {
    const auto found = Find(drop.name, drop.owner, drop.by_administrator);
    if (found == patterns_.end()) return NoSuchPattern(drop.name);
    parts_.erase(found->second.id);
    patterns_.erase(found);
    return absl::OkStatus();
  }

  std::vector<PatternRecord> List() const {
    std::vector<PatternRecord> patterns;
    for (const auto& [key, pattern] : patterns_) patterns.push_back(pattern);
    return patterns;
  }
  absl::StatusOr<std::string> Data(int64_t id) const {
    if (!IsThere(id)) return NoSuchPatternId(id);
    std::string data;
    for (const auto& [part, text] : parts_.at(id)) data += text;
    return data;
  }

 private:
  using Key = std::tuple<std::string, std::string, bool>;  // name, owner, by_administrator
  using Patterns = std::map<Key, PatternRecord>;

  // Administrators have their names in common.
  Patterns::iterator Find(const std::string& name, const std::string& owner,
                          bool by_administrator) {
    if (!by_administrator) return patterns_.find(Key{name, owner, false});
    auto found = patterns_.lower_bound(Key{name, "", false});
    while (found != patterns_.end() && found->second.name == name &&
           !found->second.by_administrator) {
      ++found;
    }
    return found != patterns_.end() && found->second.name == name ? found : patterns_.end();
  }
  bool IsThere(int64_t id) const {
    for (const auto& [key, pattern] : patterns_) {
      if (pattern.id == id) return true;
    }
    return false;
  }

  Patterns patterns_;
  std::map<int64_t, std::map<uint32_t, std::string>> parts_;  // by pattern, in order
};

}  // namespace coppice

#endif  // COPPICE_DB_MEMORY_PATTERNS_H_
