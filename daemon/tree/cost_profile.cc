// The built-in profiles, and where each of their constants comes from.
#include "daemon/tree/cost_profile.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/toml_text.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

// The least that an InfiniBand packet within one subnet carries beside its payload: LRH 8, BTH 12,
// ICRC 4, VCRC 2 (IBA vol. 1, 5.2). A reliable SEND has no more; a datagram would add DETH 8, a
// packet to another subnet GRH 40.
constexpr uint32_t kMinHeaderBytes = 8 + 12 + 4 + 2;

// Chen 2024. Stated there: a = delta * l + phi = 1.12 us and b = theta = 0.01 us for Barrier and
// Bcast (3.1), and delta = 4 on the two-level fat tree (6.1.1: "4 links"). How a splits, and the
// switches' constants, follow from two measured differences:
//  - 6.1.1: hierarchical trees are "about 0.6 us" faster than k-ary ones of the same height,
//    because one of their two steps crosses 2 links instead of 4. Up and down that is 4 links, so
//    l = 0.15 us, and phi = 1.12 - 4 * 0.15 = 0.52 us.
//  - 6.2.1: type II is "about 1 us" faster than the 64-ary type I tree. For 64 processes on 4 leaf
//    switches type I takes 2 * (1.12 + 63 * 0.01) = 3.5 us; type II pays 0.52 us once at the NICs,
//    6 links and three times phi of a switch: 2.5 us leaves about 0.4 us for each.
// The text gives nothing more. Assumed: sending a copy costs what matching a packet costs; a
// switch matches five times as fast as a NIC, because it need not cross a host interface; both
// reduce at 10 GB/s, about line rate. The reason that long payloads prefer type I is then the one
// of section 5: one switch reduces the packets of its many children one after another, while many
// NICs reduce two or three packets each at the same time.
CostProfile PaperProfile() {
  CostProfile profile;
  profile.name = "paper";
  profile.nic = {.forward_us = 0.52,
                 .forward_us_per_byte = 0,
                 .match_us = 0.01,
                 .reduce_us_per_byte = 1e-4,
                 .send_us = 0.01};
  profile.switch_ = {.forward_us = 0.4,
                     .forward_us_per_byte = 0,
                     .match_us = 0.002,
                     .reduce_us_per_byte = 1e-4,
                     .send_us = 0.002};
  profile.link_us = 0.15;
  profile.same_host_us = 0.05;  // one chip holds both ports (2.3): a turn inside it, no link
  profile.mean_route_links = 4;
  profile.port_gbps = 100;  // not stated; generation of 25 Gb/s lanes, four to a port
  profile.header_bytes = kMinHeaderBytes;
  return profile;
}

// A generic InfiniBand HDR fabric (200 Gb/s, ConnectX-6 and Quantum class). An estimate:
//  - port-to-port latency of a Quantum (QM8700) switch below 0.13 us (product brief); with a few
//    metres of cable at 5 ns/m about 0.15 us a link;
//  - NIC-to-NIC latency of ConnectX-6 below 0.6 us through no switch (product brief); store and
//    forward at a NIC that also reduces about 0.7 us, with 5 million reduced packets a second;
//  - SHARP on 128 nodes of two levels: 8 B Allreduce in about 2.2-2.8 us (Graham et al., "Scalable
//    Hierarchical Aggregation Protocol", COMHPC 2016): two switch levels up and down, so about
//    0.35 us each, and a packet matched in a few nanoseconds;
//  - reduction at line rate in both: 25 GB/s = 4e-5 us a byte.
CostProfile HdrProfile() {
  CostProfile profile;
  profile.name = "hdr";
  profile.is_estimate = true;
  profile.nic = {.forward_us = 0.7,
                 .forward_us_per_byte = 0,
                 .match_us = 0.02,
                 .reduce_us_per_byte = 4e-5,
                 .send_us = 0.02};
  profile.switch_ = {.forward_us = 0.35,
                     .forward_us_per_byte = 0,
                     .match_us = 0.003,
                     .reduce_us_per_byte = 4e-5,
                     .send_us = 0.003};
  profile.init_us = 0.3;  // post a work request, ring the doorbell
  profile.link_us = 0.15;
  profile.same_host_us = 0.2;  // through the host's PCIe switch or memory
  profile.mean_route_links = 4;
  profile.port_gbps = 200;
  profile.mtu_bytes = 4096;
  profile.header_bytes = kMinHeaderBytes;
  return profile;
}

}  // namespace

