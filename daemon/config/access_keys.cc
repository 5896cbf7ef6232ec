#include "daemon/config/access_keys.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr uint32_t kAllBits = 0777;
constexpr absl::string_view kHostInName = "{host}";

void ReadMode(TomlSection& file, uint32_t& mode) {
  if (!file.Has("socket_mode")) return (void)file.Take("socket_mode");
  std::string text;
  file.Read("socket_mode", text);
  uint32_t value = 0;
  bool is_octal = text.size() >= 3 && text.size() <= 4;
  for (const char digit : text) {
    is_octal = is_octal && digit >= '0' && digit <= '7';
    value = value * 8 + static_cast<uint32_t>(digit - '0');
  }
  if (!is_octal || value > kAllBits) {
    return file.Fail("socket_mode", "must be a file's mode in octal digits: \"0600\" to \"0777\"");
  }
  mode = value;
}

void ReadFile(TomlSection& tls, absl::string_view key, absl::string_view directory,
              std::string& path) {
  tls.Read(key, path);
  if (!path.empty() && !absl::StartsWith(path, "/")) path = absl::StrCat(directory, "/", path);
}

absl::Status ReadTls(const toml::table& table, absl::string_view origin,
                     absl::string_view directory, AccessConfig& access) {
  TomlSection tls(table, "tls.", origin);
  ReadFile(tls, "certificate", directory, access.tls_certificate);
  ReadFile(tls, "key", directory, access.tls_key);
  ReadFile(tls, "client_ca", directory, access.tls_client_ca);
  tls.Read("administrators", access.tls_administrators);
  tls.Read("open_reading", access.tls_open_reading);
  if (!tls.Has("certificate")) tls.Fail("certificate", "is missing: the server's, in PEM");
  if (!tls.Has("key")) tls.Fail("key", "is missing: that of tls.certificate, in PEM");
  if (tls.Has("certificate") && !tls.Has("client_ca") && !access.tls_open_reading) {
    tls.Fail("client_ca",
             "is missing: who signs clients' certificates; or state tls.open_reading = true to let "
             "everybody who reaches the port read");
  }
  if (tls.Has("administrators") && !tls.Has("client_ca")) {
    tls.Fail("administrators", "are known by their certificates: give tls.client_ca, too");
  }
  access.tls_place = tls.PlaceOf("certificate");
  return tls.Finish();
}

// Something beside the host's name tells an agent's certificate from a user's.
bool IsAgentPattern(absl::string_view pattern) {
  const size_t at = pattern.find(kHostInName);
  return at != absl::string_view::npos && pattern.size() > kHostInName.size() &&
         pattern.find(kHostInName, at + 1) == absl::string_view::npos;
}

absl::Status ReadAgents(const toml::table& table, absl::string_view origin, AccessConfig& access) {
  TomlSection agents(table, "agents.", origin);
  agents.Read("certificates", access.agent_certificates);
  agents.Read("users", access.agent_users);
  agents.Read("trust_root", access.trust_root);
  for (const std::string& pattern : access.agent_certificates) {
    if (IsAgentPattern(pattern)) continue;
    agents.Fail("certificates",
                absl::StrCat("\"", absl::CHexEscape(pattern),
                             "\": give names with {host} once and something beside it that "
                             "users' names have not, such as \"agent-{host}\""));
  }
  if (!access.agent_certificates.empty() && access.tls_client_ca.empty()) {
    agents.Fail("certificates", "are shown by clients: give tls.client_ca, too");
  }
  return agents.Finish();
}

}  // namespace

void ReadAccessKeys(TomlSection& file, absl::string_view origin, absl::string_view directory,
                    AccessConfig& access) {
  ReadMode(file, access.socket_mode);
  file.Read("socket_group", access.socket_group);
  if (file.Has("socket_group")) access.socket_group_place = file.PlaceOf("socket_group");
  file.Read("admin_group", access.admin_group);
  if (file.Has("admin_group")) access.admin_group_place = file.PlaceOf("admin_group");
  file.Read("insecure_tcp", access.insecure_tcp);
  if (file.Has("insecure_tcp")) access.insecure_tcp_place = file.PlaceOf("insecure_tcp");
  if (const toml::table* tls = file.Table("tls")) {
    file.Absorb(ReadTls(*tls, origin, directory, access));
    if (access.insecure_tcp) {
      file.Fail("insecure_tcp", "contradicts [tls]: TCP is either encrypted or not");
    }
  }
  if (const toml::table* agents = file.Table("agents")) {
    file.Absorb(ReadAgents(*agents, origin, access));
  }
}

}  // namespace coppice
