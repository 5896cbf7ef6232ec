// A cost profile as the TOML text that profile_reader.cc reads. Numbers are the shortest that read
// back to the same value.
#include <charconv>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/tree/calibration/model.h"

namespace coppice {
namespace {

std::string Number(double value) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  std::string text(digits, end);
  // A whole number without a point would be an integer of TOML, which ends at 2^63.
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

// The character that begins at text[at], which moves behind it; U+FFFD for what is not UTF-8.
uint32_t NextCharacter(absl::string_view text, size_t& at) {
  constexpr uint32_t kReplacement = 0xfffd;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  if (first < 0xc2 || first > 0xf4) return kReplacement;
  uint32_t character = first & (0x3f >> more);
  for (int i = 0; i < more; ++i) {
    if (at == text.size() || (byte(at) & 0xc0) != 0x80) return kReplacement;
    character = character << 6 | (byte(at++) & 0x3f);
  }
  const bool is_long = character < (more == 3 ? 0x10000U : more == 2 ? 0x800U : 0x80U);
  const bool is_surrogate = character >= 0xd800 && character < 0xe000;
  return is_long || is_surrogate || character > 0x10ffff ? kReplacement : character;
}

// Quoted, everything but plain ASCII as \uXXXX or \UXXXXXXXX.
std::string QuotedToml(absl::string_view text) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size();) {
    const uint32_t character = NextCharacter(text, at);
    if (character == '"' || character == '\\') quoted += '\\';
    if (character >= 0x20 && character < 0x7f) {
      quoted += static_cast<char>(character);
    } else {
      quoted += character < 0x10000 ? absl::StrFormat("\\u%04X", character)
                                    : absl::StrFormat("\\U%08X", character);
    }
  }
  return quoted + "\"";
}

std::string Flag(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string ProfileToToml(const CostProfile& profile) {
  std::string text;
  if (!profile.name.empty()) absl::StrAppend(&text, "name = ", QuotedToml(profile.name), "\n");
  absl::StrAppend(&text, "is_estimate = ", Flag(profile.is_estimate), "\n");
  const auto number = [&](absl::string_view key, double value) {
    absl::StrAppend(&text, key, " = ", Number(value), "\n");
  };
  number("init_us", profile.init_us);
  number("link_us", profile.link_us);
  number("same_host_us", profile.same_host_us);
  number("mean_route_links", profile.mean_route_links);
  number("port_gbps", profile.port_gbps);
  absl::StrAppend(&text, "mtu_bytes = ", profile.mtu_bytes, "\n");
  absl::StrAppend(&text, "header_bytes = ", profile.header_bytes, "\n");
  absl::StrAppend(&text,
                  "forward_includes_serialisation = ", Flag(profile.forward_includes_serialisation),
                  "\n");
  absl::StrAppend(&text, "nic_degree = ", profile.nic_degree, "\n");
  number("width_tolerance_us", profile.width_tolerance_us);
  for (size_t c = kNicConstants; c < kConstantCount; ++c) {
    const absl::string_view name = ConstantName(c);
    const size_t dot = name.find('.');
    if (c == kNicConstants || c == kSwitchConstants) {
      absl::StrAppend(&text, "\n[", name.substr(0, dot), "]\n");
    }
    number(name.substr(dot + 1), ConstantIn(profile, c));
  }
  return text;
}

}  // namespace coppice
