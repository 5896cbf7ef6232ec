#include "daemon/config/switch_rules.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

constexpr int64_t kMostEntries = 1 << 20;
constexpr int64_t kMostChildren = 1 << 16;
constexpr int64_t kMostVendor = 0xffffff;  // 24 bits (IBA vol. 1, 14.2.5.3 NodeInfo VendorID)
constexpr int64_t kMostDevice = 0xffff;    // 16 bits

void ReadGuid(TomlSection& rule, CapabilityRule& out) {
  if (!rule.Has("guid")) return (void)rule.Take("guid");
  std::string text;
  rule.Read("guid", text);
  const absl::string_view digits = absl::StripPrefix(text, "0x");
  uint64_t guid = 0;
  if (digits.size() != 16 || !absl::SimpleHexAtoi(digits, &guid)) {
    return rule.Fail("guid", "must be a node GUID of 16 hex digits in quotes");
  }
  out.guid = Guid(guid);
}

CapabilityRule ReadRule(TomlSection& rule) {
  CapabilityRule out;
  ReadGuid(rule, out);
  std::string description;
  rule.Read("description", description);
  if (!description.empty()) out.description = description;
  const bool has_vendor = rule.Has("vendor_id"), has_device = rule.Has("device_id");
  uint32_t vendor = 0;
  uint16_t device = 0;
  rule.Read("vendor_id", 0, kMostVendor, vendor);
  rule.Read("device_id", 0, kMostDevice, device);
  if (has_vendor) out.vendor_id = vendor;
  if (has_device) out.device_id = device;
  if (!out.guid && !out.description && !has_vendor && !has_device) {
    rule.Fail("guid",
              "the rule matches by nothing: give guid, description, vendor_id or device_id "
              "(description = \"*\" is every switch)");
  }
  if (!rule.Has("entries")) rule.Fail("entries", "is missing; 0 means: cannot aggregate");
  rule.Read("entries", 0, kMostEntries, out.entries);
  rule.Read("reserved", 0, kMostEntries, out.reserved);
  if (out.reserved > out.entries) rule.Fail("reserved", "is more than the rule's entries");
  if (out.entries > 0 && !rule.Has("degree_limit")) {
    rule.Fail("degree_limit", "is missing: the most children of the switch in one tree");
  }
  rule.Read("degree_limit", out.entries > 0 ? 2 : 0, kMostChildren, out.degree_limit);
  return out;
}

}  // namespace

void ReadSwitchRules(TomlSection& file, absl::string_view origin,
                     std::vector<CapabilityRule>& rules) {
  const toml::array* const tables = file.ArrayOfTables("switches");
  if (tables == nullptr) return;
  for (const toml::node& table : *tables) {
    TomlSection rule(*table.as_table(), "switches.", origin);
    rules.push_back(ReadRule(rule));
    file.Absorb(rule.Finish());
  }
}

}  // namespace coppice
