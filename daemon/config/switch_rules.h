// The tables [[switches]]: which switches can aggregate, and how much.
#ifndef COPPICE_DAEMON_CONFIG_SWITCH_RULES_H_
#define COPPICE_DAEMON_CONFIG_SWITCH_RULES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/config/toml_section.h"
#include "daemon/manager/capability_rules.h"

namespace coppice {

// Reads "switches" of `file` in its order; an error becomes the file's.
void ReadSwitchRules(TomlSection& file, absl::string_view origin,
                     std::vector<CapabilityRule>& rules);

}  // namespace coppice

#endif  // COPPICE_DAEMON_CONFIG_SWITCH_RULES_H_
