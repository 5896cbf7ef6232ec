// With P members, S bytes, delta = mean route length and, per node kind, phi, theta, gamma, c_send
// (formulas (1), (2), (3), (4), (8), (9) of Chen 2024, both directions added):
//
//   T_I(k) = T_init + log_k P * (2 delta l + phi(S') + phi(S_down) + k (theta + S* gamma + c_send))
//   T_II   = T_init + log_d P * (2 l       + phi(S') + phi(S_down) + d (theta + S* gamma + c_send))
//   with d = P^(2 / delta), hence log_d P = delta / 2, and the switch's constants;
//   II is chosen where T_I(k*) - T_II > 0.
//
// T_I falls to k* and rises after it (6); the widths within the profile's tolerance of T_I(k*) are
// an interval. k never exceeds the NIC's degree limit, so a scan finds all three.
#include "daemon/rpc/type_table_conversion.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/trees_conversion.h"
#include "daemon/tree/collective.h"

namespace coppice {
namespace {

// Upper ends of the size classes: a cache line, a packet, and steps of four up to a long message.
constexpr uint64_t kClassEnds[] = {8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};

// a and b of a step: a is paid once per level, b per child.
struct StepCost {
  double once_us = 0, per_child_us = 0;
};

StepCost CostOf(const NodeCost& node, const Payload& payload, double links, double link_us) {
  const double forwarded = static_cast<double>(payload.up_bytes + payload.down_bytes);
  return {2 * links * link_us + 2 * node.forward_us + forwarded * node.forward_us_per_byte,
          node.match_us + static_cast<double>(payload.reduced_bytes) * node.reduce_us_per_byte +
              node.send_us};
}

// Fills the widths and both times of `row`.
void Evaluate(const CostProfile& profile, uint32_t members, const Payload& payload,
              v1::TypeTableRow& row) {
  const StepCost nic = CostOf(profile.nic, payload, profile.mean_route_links, profile.link_us);
  const uint32_t most = std::max(2U, std::min(profile.nic_degree, members - 1));
  std::vector<double> time(most + 1);
  uint32_t best = 2;
  for (uint32_t k = 2; k <= most; ++k) {
    time[k] =
        profile.init_us + (nic.once_us + nic.per_child_us * k) * std::log(members) / std::log(k);
    if (time[k] < time[best]) best = k;
  }
  uint32_t low = best, high = best;
  while (low > 2 && time[low - 1] <= time[best] + profile.width_tolerance_us) --low;
  while (high < most && time[high + 1] <= time[best] + profile.width_tolerance_us) ++high;
  row.set_width(best);
  row.set_min_width(low);
  row.set_max_width(high);
  row.set_type_i_us(time[best]);

  const StepCost serving = CostOf(profile.switch_, payload, 1, profile.link_us);
  const double levels = profile.mean_route_links / 2;
  const double width = std::pow(members, 1 / levels);
  row.set_type_ii_us(profile.init_us + levels * (serving.once_us + serving.per_child_us * width));
  row.set_type(row.type_i_us() > row.type_ii_us() ? v1::TREE_TYPE_II : v1::TREE_TYPE_I);
}

void AddRow(const CostProfile& profile, uint32_t members, Operation operation, uint64_t min_bytes,
            uint64_t max_bytes, v1::TypeTable& table) {
  v1::TypeTableRow& row = *table.add_rows();
  row.set_operation(ToProto(operation));
  row.set_min_bytes(min_bytes);
  row.set_max_bytes(max_bytes);
  Evaluate(profile, members, PayloadOf(operation, max_bytes), row);
}

}  // namespace

absl::Status TypeTableToProto(const CostProfile& profile, uint32_t members,
                              v1::TypeTable& message) {
  if (members < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "type table for ", members, " members: a communicator that has a tree has at least 2"));
  }
  message.set_profile(profile.name);
  message.set_members(members);
  AddRow(profile, members, Operation::kBarrier, 0, 0, message);
  for (const Operation operation : {Operation::kBcast, Operation::kReduce, Operation::kAllreduce}) {
    uint64_t first = 1;
    for (const uint64_t end : kClassEnds) {
      AddRow(profile, members, operation, first, end, message);
      first = end + 1;
    }
  }
  return absl::OkStatus();
}

}  // namespace coppice
