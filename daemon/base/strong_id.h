// Numbers that mean different things get different types, so that a LID is never passed for a port
// or a switch's index for an endpoint's. Costs nothing at run time. Knows no domain.
#ifndef COPPICE_DAEMON_BASE_STRONG_ID_H_
#define COPPICE_DAEMON_BASE_STRONG_ID_H_

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {

// A value of type `Rep` that converts to and from nothing implicitly. `Tag` makes the type unique.
template <class Tag, class Rep>
class StrongId {
 public:
  using rep = Rep;
  constexpr StrongId() = default;
  explicit constexpr StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
  template <class H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  Rep value_{};
};

// Globally unique identifier of a node or a port (IBA vol. 1, 4.1).
using Guid = StrongId<struct GuidTag, uint64_t>;
// Local identifier of a port within its subnet (IBA vol. 1, 4.1.3). 0 = none.
using Lid = StrongId<struct LidTag, uint16_t>;
// Port of a node, counted from 1; 0 is a switch's management port.
using PortNum = StrongId<struct PortNumTag, uint8_t>;
// The number of a partition (IBA vol. 1, 10.9), 1 to 0x7fff; 0 is none.
using PartitionNum = StrongId<struct PartitionTag, uint16_t>;

// A GUID the way every tool here prints it: 16 hex digits without 0x.
inline std::string ToString(Guid guid) {
  return absl::StrCat(absl::Hex(guid.value(), absl::kZeroPad16));
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_STRONG_ID_H_
