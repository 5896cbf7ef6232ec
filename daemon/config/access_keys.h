// Who may connect and who may do everything: socket_mode, admin_group, insecure_tcp and [tls].
#ifndef COPPICE_DAEMON_CONFIG_ACCESS_KEYS_H_
#define COPPICE_DAEMON_CONFIG_ACCESS_KEYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/config/toml_section.h"

namespace coppice {

struct AccessConfig {
  uint32_t socket_mode = 0666;  // of Unix sockets
  std::string admin_group = "coppice-admin";
  bool insecure_tcp = false;
  // Files in PEM; no certificate: no TLS. A certificate has its key.
  std::string tls_certificate, tls_key, tls_client_ca;
  std::vector<std::string> tls_administrators;  // common names of clients' certificates

  // "FILE:LINE: KEY: "; empty where the value is not from a file.
  std::string admin_group_place, insecure_tcp_place, tls_place;
};

// Reads the keys of `file`; names of files are relative to `directory`. Which groups there are and
// what the files hold is for others to judge.
void ReadAccessKeys(TomlSection& file, absl::string_view origin, absl::string_view directory,
                    AccessConfig& access);

}  // namespace coppice

#endif  // COPPICE_DAEMON_CONFIG_ACCESS_KEYS_H_
