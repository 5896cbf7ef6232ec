#include "agents/node/settings.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agents/node/perftest/perftest_port.h"

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
    const bool is_ascii =
        std::all_of(content.begin(), content.end(), [](char c) { return absl::ascii_isascii(c); });
    if (!is_ascii) return At(origin, line, "a character beyond ASCII; take it out");
  }
  return absl::OkStatus();
}

// Reads the value of `key` into `out`.
absl::Status Take(const toml::node& node, const std::string& origin, absl::string_view key,
                  std::string& out) {
  const auto value = node.value_exact<std::string>();
  if (!value) return At(origin, node.source().begin.line, absl::StrCat(key, ": give a text"));
  out = *value;
  return absl::OkStatus();
}

absl::Status Take(const toml::node& node, const std::string& origin, absl::string_view key,
                  std::vector<std::string>& out) {
  const toml::array* const list = node.as_array();
  out.clear();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto value = (*list)[i].value_exact<std::string>();
    if (value) out.push_back(*value);
  }
  if (list != nullptr && out.size() == list->size()) return absl::OkStatus();
  return At(origin, node.source().begin.line, absl::StrCat(key, ": give a list of texts"));
}

absl::Status TakeMode(const toml::node& node, const std::string& origin, mode_t& out) {
  const auto value = node.value_exact<std::string>();
  char* end = nullptr;
  const unsigned long mode = value ? std::strtoul(value->c_str(), &end, 8) : 0;
  if (!value || value->empty() || *end != '\0' || mode > 0777) {
    return At(origin, node.source().begin.line, "socket_mode: give a mode such as \"0666\"");
  }
  out = static_cast<mode_t>(mode);
  return absl::OkStatus();
}

absl::Status TakeKey(absl::string_view key, const toml::node& node, const std::string& origin,
                     Settings& settings) {
  if (key == "server") return Take(node, origin, key, settings.server);
  if (key == "tls_ca") return Take(node, origin, key, settings.tls.ca);
  if (key == "tls_certificate") return Take(node, origin, key, settings.tls.cert);
  if (key == "tls_key") return Take(node, origin, key, settings.tls.key);
  if (key == "socket") return Take(node, origin, key, settings.socket);
  if (key == "socket_mode") return TakeMode(node, origin, settings.socket_mode);
  if (key == "state_dir") return Take(node, origin, key, settings.state_dir);
  if (key == "host") return Take(node, origin, key, settings.host);
  if (key == "port_guids") return Take(node, origin, key, settings.port_guids);
  if (key == "measure_listen") return Take(node, origin, key, settings.measure_listen);
  if (key == "measure_address") return Take(node, origin, key, settings.measure_address);
  if (key == "measure_device") return Take(node, origin, key, settings.measure_device);
  if (key == "log_level") return Take(node, origin, key, settings.log_level);
  return At(origin, node.source().begin.line,
            absl::StrCat(key, ": no such key; agent.toml of the package shows all"));
}

}  // namespace

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
    if (absl::Status status = TakeKey(name, node, origin, settings); !status.ok()) return status;
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
  if (const auto device = ParsePortChoice(settings.measure_device); !device.ok()) {
    return device.status();
  }
  return absl::OkStatus();
}

}  // namespace coppice
