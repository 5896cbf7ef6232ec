// The constants that calibration fits, by number, and the closed forms as functions of them: what a
// sample's latency should be, and how it changes with each constant. Knows nothing of fitting.
#ifndef COPPICE_DAEMON_TREE_CALIBRATION_MODEL_H_
#define COPPICE_DAEMON_TREE_CALIBRATION_MODEL_H_

#include <array>
#include <bitset>
#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/tree/calibration/calibration.h"

namespace coppice {

// 0 init_us, 1 link_us, 2..6 those of [nic] and 7..11 those of [switch], in the order of NodeCost.
inline constexpr size_t kConstantCount = 12;
inline constexpr size_t kInitConstant = 0, kLinkConstant = 1, kNicConstants = 2;
inline constexpr size_t kSwitchConstants = 7;
enum NodeConstant : size_t { kForward, kForwardPerByte, kMatch, kReducePerByte, kSend };
using ConstantSet = std::bitset<kConstantCount>;

absl::string_view ConstantName(size_t constant);
double& ConstantIn(CostProfile& profile, size_t constant);
double ConstantIn(const CostProfile& profile, size_t constant);

// The constants that names (or "nic", "switch") stand for. INVALID_ARGUMENT: an unknown name.
absl::StatusOr<ConstantSet> ConstantsNamed(absl::Span<const std::string> names);

// The names of a set, a whole node as "nic" or "switch", joined by ", ".
std::string NamesOf(const ConstantSet& constants);

// What the closed forms give for a sample: TypeIUs, and TypeIIUs with the sample's own width for d.
double PredictUs(const CostProfile& profile, const LatencySample& sample);

// Which side of each max() wins for this sample: the port's rate in a level's two b; and, where the
// packets of a long message are under way in both directions, the way down as the slowest stage.
struct PortBounds {
  bool up = false, down = false;
  bool down_is_slower = false;
  bool operator==(const PortBounds&) const = default;
};
PortBounds PortBoundsOf(const CostProfile& profile, const LatencySample& sample);

// The closed form with its max() decided as `bounds` say: known_us + sum of slope * constant. It
// takes delta and B from the profile, no other number. Equal to PredictUs where `bounds` are
// PortBoundsOf.
struct LinearForm {
  double known_us = 0;
  std::array<double, kConstantCount> slope{};
  double Us(const CostProfile& profile) const;
};
LinearForm LinearFormOf(const CostProfile& profile, const LatencySample& sample, PortBounds bounds);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_CALIBRATION_MODEL_H_
