#include "daemon/config/config_sections.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

std::string_view Std(absl::string_view text) { return {text.data(), text.size()}; }
absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

constexpr uint32_t kAllBits = 0777;
constexpr absl::string_view kHostInName = "{host}";

void ReadMode(TomlSection& file, uint32_t& mode) {
  std::string text;
  file.Read("socket_mode", text);
  if (text.empty()) return;
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

void ReadTls(TomlSection& tls, absl::string_view directory, Config& config) {
  AccessOptions& access = config.access;
  ReadFile(tls, "certificate", directory, access.tls.certificate);
  ReadFile(tls, "key", directory, access.tls.key);
  ReadFile(tls, "client_ca", directory, access.tls.client_ca);
  ReadFile(tls, "client_crl", directory, access.tls.client_crl);
  tls.Read("administrators", access.tls_administrators);
  tls.Read("open_reading", access.tls.open_reading);
  if (!tls.Has("certificate")) tls.Fail("certificate", "is missing: the server's, in PEM");
  if (!tls.Has("key")) tls.Fail("key", "is missing: that of tls.certificate, in PEM");
  if (tls.Has("certificate") && !tls.Has("client_ca") && access.takes_certificates_only()) {
    tls.Fail("client_ca",
             "is missing: who signs clients' certificates; or name munge.socket, or state "
             "tls.open_reading = true to let everybody who reaches the port read");
  }
  if (tls.Has("client_crl") && !tls.Has("client_ca")) {
    tls.Fail("client_crl", "is about certificates of tls.client_ca: give that, too");
  }
  if (tls.Has("administrators") && !tls.Has("client_ca")) {
    tls.Fail("administrators", "are known by their certificates: give tls.client_ca, too");
  }
  config.places["tls.certificate"] = tls.PlaceOf("certificate");
}

void ReadMunge(TomlSection& munge, AccessOptions& access) {
  munge.Read("socket", access.munge.socket);
  const std::string& socket = access.munge.socket;
  if (munge.Has("socket") && socket != "default" && !absl::StartsWith(socket, "/")) {
    munge.Fail("socket", "must be \"default\", or the path of munged's socket from / on");
  }
  munge.Read("realm", access.munge.realm);
  munge.Read("trust_root", access.munge.trust_root);
}

// Something beside the host's name tells an agent's certificate from a user's.
bool IsAgentPattern(absl::string_view pattern) {
  const size_t at = pattern.find(kHostInName);
  return at != absl::string_view::npos && pattern.size() > kHostInName.size() &&
         pattern.find(kHostInName, at + 1) == absl::string_view::npos;
}

void ReadAgents(TomlSection& agents, AccessOptions& access) {
  agents.Read("certificates", access.agents.certificates);
  agents.Read("users", access.agents.users);
  agents.Read("trust_root", access.agents.trust_root);
  for (const std::string& pattern : access.agents.certificates) {
    if (IsAgentPattern(pattern)) continue;
    agents.Fail("certificates",
                absl::StrCat("\"", absl::CHexEscape(pattern),
                             "\": give names with {host} once and something beside it that "
                             "users' names have not, such as \"agent-{host}\""));
  }
  if (!access.agents.certificates.empty() && access.tls.client_ca.empty()) {
    agents.Fail("certificates", "are shown by clients: give tls.client_ca, too");
  }
}

std::string LineOf(absl::string_view key, const toml::node& value) {
  std::ostringstream line;
  toml::table one;
  one.insert(std::string_view(key.data(), key.size()), value);
  line << toml::default_formatter(one) << "\n";
  return line.str();
}

// The table as text that ParseProfile reads, each key checked by itself at its own line first, so
// that an error names the line of this file.
absl::StatusOr<CostProfile> FromTable(const toml::table& table, absl::string_view origin) {
  std::string whole;
  for (const auto& [key, value] : table) {
    const std::string line = LineOf(absl::string_view(key.str().data(), key.str().size()), value);
    const std::string padding(key.source().begin.line - 1, '\n');
    const auto alone = ParseProfile(absl::StrCat(padding, line), origin);
    if (!alone.ok()) return alone.status();
    absl::StrAppend(&whole, line);
  }
  return ParseProfile(whole, absl::StrCat(origin, ": profile"));
}

absl::StatusOr<CostProfile> FromFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat("profile file ", path, " cannot be opened"));
  }
  return ParseProfile(*text, path);
}

constexpr int64_t kMaxEntries = 1 << 20;
constexpr int64_t kMaxChildren = 1 << 16;
constexpr int64_t kMaxVendor = 0xffffff;  // 24 bits (IBA vol. 1, 14.2.5.3 NodeInfo VendorID)
constexpr int64_t kMaxDevice = 0xffff;    // 16 bits

