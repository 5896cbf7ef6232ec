#include "agents/node/verbs/verbs_offer.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

// Of a GID (InfiniBand specification 1.3, volume 1, 4.1.1).
constexpr size_t kPrefixBytes = 8;
constexpr uint32_t kFirstQueuePair = 2, kLast24 = 0xffffff;
constexpr uint8_t kFirstMtu = 1, kLastMtu = 5;

void Put(uint32_t number, size_t size, std::string& out) {
  for (size_t i = size; i-- > 0;) out.push_back(static_cast<char>(number >> (8 * i)));
}

uint32_t Take(absl::string_view& bytes, size_t size) {
  uint32_t number = 0;
  for (size_t i = 0; i < size; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  bytes.remove_prefix(size);
  return number;
}

absl::Status OutOfRange(const char* name, uint32_t value) {
  return absl::InvalidArgumentError(absl::StrCat("the peer's ", name, " over verbs is ", value));
}

absl::Status CheckRange(const char* name, uint32_t value, uint32_t least, uint32_t most) {
  return value >= least && value <= most ? absl::OkStatus() : OutOfRange(name, value);
}

std::string Prefix(const VerbsOffer& offer) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(offer.gid.data()), kPrefixBytes));
}

}  // namespace

std::string Encode(const VerbsOffer& offer) {
  std::string bytes(offer.gid.begin(), offer.gid.end());
  Put(offer.lid, 2, bytes);
  Put(offer.queue_pair, 4, bytes);
  Put(offer.packet_number, 4, bytes);
  Put(offer.mtu, 1, bytes);
  return bytes;
}

absl::StatusOr<VerbsOffer> DecodeVerbsOffer(absl::string_view bytes) {
  if (bytes.size() != VerbsOffer::kBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer's offer of verbs has ", bytes.size(), " bytes"));
  }
  VerbsOffer offer;
  std::copy_n(bytes.begin(), offer.gid.size(), offer.gid.begin());
  bytes.remove_prefix(offer.gid.size());
  offer.lid = static_cast<uint16_t>(Take(bytes, 2));
  offer.queue_pair = Take(bytes, 4);
  offer.packet_number = Take(bytes, 4);
  offer.mtu = static_cast<uint8_t>(Take(bytes, 1));
  for (const absl::Status& status :
       {IsUnicastLid(offer.lid) ? absl::OkStatus() : OutOfRange("LID", offer.lid),
        CheckRange("queue pair", offer.queue_pair, kFirstQueuePair, kLast24),
        CheckRange("packet number", offer.packet_number, 0, kLast24),
        CheckRange("MTU", offer.mtu, kFirstMtu, kLastMtu)}) {
    if (!status.ok()) return status;
  }
  return offer;
}

absl::Status CheckReach(const VerbsOffer& mine, const VerbsOffer& peers) {
  if (std::equal(mine.gid.begin(), mine.gid.begin() + kPrefixBytes, peers.gid.begin())) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the two are on different subnets, ", Prefix(mine), " and ", Prefix(peers)));
}

}  // namespace coppice
