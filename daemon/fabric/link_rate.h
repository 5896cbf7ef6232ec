// Width and speed of a link as the port reports them, and the data rate that results.
#ifndef COPPICE_DAEMON_FABRIC_LINK_RATE_H_
#define COPPICE_DAEMON_FABRIC_LINK_RATE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace coppice {

// Speed of one lane (IBA vol. 1, 14.2.5.6 PortInfo LinkSpeedActive and its extensions).
enum class LaneSpeed : uint8_t { kUnknown, kSdr, kDdr, kQdr, kFdr10, kFdr, kEdr, kHdr, kNdr, kXdr };

struct LinkRate {
  uint8_t lanes = 0;  // 1, 2, 4, 8 or 12; 0 = unknown
  LaneSpeed speed = LaneSpeed::kUnknown;
  friend bool operator==(const LinkRate&, const LinkRate&) = default;
};

// Data rate of one direction in Gb/s, after line coding (8b/10b to QDR, 64b/66b from FDR10 on; HDR
// to XDR as marketed, PAM4 with RS-FEC). 0 if either part is unknown.
double DataRateGbps(LinkRate rate);

// "4xQDR"; "?" if unknown. ParseLinkRate is its inverse and also takes lower case.
std::string ToString(LinkRate rate);
std::optional<LinkRate> ParseLinkRate(absl::string_view text);
absl::string_view ToString(LaneSpeed speed);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_LINK_RATE_H_