void ReadGuid(TomlSection& rule, CapabilityRule& out) {
  std::string text;
  rule.Read("guid", text);
  if (text.empty()) return;
  const absl::string_view digits = absl::StripPrefix(text, "0x");
  uint64_t guid = 0;
  if (digits.size() != 16 || !absl::SimpleHexAtoi(digits, &guid)) {
    return rule.Fail("guid", "must be a node GUID of 16 hex digits in quotes");
  }
  out.guid = Guid(guid);
}

CapabilityRule ReadRule(TomlSection& rule) {
  CapabilityRule out;
  ReadGuid(rule, out);
  std::string description;
  rule.Read("description", description);
  if (!description.empty()) out.description = description;
  const bool has_vendor = rule.Has("vendor_id"), has_device = rule.Has("device_id");
  uint32_t vendor = 0;
  uint16_t device = 0;
  rule.Read("vendor_id", 0, kMaxVendor, vendor);
  rule.Read("device_id", 0, kMaxDevice, device);
  if (has_vendor) out.vendor_id = vendor;
  if (has_device) out.device_id = device;
  if (!out.guid && !out.description && !has_vendor && !has_device) {
    rule.Fail("guid",
              "the rule matches by nothing: give guid, description, vendor_id or device_id "
              "(description = \"*\" is every switch)");
  }
  if (!rule.Has("entries")) rule.Fail("entries", "is missing; 0 means: cannot aggregate");
  rule.Read("entries", 0, kMaxEntries, out.entries);
  rule.Read("reserved", 0, kMaxEntries, out.reserved);
  if (out.reserved > out.entries) rule.Fail("reserved", "is more than the rule's entries");
  if (out.entries > 0 && !rule.Has("degree_limit")) {
    rule.Fail("degree_limit", "is missing: the most children of the switch in one tree");
  }
  rule.Read("degree_limit", out.entries > 0 ? 2 : 0, kMaxChildren, out.degree_limit);
  return out;
}

}  // namespace

const toml::node* TomlSection::Find(absl::string_view key) const { return table_.get(Std(key)); }

const toml::node* TomlSection::Take(absl::string_view key) {
  known_.emplace_back(key);
  return status_.ok() ? Find(key) : nullptr;
}

void TomlSection::Read(absl::string_view key, std::string& out) {
  const auto* const text = TakeAs<std::string>(key, "a text in quotes");
  if (text == nullptr) return;
  if (text->get().empty()) return Fail(key, "must not be empty");
  out = text->get();
}

void TomlSection::Read(absl::string_view key, bool& out) {
  if (const auto* const value = TakeAs<bool>(key, "true or false")) out = value->get();
}

void TomlSection::Read(absl::string_view key, std::vector<std::string>& out) {
  constexpr absl::string_view kWanted = "a list of at least one text: [\"...\"]";
  const toml::array* const array = TakeAs<toml::array>(key, kWanted);
  if (array == nullptr) return;
  if (array->empty() || !array->is_homogeneous<std::string>()) {
    return Fail(key, absl::StrCat("must be ", kWanted));
  }
  out.clear();
  for (const toml::node& item : *array) out.push_back(item.as_string()->get());
}

void TomlSection::Read(absl::string_view key, absl::Duration min, absl::Duration max,
                       absl::Duration& out) {
  constexpr absl::string_view kWanted = "a duration such as \"90s\", \"5m\" or \"1.5h\"";
  const auto* const text = TakeAs<std::string>(key, kWanted);
  if (text == nullptr) return;
  absl::Duration value;
  if (!absl::ParseDuration(text->get(), &value)) {
    return Fail(key, absl::StrCat("must be ", kWanted));
  }
  if (value < min || value > max) {
    return Fail(key, absl::StrCat(absl::FormatDuration(value), " is out of range: ",
                                  absl::FormatDuration(min), " to ", absl::FormatDuration(max)));
  }
  out = value;
}

void TomlSection::Read(absl::string_view key, double min, double max, double& out) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return;
  const std::optional<double> number = node->value<double>();
  if (!node->is_number() || !number) return Fail(key, "must be a number");
  if (!(*number >= min && *number <= max)) {
    return Fail(key, absl::StrCat(*number, " is out of range: ", min, " to ", max));
  }
  out = *number;
}

bool TomlSection::ReadInteger(absl::string_view key, int64_t min, int64_t max, int64_t& out) {
  const auto* const number = TakeAs<int64_t>(key, "a whole number");
  if (number == nullptr) return false;
  if (number->get() < min || number->get() > max) {
    Fail(key, absl::StrCat(number->get(), " is out of range: ", min, " to ", max));
    return false;
  }
  out = number->get();
  return true;
}

