// What the two ends of a connection over verbs have to know of each other, as it goes over the
// measuring socket. Knows no libibverbs.
#ifndef COPPICE_AGENTS_NODE_VERBS_VERBS_OFFER_H_
#define COPPICE_AGENTS_NODE_VERBS_VERBS_OFFER_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

struct VerbsOffer {
  static constexpr size_t kBytes = 27;

  std::array<uint8_t, 16> gid{};  // subnet prefix and port GUID, as on the wire
  uint16_t lid = 0;               // unicast
  uint32_t queue_pair = 0;        // 24 bits, not 0 or 1, which are the subnet manager's
  uint32_t packet_number = 0;     // 24 bits: of the first packet that it sends
  uint8_t mtu = 0;                // as enum ibv_mtu: 1 is 256 B, 5 is 4096 B

  friend bool operator==(const VerbsOffer&, const VerbsOffer&) = default;
};

// What one port has (InfiniBand specification 1.3, volume 1, 4.1.3); 0 is none.
inline bool IsUnicastLid(uint16_t lid) { return lid >= 1 && lid <= 0xbfff; }

// GID, then LID, queue pair (4 B), packet number (4 B), MTU, the greatest byte first.
std::string Encode(const VerbsOffer& offer);
// INVALID_ARGUMENT, naming the number: nobody can be reached there.
absl::StatusOr<VerbsOffer> DecodeVerbsOffer(absl::string_view bytes);

// FAILED_PRECONDITION: they are on different subnets.
absl::Status CheckReach(const VerbsOffer& mine, const VerbsOffer& peers);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_VERBS_VERBS_OFFER_H_
