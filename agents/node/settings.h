// What the agent is told by its file and its flags.
#ifndef COPPICE_AGENTS_NODE_SETTINGS_H_
#define COPPICE_AGENTS_NODE_SETTINGS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agents/node/local_limits.h"
#include "agents/node/node_facts.h"
#include "client/server_address.h"

namespace coppice {

struct Settings {
  std::string server = kDefaultServer;
  TlsOptions tls;
  std::string socket = "/run/coppice/agent.sock";
  mode_t socket_mode = 0666;
  LocalBounds bounds;  // not in the file
  std::string state_dir = "/var/lib/coppice-agent";
  std::string host;                     // empty: the node's name
  std::vector<std::string> port_guids;  // none: those of its devices
  // Where other agents measure the way to this one; empty: nowhere.
  std::string measure_listen = "0.0.0.0:18515";
  std::string measure_address;     // as others reach it; empty: what it listens on,
                                   // or the node's name if that is every address
  std::string measure_device;      // "mlx5_0/1": the port for verbs; empty: the first active one,
                                   // of port_guids if those are named; "none": TCP only
  std::string devices = kDevices;  // not in the file
  std::string log_level = "info";
};

// A setting of one text.
struct TextSetting {
  absl::string_view key;  // in the file; empty: by its flag alone
  const char* flag;
  const char* help;
  std::string* value;
};
std::vector<TextSetting> TextSettings(Settings& settings);

// TOML over `settings`. INVALID_ARGUMENT, as "ORIGIN:LINE: what": it is malformed, or a key is
// unknown or of the wrong kind.
absl::Status ReadSettings(absl::string_view text, const std::string& origin, Settings& settings);
// NOT_FOUND: it cannot be read.
absl::Status ReadSettingsFile(const std::string& path, Settings& settings);
// Everything that can be said before the start. INVALID_ARGUMENT names the setting.
absl::Status CheckSettings(const Settings& settings);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_SETTINGS_H_