void TomlSection::ReadShare(absl::string_view key, int64_t max, int64_t& value, bool& is_percent) {
  const toml::node* const node = Take(key);
  if (node == nullptr) return;
  if (!node->is_string()) {
    if (ReadInteger(key, 0, max, value)) is_percent = false;
    return;
  }
  absl::string_view digits = Absl(node->as_string()->get());
  int64_t number = 0;
  if (!absl::ConsumeSuffix(&digits, "%") || !absl::SimpleAtoi(digits, &number) || number < 1 ||
      number > 100) {
    return Fail(key, "must be a whole number, or a share such as \"50%\"");
  }
  is_percent = true;
  value = number;
}

void TomlSection::Within(absl::string_view key, ReadSection read) {
  const auto* const table = TakeAs<toml::table>(key, absl::StrCat("a table: [", path_, key, "]"));
  if (table == nullptr) return;
  TomlSection section(*table, absl::StrCat(path_, key, "."), origin_);
  read(section);
  Absorb(section.Finish());
}

void TomlSection::ForEach(absl::string_view key, ReadSection read) {
  const std::string wanted = absl::StrCat("tables, each under a line [[", path_, key, "]]");
  const auto* const array = TakeAs<toml::array>(key, wanted);
  if (array == nullptr) return;
  if (!array->is_array_of_tables()) return Fail(key, absl::StrCat("must be ", wanted));
  for (const toml::node& table : *array) {
    TomlSection section(*table.as_table(), absl::StrCat(path_, key, "."), origin_);
    read(section);
    Absorb(section.Finish());
  }
}

uint32_t TomlSection::LineOf(absl::string_view key) const {
  for (const auto& [name, node] : table_) {
    if (Absl(name.str()) == key) return name.source().begin.line;
  }
  return table_.source().begin.line;
}

std::string TomlSection::PlaceOf(absl::string_view key) const {
  return absl::StrCat(origin_, ":", LineOf(key), ": ", path_, key, ": ");
}

void TomlSection::Fail(absl::string_view key, absl::string_view what) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(absl::StrCat(PlaceOf(key), what));
}

absl::Status TomlSection::Finish() {
  for (const auto& [name, node] : table_) {
    const absl::string_view key = Absl(name.str());
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::sort(known_.begin(), known_.end());
    Fail(key, absl::StrCat("no such key; there are: ", absl::StrJoin(known_, ", ")));
  }
  return status_;
}

void ReadAccessKeys(TomlSection& file, absl::string_view directory, Config& config) {
  AccessOptions& access = config.access;
  ReadMode(file, access.socket_mode);
  file.Read("socket_group", access.socket_group);
  access.needs_socket_group = file.Has("socket_group");
  file.Read("admin_group", access.admin_group);
  file.Read("insecure_tcp", access.insecure_tcp);
  file.Within("munge", [&](TomlSection& munge) { ReadMunge(munge, access); });
  if (!access.munge.socket.empty() && !file.Has("tls")) {
    file.Fail("munge", "takes [tls]: without it credentials are everybody's on the way to read");
  }
  file.Within("tls", [&](TomlSection& tls) { ReadTls(tls, directory, config); });
  if (file.Has("tls") && access.insecure_tcp) {
    file.Fail("insecure_tcp", "contradicts [tls]: TCP is either encrypted or not");
  }
  file.Within("agents", [&](TomlSection& agents) { ReadAgents(agents, access); });
}

void ReadProfileKey(TomlSection& file, absl::string_view directory, CostProfile& profile) {
  const toml::node* const node = file.Take("profile");
  if (node == nullptr) return;
  absl::StatusOr<CostProfile> read;
  if (const toml::table* table = node->as_table()) {
    read = FromTable(*table, file.origin());
    if (!read.ok()) return file.Absorb(read.status());
  } else if (const auto* text = node->as_string()) {
    const std::string& name = text->get();
    const bool is_file = absl::StrContains(name, "/") || absl::EndsWith(name, ".toml");
    const std::string path =
        absl::StartsWith(name, "/") ? name : absl::StrCat(directory, "/", name);
    read = is_file ? FromFile(path) : BuiltInProfile(name);
    if (!read.ok()) return file.Fail("profile", read.status().message());
  } else {
    return file.Fail("profile", "must be a name or a file in quotes, or a table [profile]");
  }
  profile = *std::move(read);
}

void ReadSwitchRules(TomlSection& file, std::vector<CapabilityRule>& rules) {
  file.ForEach("switches", [&](TomlSection& rule) { rules.push_back(ReadRule(rule)); });
}

}  // namespace coppice
