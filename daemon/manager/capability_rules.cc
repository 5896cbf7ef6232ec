#include "daemon/manager/capability_rules.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

// Shell pattern: * stands for any characters, ? for one, which in UTF-8 may be several bytes. On a
// mismatch only the last * is widened, which suffices because an earlier one could give nothing
// that the last cannot. O(pattern * text).
bool MatchesPattern(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0;
  size_t star = absl::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      t += std::max<size_t>(FirstCharacter(text.substr(t)).bytes, 1);
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool Matches(const CapabilityRule& rule, const SwitchInfo& info) {
  return (!rule.guid || *rule.guid == info.guid) &&
         (!rule.description || MatchesPattern(*rule.description, info.description)) &&
         (!rule.vendor_id || *rule.vendor_id == info.vendor_id) &&
         (!rule.device_id || *rule.device_id == info.device_id);
}

}  // namespace

std::vector<CapabilityRecord> ApplyRules(const Fabric& fabric,
                                         const std::vector<CapabilityRule>& rules) {
  std::vector<CapabilityRecord> records;
  records.reserve(fabric.switch_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
    CapabilityRecord record;
    record.guid = info.guid;
    for (const CapabilityRule& rule : rules) {
      if (!Matches(rule, info)) continue;
      record.entries_total = rule.entries;
      record.entries_reserved = rule.reserved;
      record.degree_limit = rule.degree_limit;
      break;
    }
    records.push_back(record);
  }
  return records;
}

}  // namespace coppice