std::vector<std::string> BuiltInProfileNames() { return {"paper", "hdr"}; }

absl::StatusOr<CostProfile> BuiltInProfile(absl::string_view name) {
  if (name == "paper") return PaperProfile();
  if (name == "hdr") return HdrProfile();
  return absl::NotFoundError(
      absl::StrCat("no built-in cost profile is named \"", name,
                   "\"; there are: ", absl::StrJoin(BuiltInProfileNames(), ", ")));
}

// A cost profile from TOML text. Keys are the fields of CostProfile and, in the tables [nic] and
// [switch], those of NodeCost:
//
//   base = "hdr"                  # what the unset keys are
//   link_us = 0.12
//   [nic]
//   match_us = 0.02
//
// A key that is not one of them is an error: a misspelt constant must not be a silent default.

namespace {

struct Field {
  absl::string_view name;
  std::variant<double CostProfile::*, uint32_t CostProfile::*, bool CostProfile::*> member;
  uint32_t least = 0;  // of a count
};
// In the order in which a profile is written.
constexpr Field kFields[] = {
    {"is_estimate", &CostProfile::is_estimate},
    {"switch_is_measured", &CostProfile::switch_is_measured},
    {"init_us", &CostProfile::init_us},
    {"link_us", &CostProfile::link_us},
    {"same_host_us", &CostProfile::same_host_us},
    {"mean_route_links", &CostProfile::mean_route_links},
    {"port_gbps", &CostProfile::port_gbps},
    {"mtu_bytes", &CostProfile::mtu_bytes, 1},
    {"header_bytes", &CostProfile::header_bytes},
    {"forward_includes_serialisation", &CostProfile::forward_includes_serialisation},
    {"nic_degree", &CostProfile::nic_degree, 1},
    {"width_tolerance_us", &CostProfile::width_tolerance_us},
};

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }
absl::string_view View(const toml::key& key) { return View(key.str()); }

// Reads one document; remembers its origin for messages.
class ProfileReader {
 public:
  explicit ProfileReader(absl::string_view origin) : origin_(origin) {}

  absl::StatusOr<CostProfile> Read(const toml::table& document) const {
    CostProfile profile;
    ASSIGN_OR_RETURN(profile, Base(document));
    profile.name = std::string(origin_);
    for (const auto& [key, value] : document) {
      if (View(key) == "base") continue;
      RETURN_IF_ERROR(SetKey(key, value, profile));
    }
    return profile;
  }

