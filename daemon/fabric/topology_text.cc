#include "daemon/fabric/topology_text.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

// Number of lanes; 0 = unknown.
std::optional<uint8_t> ParseWidth(absl::string_view width) {
  if (width == "4x") return 4;
  if (width == "1x") return 1;
  if (width == "2x") return 2;
  if (width == "8x") return 8;
  if (width == "12x") return 12;
  if (width == "??" || width == "?x") return 0;
  return std::nullopt;
}

std::optional<LaneSpeed> ParseSpeed(absl::string_view speed) {
  if (speed == "???" || speed == "?") return LaneSpeed::kUnknown;
  for (int i = static_cast<int>(LaneSpeed::kSdr); i <= static_cast<int>(LaneSpeed::kXdr); ++i) {
    if (speed == ToString(static_cast<LaneSpeed>(i))) return static_cast<LaneSpeed>(i);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Guid> GuidOfNodeName(absl::string_view name) {
  if (name.size() != 18 || name[1] != '-') return std::nullopt;
  if (name[0] != 'S' && name[0] != 'H' && name[0] != 'R') return std::nullopt;
  LineCursor cursor(name.substr(2));
  uint64_t guid = 0;
  if (name[3] == 'x' || !cursor.Hex(&guid) || !cursor.AtEnd()) return std::nullopt;
  return Guid(guid);
}

std::optional<LinkRate> ParseActiveRate(absl::string_view width, absl::string_view speed) {
  const std::optional<uint8_t> lanes = ParseWidth(width);
  const std::optional<LaneSpeed> lane = ParseSpeed(speed);
  if (!lanes || !lane) return std::nullopt;
  return LinkRate{*lanes, *lane};
}

std::optional<LinkRate> ParseActiveRate(absl::string_view word) {
  if (word.substr(0, 2) == "??") return ParseActiveRate(word.substr(0, 2), word.substr(2));
  const size_t x = word.find('x');
  if (x == absl::string_view::npos) return std::nullopt;
  return ParseActiveRate(word.substr(0, x + 1), word.substr(x + 1));
}

std::string FormatLinkRate(LinkRate rate, float capacity_gbps) {
  const std::string width =
      rate.lanes == 0 ? std::string("??") : absl::StrCat(static_cast<int>(rate.lanes), "x");
  const absl::string_view speed =
      rate.speed == LaneSpeed::kUnknown ? absl::string_view("???") : ToString(rate.speed);
  if (capacity_gbps == static_cast<float>(DataRateGbps(rate))) return absl::StrCat(width, speed);
  return absl::StrFormat("%s%s capacity %.9g Gb/s", width, speed, capacity_gbps);
}

std::optional<float> ParseCapacity(LineCursor& cursor) {
  float capacity_gbps = 0;
  if (!absl::SimpleAtof(cursor.Word(), &capacity_gbps) || !(capacity_gbps > 0) ||
      capacity_gbps > 1e9F || cursor.Word() != "Gb/s") {
    return std::nullopt;
  }
  return capacity_gbps;
}

std::string CleanDescription(absl::string_view description) {
  std::string clean;
  clean.reserve(description.size());
  while (!description.empty()) {
    const Character character = FirstCharacter(description);
    if (character.bytes > 0 && IsPlain(character.code)) {
      clean.append(description.data(), character.bytes);
    } else {
      clean += character.bytes == 1 ? ' ' : '?';
    }
    description.remove_prefix(std::max<size_t>(character.bytes, 1));
  }
  return clean;
}

std::string Excerpt(absl::string_view text) {
  constexpr size_t kMax = 80;
  return CleanDescription(CutText(text, kMax));
}

absl::StatusOr<NodeHeader> ParseNodeHeader(absl::string_view line,
                                           absl::Span<const absl::string_view> types) {
  LineCursor cursor(line);
  NodeHeader header;
  header.type = cursor.Word();
  if (std::find(types.begin(), types.end(), header.type) == types.end()) {
    return absl::InvalidArgumentError(absl::StrCat("neither a node header (",
                                                   absl::StrJoin(types, ", "),
                                                   ") nor a port line: ", Excerpt(line)));
  }
  uint32_t ports = 0;
  cursor.SkipBlanks();
  if (!cursor.Decimal(kMaxNodePorts, &ports) || ports == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of ports must be 1 to ", kMaxNodePorts, ": ", Excerpt(line)));
  }
  header.ports = static_cast<uint8_t>(ports);
  cursor.SkipBlanks();
  if (!cursor.Skip('"') || !cursor.Until('"', &header.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected TYPE PORTS \"NAME\": ", Excerpt(line)));
  }
  cursor.SkipBlanks();
  header.rest = cursor.rest();
  return header;
}

bool IsChatter(absl::string_view line) {
  LineCursor cursor(line);
  cursor.SkipBlanks();
  if (cursor.AtEnd() || cursor.LooksAt('#')) return true;
  for (const absl::string_view word : {"DR path ", "ibwarn:", "src/", "Chassis ", "Hostname:"}) {
    if (cursor.Skip(word)) return true;
  }
  return false;
}

}  // namespace coppice
