// Sections of the configuration that are more than single keys: who may connect, who may do
// everything and who is a node's agent (socket_mode, socket_group, admin_group, insecure_tcp,
// [tls], [agents]); the cost profile; rules for switches. Each reads its own and names what is
// wrong.
#ifndef COPPICE_DAEMON_CONFIG_CONFIG_SECTIONS_H_
#define COPPICE_DAEMON_CONFIG_CONFIG_SECTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/config/toml_section.h"
#include "daemon/manager/capability_rules.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

struct AccessConfig {
  uint32_t socket_mode = 0660;           // of Unix sockets
  std::string socket_group = "coppice";  // of their files; the default need not exist
  std::string admin_group = "coppice-admin";
  bool insecure_tcp = false;
  // Files in PEM; no certificate: no TLS. A certificate has its key.
  std::string tls_certificate, tls_key, tls_client_ca;
  std::vector<std::string> tls_administrators;  // common names of clients' certificates
  bool tls_open_reading = false;                // callers without a certificate may read
  // Names in agents' certificates, with "{host}" for the host's; and users that are agents.
  std::vector<std::string> agent_certificates, agent_users;
  bool trust_root = false;  // of nodes

  // "FILE:LINE: KEY: "; empty where the value is not from a file.
  std::string socket_group_place, admin_group_place, insecure_tcp_place, tls_place;
};

// Reads the keys of `file`; names of files are relative to `directory`. Which groups there are and
// what the files hold is for others to judge.
void ReadAccessKeys(TomlSection& file, absl::string_view origin, absl::string_view directory,
                    AccessConfig& access);

// The key "profile": a built-in profile's name, a file, or the constants themselves in a table.

// A text with a "/" or ending in ".toml" is a file, relative to `directory`; another is a name. An
// error becomes the file's and names the line of the profile's key that is wrong.
void ReadProfileKey(TomlSection& file, absl::string_view origin, absl::string_view directory,
                    CostProfile& profile);

// The tables [[switches]]: which switches can aggregate, and how much.

// Reads "switches" of `file` in its order; an error becomes the file's.
void ReadSwitchRules(TomlSection& file, absl::string_view origin,
                     std::vector<CapabilityRule>& rules);

}  // namespace coppice

#endif  // COPPICE_DAEMON_CONFIG_CONFIG_SECTIONS_H_
