#include "agents/node/settings.h"

#include <toml++/toml.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

absl::Status At(const std::string& origin, uint32_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(origin, ":", line, ": ", what));
}

// toml++ of this release ends the process on some malformed text beyond ASCII.
absl::Status CheckAscii(absl::string_view text, const std::string& origin) {
  uint32_t line = 0;
  for (const absl::string_view content : absl::StrSplit(text, '\n')) {
    ++line;
    if (!absl::c_all_of(content, absl::ascii_isascii))
      return At(origin, line, "a character beyond ASCII; take it out");
  }
  return absl::OkStatus();
}

absl::Status Take(const toml::node& node, std::string& out) {
  const auto value = node.value_exact<std::string>();
  if (!value) return absl::InvalidArgumentError("give a text");
  out = *value;
  return absl::OkStatus();
}

absl::Status TakeList(const toml::node& node, std::vector<std::string>& out) {
  const toml::array* const list = node.as_array();
  if (list == nullptr || !(list->empty() || list->is_homogeneous<std::string>())) {
    return absl::InvalidArgumentError("give a list of texts");
  }
  out.clear();
  for (const toml::node& entry : *list) out.push_back(entry.ref<std::string>());
  return absl::OkStatus();
}

absl::Status TakeMode(const toml::node& node, mode_t& out) {
  const auto value = node.value_exact<std::string>();
  char* end = nullptr;
  const unsigned long mode = value ? std::strtoul(value->c_str(), &end, 8) : 0;
  if (!value || value->empty() || *end != '\0' || mode > 0777) {
    return absl::InvalidArgumentError("give a mode such as \"0666\"");
  }
  out = static_cast<mode_t>(mode);
  return absl::OkStatus();
}

absl::Status TakeKey(absl::string_view key, const toml::node& node, Settings& settings) {
  if (key == "socket_mode") return TakeMode(node, settings.socket_mode);
  if (key == "port_guids") return TakeList(node, settings.port_guids);
  for (const TextSetting& setting : TextSettings(settings)) {
    if (!key.empty() && setting.key == key) return Take(node, *setting.value);
  }
  return absl::InvalidArgumentError("no such key; agent.toml of the package shows all");
}

}  // namespace

std::vector<TextSetting> TextSettings(Settings& settings) {
  return {
      {"server", "--server",
       "The daemon: unix:PATH or HOST:PORT; else the file's, else $COPPICE_SERVER",
       &settings.server},
      {"tls_ca", "--tls-ca", "Who signed the daemon's certificate (PEM)", &settings.tls.ca},
      {"tls_certificate", "--tls-cert", "The agent's certificate (PEM)", &settings.tls.cert},
      {"tls_key", "--tls-key", "Its key (PEM)", &settings.tls.key},
      {"munge", "--munge", "Without a certificate: socket of munged, or \"default\"",
       &settings.tls.munge},
      {"munge_realm", "--munge-realm", "The realm that the daemon asks for",
       &settings.tls.munge_realm},
      {"socket", "--socket", "Where the node's processes connect", &settings.socket},
      {"state_dir", "--state-dir", "Folder for what must outlive the agent", &settings.state_dir},
      {"host", "--host", "The node's name in the fabric", &settings.host},
      {"measure_listen", "--measure-listen",
       "HOST:PORT where other agents measure the way to this node; \"\": nowhere",
       &settings.measure_listen},
      {"measure_address", "--measure-address", "HOST:PORT as other agents reach it",
       &settings.measure_address},
      {"measure_device", "--measure-device",
       "InfiniBand port to run perftest over, such as mlx5_0/1; none: TCP only",
       &settings.measure_device},
      {"", "--devices",
       "Folder of InfiniBand devices, laid out as /sys/class/infiniband, the preset",
       &settings.devices},
      {"log_level", "--log-level", "trace, debug, info, warning, error, critical or off",
       &settings.log_level},
  };
}

absl::Status ReadSettings(absl::string_view text, const std::string& origin, Settings& settings) {
  if (absl::Status status = CheckAscii(text, origin); !status.ok()) return status;
  toml::table table;
  try {
    table = toml::parse(std::string_view(text.data(), text.size()), origin);
  } catch (const toml::parse_error& error) {
    return At(origin, error.source().begin.line, std::string(error.description()));
  }
  for (const auto& [key, node] : table) {
    const absl::string_view name(key.str().data(), key.str().size());
    if (absl::Status status = TakeKey(name, node, settings); !status.ok()) {
      return At(origin, node.source().begin.line, absl::StrCat(name, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadSettingsFile(const std::string& path, Settings& settings) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("configuration ", path, ": cannot be read"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return ReadSettings(text, path, settings);
}

absl::Status CheckSettings(const Settings& settings) {
  if (absl::Status status = CheckServer(settings.server); !status.ok()) return status;
  for (const std::string& guid : settings.port_guids) {
    uint64_t number = 0;
    if (guid.size() == 16 && absl::SimpleHexAtoi(guid, &number) && number != 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("port GUID \"", guid, "\": give 16 hexadecimal digits, not all 0"));
  }
  if (settings.socket.empty()) return absl::InvalidArgumentError("socket: is empty; give a path");
  if (settings.state_dir.empty()) {
    return absl::InvalidArgumentError("state_dir: is empty; give a folder");
  }
  return ParsePortChoice(settings.measure_device).status();
}

}  // namespace coppice
