#include "daemon/tree/closed_form.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {
namespace {

// Upper ends of the size classes: a cache line or less, then steps of four up to a long message.
constexpr uint64_t kClassEnds[] = {8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};

const NodeCost& NodeOf(const CostProfile& profile, TreeType type) {
  return type == TreeType::kTypeI ? profile.nic : profile.switch_;
}

// a of one direction.
double OnceUs(const CostProfile& profile, TreeType type, uint64_t bytes) {
  const NodeCost& node = NodeOf(profile, type);
  const double links = type == TreeType::kTypeI ? profile.mean_route_links : 1;
  return links * profile.link_us + node.ForwardUs(bytes) +
         (profile.forward_includes_serialisation ? 0 : SerialisationUs(bytes, profile.port_gbps));
}

TypeChoice Choose(const CostProfile& profile, uint32_t members, Operation operation,
                  uint64_t min_bytes, uint64_t max_bytes) {
  TypeChoice choice;
  choice.operation = operation;
  choice.min_bytes = min_bytes;
  choice.max_bytes = max_bytes;
  const Payload payload = PayloadOf(operation, max_bytes);
  const LevelCost level = BothWays(profile, TreeType::kTypeI, payload);
  choice.widths = WidthsWithin(level, members, 2 * profile.width_tolerance_us,
                               std::min(profile.nic_degree, members - 1));
  choice.type_i_us = TypeIUs(profile, members, choice.widths.best, payload);
  choice.type_ii_us = TypeIIUs(profile, members, payload);
  choice.type = choice.type_i_us > choice.type_ii_us ? TreeType::kTypeII : TreeType::kTypeI;
  return choice;
}

}  // namespace

LevelCost& LevelCost::operator+=(const LevelCost& other) {
  once_us += other.once_us;
  per_child_us += other.per_child_us;
  stage_per_child_us += other.stage_per_child_us;
  return *this;
}

LevelCost AggregateLevel(const CostProfile& profile, TreeType type, const Payload& payload) {
  const NodeCost& node = NodeOf(profile, type);
  const Pipeline pipeline = PipelineOf(profile, payload);
  const Payload& packet = pipeline.packet;
  const double match = node.MatchUs(packet.reduced_bytes);
  const double b = std::max(match, WireUs(profile, packet.up_bytes, profile.port_gbps));
  return {.once_us = OnceUs(profile, type, packet.up_bytes),
          .per_child_us = b,
          .stage_per_child_us = static_cast<double>(pipeline.more_up) * b};
}

LevelCost DistributeLevel(const CostProfile& profile, TreeType type, const Payload& payload) {
  const Pipeline pipeline = PipelineOf(profile, payload);
  const uint64_t bytes = pipeline.packet.down_bytes;
  const double b =
      std::max(NodeOf(profile, type).send_us, WireUs(profile, bytes, profile.port_gbps));
  return {.once_us = OnceUs(profile, type, bytes),
          .per_child_us = b,
          .stage_per_child_us = static_cast<double>(pipeline.more_down) * b};
}

LevelCost BothWays(const CostProfile& profile, TreeType type, const Payload& payload) {
  LevelCost both = AggregateLevel(profile, type, payload);
  const LevelCost down = DistributeLevel(profile, type, payload);
  const double slower = std::max(both.stage_per_child_us, down.stage_per_child_us);
  both += down;
  if (PipelineOf(profile, payload).streams) both.stage_per_child_us = slower;
  return both;
}

LevelCost BothWays(const CostProfile& profile, TreeType type, const CollectiveMix& mix) {
  LevelCost mean;
  ForEachPayload(mix, [&](const Payload& payload, double weight) {
    const LevelCost both = BothWays(profile, type, payload);
    mean += {.once_us = weight * both.once_us,
             .per_child_us = weight * both.per_child_us,
             .stage_per_child_us = weight * both.stage_per_child_us};
  });
  return mean;
}

double LevelsUs(const LevelCost& level, uint32_t members, double width) {
  if (members < 2) return 0;
  return (level.once_us + level.per_child_us * width) * std::log(members) / std::log(width) +
         level.stage_per_child_us * width;
}

// F'(k) k (ln k)^2 = ln P (b k (ln k - 1) - a) + c k (ln k)^2 has one root, as it increases from
// -ln P (a + b) at k = 1.
double IdealWidth(const LevelCost& level, uint32_t members) {
  const double a = level.once_us, b = level.per_child_us, c = level.stage_per_child_us;
  const double levels = std::log(std::max(members, 2U));
  if (b <= 0 && c <= 0) return std::numeric_limits<double>::infinity();
  const auto is_below = [&](double k) {
    const double log = std::log(k);
    return levels * (b * k * (log - 1) - a) + c * k * log * log < 0;
  };
  double low = 1, high = 4;
  while (is_below(high)) high *= 2;
  for (int step = 0; step < 100 && high - low > 1e-9 * high; ++step) {
    const double middle = (low + high) / 2;
    (is_below(middle) ? low : high) = middle;
  }
  return (low + high) / 2;
}

WidthInterval WidthsWithin(const LevelCost& level, uint32_t members, double tolerance_us,
                           uint32_t most) {
  most = std::max(most, 2U);
  const double ideal = std::min<double>(IdealWidth(level, members), most);
  const auto us = [&](uint32_t width) { return LevelsUs(level, members, width); };
  // F falls to k* and rises after it, so the best whole width is one of the two beside it.
  const uint32_t below = std::max(2U, static_cast<uint32_t>(ideal));
  const uint32_t above = std::min(below + 1, most);
  WidthInterval widths;
  widths.best = us(above) < us(below) ? above : below;
  const double bound = us(widths.best) + tolerance_us;
  for (widths.min = widths.best; widths.min > 2 && us(widths.min - 1) <= bound;) --widths.min;
  for (widths.max = widths.best; widths.max < most && us(widths.max + 1) <= bound;) ++widths.max;
  return widths;
}

double TypeIIWidth(const CostProfile& profile, uint32_t members) {
  if (members < 2 || profile.mean_route_links <= 0) return 2;
  return std::max(2.0, std::pow(members, 2 / profile.mean_route_links));
}

double TypeIUs(const CostProfile& profile, uint32_t members, double width, const Payload& payload) {
  return profile.init_us + LevelsUs(BothWays(profile, TreeType::kTypeI, payload), members, width);
}

double TypeIIUs(const CostProfile& profile, uint32_t members, const Payload& payload) {
  return profile.init_us + LevelsUs(BothWays(profile, TreeType::kTypeII, payload), members,
                                    TypeIIWidth(profile, members));
}

absl::StatusOr<std::vector<TypeChoice>> StaticTypeTable(const CostProfile& profile,
                                                        uint32_t members) {
  if (members < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("type table for ", members, " members: ask for a communicator of at least 2"));
  }
  std::vector<TypeChoice> table = {Choose(profile, members, Operation::kBarrier, 0, 0)};
  for (const Operation operation : {Operation::kBcast, Operation::kReduce, Operation::kAllreduce}) {
    uint64_t first = 1;
    for (const uint64_t end : kClassEnds) {
      table.push_back(Choose(profile, members, operation, first, end));
      first = end + 1;
    }
  }
  return table;
}

}  // namespace coppice
