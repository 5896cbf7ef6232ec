// Which switches can aggregate, and how much: rules from the configuration, matched to the switches
// of a fabric (spec: default "cannot aggregate").
#ifndef COPPICE_DAEMON_MANAGER_CAPABILITY_RULES_H_
#define COPPICE_DAEMON_MANAGER_CAPABILITY_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fabric/fabric.h"
#include "db/store.h"

namespace coppice {

// A switch matches if every condition that is set holds.
struct CapabilityRule {
  std::optional<Guid> guid;
  std::optional<std::string> description;  // shell pattern with * and ?, on the NodeDescription
  std::optional<uint32_t> vendor_id;
  std::optional<uint16_t> device_id;
  uint32_t entries = 0;       // in the switch; 0: cannot aggregate
  uint32_t reserved = 0;      // of these, held by others
  uint32_t degree_limit = 0;  // most children in one tree
  friend bool operator==(const CapabilityRule&, const CapabilityRule&) = default;
};

// One record per switch, in index order: the first rule that matches, else entries 0.
std::vector<CapabilityRecord> ApplyRules(const Fabric& fabric,
                                         const std::vector<CapabilityRule>& rules);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_CAPABILITY_RULES_H_