 private:
  absl::Status Error(const toml::source_region& where, absl::string_view key,
                     absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(origin_, ":", where.begin.line, ": ", key, ": ", what));
  }

  absl::StatusOr<CostProfile> Base(const toml::table& document) const {
    const toml::node* base = document.get("base");
    if (base == nullptr) return BuiltInProfile("hdr");
    const auto name = base->value_exact<std::string>();
    if (!name.has_value())
      return Error(base->source(), "base", "must be a profile's name in quotes");
    absl::StatusOr<CostProfile> profile = BuiltInProfile(*name);
    if (!profile.ok()) return Error(base->source(), "base", profile.status().message());
    return profile;
  }

  // A finite number >= 0, written as integer or float.
  absl::Status Set(absl::string_view key, uint32_t, const toml::node& value, double& field) const {
    const auto number = value.is_number() ? value.value<double>() : std::nullopt;
    if (!number.has_value() || !std::isfinite(*number) || *number < 0) {
      return Error(value.source(), key, "must be a number, 0 or more");
    }
    field = *number;
    return absl::OkStatus();
  }

  absl::Status Set(absl::string_view key, uint32_t least, const toml::node& value,
                   uint32_t& field) const {
    const auto number = value.value_exact<int64_t>();
    if (!number.has_value() || *number < least || *number > std::numeric_limits<uint32_t>::max()) {
      return Error(value.source(), key,
                   absl::StrCat("must be a whole number from ", least, " to 4294967295"));
    }
    field = static_cast<uint32_t>(*number);
    return absl::OkStatus();
  }

  absl::Status Set(absl::string_view key, uint32_t, const toml::node& value, bool& field) const {
    const auto flag = value.value_exact<bool>();
    if (!flag.has_value()) return Error(value.source(), key, "must be true or false");
    field = *flag;
    return absl::OkStatus();
  }

  absl::Status SetNode(const toml::key& table_key, const toml::node& value, NodeCost& cost) const {
    const toml::table* table = value.as_table();
    if (table == nullptr) {
      return Error(value.source(), View(table_key), "must be a table of a node's constants");
    }
    for (const auto& [key, number] : *table) {
      const absl::string_view name = View(key);
      const std::string path = absl::StrCat(View(table_key), ".", name);
      const auto known =
          absl::c_find_if(kNodeFields, [name](const NodeField& f) { return f.name == name; });
      if (known == kNodeFields.end()) return Unknown(key, path);
      RETURN_IF_ERROR(Set(path, 0, number, cost.*known->member));
    }
    return absl::OkStatus();
  }

  absl::Status SetName(const toml::node& value, std::string& field) const {
    const auto name = value.value_exact<std::string>();
    if (!name.has_value() || name->empty()) {
      return Error(value.source(), "name", "must be text in quotes");
    }
    field = *name;
    return absl::OkStatus();
  }

  absl::Status SetKey(const toml::key& key, const toml::node& value, CostProfile& profile) const {
    const absl::string_view name = View(key);
    if (name == "nic") return SetNode(key, value, profile.nic);
    if (name == "switch") return SetNode(key, value, profile.switch_);
    if (name == "name") return SetName(value, profile.name);
    for (const Field& known : kFields) {
      if (known.name != name) continue;
      const auto set = [&](auto member) { return Set(name, known.least, value, profile.*member); };
      return std::visit(set, known.member);
    }
    return Unknown(key, name);
  }

  absl::Status Unknown(const toml::key& key, absl::string_view path) const {
    return Error(key.source(), path, "no constant of a cost profile has this name; remove it");
  }

  absl::string_view origin_;
};

}  // namespace

absl::StatusOr<CostProfile> ParseProfile(absl::string_view text, absl::string_view origin) {
  RETURN_IF_ERROR(CheckAsciiInToml(text, origin));
  // The library reports by exception; it must not leave this function.
  try {
    return ProfileReader(origin).Read(toml::parse(std::string_view(text.data(), text.size())));
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ":", error.source().begin.line,
                                                   ": not TOML: ", View(error.description())));
  }
}

namespace {

std::string TomlOf(bool value) { return value ? "true" : "false"; }
std::string TomlOf(uint32_t value) { return absl::StrCat(value); }

// The shortest that reads back to the same value.
std::string TomlOf(double value) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  std::string text(digits, end);
  // A whole number without a point would be an integer of TOML, which ends at 2^63.
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

// Quoted, everything but plain ASCII as \uXXXX or \UXXXXXXXX, U+FFFD for what is not UTF-8.
std::string TomlOf(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const uint32_t code = character.bytes == 0 ? 0xfffd : character.code;
    text.remove_prefix(std::max<size_t>(character.bytes, 1));
    if (code == '"' || code == '\\') quoted += '\\';
    if (code >= 0x20 && code < 0x7f) {
      quoted += static_cast<char>(code);
    } else {
      quoted +=
          code < 0x10000 ? absl::StrFormat("\\u%04X", code) : absl::StrFormat("\\U%08X", code);
    }
  }
  return quoted + "\"";
}

}  // namespace

std::string ProfileToToml(const CostProfile& profile) {
  std::string text;
  const auto add = [&](absl::string_view key, const auto& value) {
    absl::StrAppend(&text, key, " = ", TomlOf(value), "\n");
  };
  if (!profile.name.empty()) add("name", absl::string_view(profile.name));
  for (const Field& field : kFields) {
    std::visit([&](auto member) { add(field.name, profile.*member); }, field.member);
  }
  for (const auto& [name, node] :
       {std::pair("nic", &profile.nic), std::pair("switch", &profile.switch_)}) {
    absl::StrAppend(&text, "\n[", name, "]\n");
    for (const NodeField& field : kNodeFields) add(field.name, node->*field.member);
  }
  return text;
}

}  // namespace coppice
