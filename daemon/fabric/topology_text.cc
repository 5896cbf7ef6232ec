#include "daemon/fabric/topology_text.h"

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
  if (speed == "???" || speed == "?" || speed == "XDR") return LaneSpeed::kUnknown;
  for (int i = static_cast<int>(LaneSpeed::kSdr); i <= static_cast<int>(LaneSpeed::kNdr); ++i) {
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

std::string CleanDescription(absl::string_view description) {
  std::string clean(description);
  for (char& c : clean) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return clean;
}

}  // namespace coppice
