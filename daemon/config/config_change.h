// What a configuration that was read anew changes in a daemon that runs: which keys differ, and
// which of them hold at once and which from the next start only.
#ifndef COPPICE_DAEMON_CONFIG_CONFIG_CHANGE_H_
#define COPPICE_DAEMON_CONFIG_CONFIG_CHANGE_H_

#include <string>
#include <vector>

#include "daemon/config/config.h"

namespace coppice {

struct ConfigChange {
  std::vector<std::string> changed;        // keys that may change while the daemon runs
  std::vector<std::string> needs_restart;  // keys that may not
  Config next;  // what is to be in force: `running`, with the new values of `changed`
};

// Keys in the order of the sample configuration.
ConfigChange Compare(const Config& running, const Config& read);

// All keys that Compare looks at, as messages call them.
std::vector<std::string> ComparedKeys();

}  // namespace coppice

#endif  // COPPICE_DAEMON_CONFIG_CONFIG_CHANGE_H_
