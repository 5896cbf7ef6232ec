#include "daemon/config/config_change.h"

#include "daemon/config/config_keys.h"

namespace coppice {

ConfigChange Compare(const Config& running, const Config& read) {
  ConfigChange change{{}, {}, running};
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.is_same(running, read)) continue;
    const bool at_once = key.holds == ConfigKey::Holds::kAtOnce;
    (at_once ? change.changed : change.needs_restart).emplace_back(key.name);
    if (at_once) key.take(read, change.next);
  }
  return change;
}

std::vector<std::string> ComparedKeys() {
  std::vector<std::string> names;
  for (const ConfigKey& key : ConfigKeys()) names.emplace_back(key.name);
  return names;
}

}  // namespace coppice
