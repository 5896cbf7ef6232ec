#include "daemon/fabric/link_rate.h"

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

struct SpeedName {
  LaneSpeed speed;
  absl::string_view name;
  double lane_gbps;  // data rate of one lane
};

// IBA vol. 2, 5.2 (SDR-QDR: 2.5, 5, 10 GBd with 8b/10b); vol. 1 release 1.3 and later for the rest.
constexpr std::array<SpeedName, 9> kSpeeds = {{
    {LaneSpeed::kSdr, "SDR", 2},
    {LaneSpeed::kDdr, "DDR", 4},
    {LaneSpeed::kQdr, "QDR", 8},
    {LaneSpeed::kFdr10, "FDR10", 10},
    {LaneSpeed::kFdr, "FDR", 14.0625 * 64 / 66},
    {LaneSpeed::kEdr, "EDR", 25},
    {LaneSpeed::kHdr, "HDR", 50},
    {LaneSpeed::kNdr, "NDR", 100},
    {LaneSpeed::kXdr, "XDR", 200},
}};

}  // namespace

double DataRateGbps(LinkRate rate) {
  for (const SpeedName& entry : kSpeeds) {
    if (entry.speed == rate.speed) return entry.lane_gbps * rate.lanes;
  }
  return 0;
}

absl::string_view ToString(LaneSpeed speed) {
  for (const SpeedName& entry : kSpeeds) {
    if (entry.speed == speed) return entry.name;
  }
  return "?";
}

std::string ToString(LinkRate rate) {
  if (rate.lanes == 0 || rate.speed == LaneSpeed::kUnknown) return "?";
  return absl::StrCat(static_cast<int>(rate.lanes), "x", ToString(rate.speed));
}

std::optional<LinkRate> ParseLinkRate(absl::string_view text) {
  const size_t x = text.find_first_of("xX");
  int lanes = 0;
  if (x == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, x), &lanes)) return {};
  if (lanes != 1 && lanes != 2 && lanes != 4 && lanes != 8 && lanes != 12) return {};
  for (const SpeedName& entry : kSpeeds) {
    if (absl::EqualsIgnoreCase(entry.name, text.substr(x + 1))) {
      return LinkRate{static_cast<uint8_t>(lanes), entry.speed};
    }
  }
  return {};
}

}  // namespace coppice
