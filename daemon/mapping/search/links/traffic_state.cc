#include "daemon/mapping/search/links/traffic_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <variant>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/mapping_metrics.h"

namespace coppice {
namespace {

constexpr uint32_t kCommitsBeforeCounting = 1 << 14;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

double Power16(double x) {
  x *= x;
  x *= x;
  x *= x;
  return x * x;
}

double Root16(double x) { return std::sqrt(std::sqrt(std::sqrt(std::sqrt(x)))); }

}  // namespace

TrafficState::TrafficState(const MappingProblem& problem, bool with_qap_cost)
    : problem_(problem), with_qap_cost_(with_qap_cost), routes_(problem) {
  for (const double capacity : ChannelCapacities(problem)) per_byte_.push_back(1 / capacity);
  bytes_.resize(per_byte_.size());
  delta_.resize(per_byte_.size(), 0.0);
  touched_.resize(per_byte_.size(), 0);
  stale_.resize(per_byte_.size(), 0);
  from_leaf_.resize(problem.snapshot->fabric->switch_count(), 0.0);
  to_leaf_.resize(problem.snapshot->fabric->switch_count(), 0.0);
  leaves_ = std::bit_ceil(std::max<uint32_t>(1, static_cast<uint32_t>(per_byte_.size())));
  tree_.resize(2 * size_t{leaves_}, 0.0);
}

absl::StatusOr<TrafficState> TrafficState::Make(const MappingProblem& problem, const Mapping& start,
                                                bool with_qap_cost) {
  RETURN_IF_ERROR(CountLinkTraffic(problem, start).status());
  TrafficState state(problem, with_qap_cost);
  state.Assign(start);
  return state;
}

void TrafficState::Assign(const Mapping& mapping) {
  mapping_ = mapping;
  slot_of_rank_ = AssignSlots(*problem_.places, mapping);
  rank_in_slot_.assign(problem_.places->slot_count(), kNobody);
  for (uint32_t r = 0; r < slot_of_rank_.size(); ++r) rank_in_slot_[slot_of_rank_[r]] = r;
  tried_rank_ = kNobody;
  CountAll();
}

void TrafficState::CountAll() {
  for (const uint32_t c : touched_channels_) {
    delta_[c] = 0;
    touched_[c] = 0;
  }
  touched_channels_.clear();
  std::fill(bytes_.begin(), bytes_.end(), 0.0);
  routeless_ = false;
  for (uint32_t rank = 0; rank < mapping_.size(); ++rank) {
    for (const Exchange& exchange : problem_.pattern->exchanges(rank)) {
      if (exchange.out_bytes == 0) continue;
      const bool found = routes_.ForEachChannel(
          mapping_[rank].value(), mapping_[exchange.peer].value(),
          [&](uint32_t c, double share) { bytes_[c] += exchange.out_bytes * share; });
      routeless_ |= !found;
    }
  }
  hop_bytes_ = 0;
  for (uint32_t c = 0; c < bytes_.size(); ++c) {
    hop_bytes_ += bytes_[c];
    tree_[leaves_ + c] = bytes_[c] * per_byte_[c];
    stale_[c] = 0;
  }
  stale_channels_.clear();
  for (uint32_t i = leaves_ - 1; i >= 1; --i) tree_[i] = std::max(tree_[2 * i], tree_[2 * i + 1]);
  qap_cost_ = with_qap_cost_ ? QapCost(*problem_.pattern, *problem_.distances, mapping_) : 0.0;
  CountSoft();
  commits_ = 0;
}

void TrafficState::CountSoft() {
  double greatest = 0;
  for (uint32_t c = 0; c < bytes_.size(); ++c) {
    greatest = std::max(greatest, bytes_[c] * per_byte_[c]);
  }
  scale_ = greatest > 0 ? greatest : 1.0;
  soft_sum_ = 0;
  for (uint32_t c = 0; c < bytes_.size(); ++c) {
    soft_sum_ += Power16(bytes_[c] * per_byte_[c] / scale_);
  }
  soft_peak_ = soft_sum_;
}

void TrafficState::Add(uint32_t channel, double bytes) {
  if (touched_[channel] == 0) {
    touched_[channel] = 1;
    touched_channels_.push_back(channel);
  }
  delta_[channel] += bytes;
}

void TrafficState::AddRoute(uint32_t from, uint32_t to, double bytes) {
  if (bytes == 0) return;
  const bool found =
      routes_.ForEachChannel(from, to, [&](uint32_t c, double share) { Add(c, bytes * share); });
  tried_routeless_ |= !found;
}

void TrafficState::AddSwitchRoute(uint32_t leaf, uint32_t to, double bytes) {
  const bool found = routes_.ForEachSwitchChannel(
      leaf, to, [&](uint32_t c, double share) { Add(c, bytes * share); });
  tried_routeless_ |= !found;
}

// What the leaf switches met send to `place`.
void TrafficState::PutIncoming(uint32_t place, double sign, std::vector<double>& flows) {
  double sum = 0;
  for (const uint32_t leaf : leaves_met_) {
    if (flows[leaf] == 0) continue;
    AddSwitchRoute(leaf, place, sign * flows[leaf]);
    sum += flows[leaf];
    flows[leaf] = 0;
  }
  if (sum > 0) Add(routes_.uplink(place) ^ 1, sign * sum);
}

// Of all exchanges of `rank` but those with `other`, which moves, too; what peers have in common is
// counted once.
void TrafficState::MoveExchanges(uint32_t rank, uint32_t other, uint32_t from, uint32_t to) {
  const uint32_t from_leaf = routes_.leaf(from), to_leaf = routes_.leaf(to);
  double left = 0, entered = 0;  // bytes that `rank` sends away from the one, the other
  for (const Exchange& exchange : problem_.pattern->exchanges(rank)) {
    if (exchange.peer == other) continue;
    const uint32_t peer = mapping_[exchange.peer].value(), leaf = routes_.leaf(peer);
    if (!routes_.all_have_leaves()) {
      AddRoute(from, peer, -exchange.out_bytes);
      AddRoute(peer, from, -exchange.in_bytes);
      AddRoute(to, peer, exchange.out_bytes);
      AddRoute(peer, to, exchange.in_bytes);
      continue;
    }
    const bool leaves = !routes_.StayWithinHost(from, peer);
    const bool enters = !routes_.StayWithinHost(to, peer);
    if (exchange.out_bytes > 0) {
      if (leaves) left += exchange.out_bytes;
      if (enters) entered += exchange.out_bytes;
      if (!leaves || !enters || from_leaf != to_leaf) {
        if (leaves) AddSwitchRoute(from_leaf, peer, -exchange.out_bytes);
        if (enters) AddSwitchRoute(to_leaf, peer, exchange.out_bytes);
      }
    }
    if (exchange.in_bytes > 0) {
      if (from_leaf_[leaf] == 0 && to_leaf_[leaf] == 0) leaves_met_.push_back(leaf);
      if (leaves) from_leaf_[leaf] += exchange.in_bytes;
      if (enters) to_leaf_[leaf] += exchange.in_bytes;
    }
    if (leaves == enters) continue;
    Add(routes_.uplink(peer) ^ 1, enters ? exchange.out_bytes : -exchange.out_bytes);
    Add(routes_.uplink(peer), enters ? exchange.in_bytes : -exchange.in_bytes);
  }
  if (left > 0) Add(routes_.uplink(from), -left);
  if (entered > 0) Add(routes_.uplink(to), entered);
  PutIncoming(from, -1, from_leaf_);
  PutIncoming(to, 1, to_leaf_);
  leaves_met_.clear();
}

double TrafficState::QapDelta(uint32_t rank, uint32_t other, uint32_t from, uint32_t to) const {
  return std::visit(
      [&](const auto& d) {
        double delta = problem_.pattern->self_bytes(rank) * (d(to, to) - d(from, from));
        for (const Exchange& exchange : problem_.pattern->exchanges(rank)) {
          if (exchange.peer == other) {  // half here, half when `other` is asked for
            delta += (exchange.out_bytes * (d(to, from) - d(from, to)) +
                      exchange.in_bytes * (d(from, to) - d(to, from))) /
                     2;
            continue;
          }
          const uint32_t peer = mapping_[exchange.peer].value();
          delta += exchange.out_bytes * (d(to, peer) - d(from, peer)) +
                   exchange.in_bytes * (d(peer, to) - d(peer, from));
        }
        return delta;
      },
      problem_.distances->form());
}

TrafficState::Values TrafficState::Try(uint32_t rank, uint32_t slot) {
  for (const uint32_t c : touched_channels_) {
    delta_[c] = 0;
    touched_[c] = 0;
  }
  touched_channels_.clear();
  tried_rank_ = rank;
  tried_slot_ = slot;
  tried_routeless_ = false;
  const uint32_t other = rank_in_slot_[slot];
  const uint32_t a = mapping_[rank].value(), b = problem_.places->place_of_slot(slot).value();
  tried_ = {.hop_bytes = hop_bytes_, .qap_cost = qap_cost_};
  if (a != b) {
    MoveExchanges(rank, other, a, b);
    if (with_qap_cost_) tried_.qap_cost += QapDelta(rank, other, a, b);
    if (other != kNobody) {
      MoveExchanges(other, rank, b, a);
      if (with_qap_cost_) tried_.qap_cost += QapDelta(other, rank, b, a);
      const absl::Span<const Exchange> row = problem_.pattern->exchanges(rank);
      const auto between = std::lower_bound(
          row.begin(), row.end(), other,
          [](const Exchange& exchange, uint32_t peer) { return exchange.peer < peer; });
      if (between != row.end() && between->peer == other) {
        AddRoute(a, b, -between->out_bytes);
        AddRoute(b, a, -between->in_bytes);
        AddRoute(b, a, between->out_bytes);
        AddRoute(a, b, between->in_bytes);
      }
    }
  }
  tried_soft_sum_ = soft_sum_;
  for (const uint32_t c : touched_channels_) {
    if (delta_[c] == 0) continue;
    tried_.hop_bytes += delta_[c];
    const double factor = per_byte_[c] / scale_;
    tried_soft_sum_ +=
        Power16(std::max(0.0, bytes_[c] + delta_[c]) * factor) - Power16(bytes_[c] * factor);
  }
  tried_soft_sum_ = std::max(0.0, tried_soft_sum_);
  tried_.soft = routeless_ || tried_routeless_ ? kInfinite : scale_ * Root16(tried_soft_sum_);
  return tried_;
}

// The greatest congestion above `floor` of the channels that are not touched: down the tree, past
// whatever cannot be above the best so far.
double TrafficState::GreatestUntouched(double floor) const {
  double best = floor;
  uint32_t stack[64];
  uint32_t depth = 0;
  stack[depth++] = 1;
  while (depth > 0) {
    const uint32_t node = stack[--depth];
    if (tree_[node] <= best) continue;
    if (node >= leaves_) {
      if (touched_[node - leaves_] == 0) best = tree_[node];
      continue;
    }
    const bool left_is_greater = tree_[2 * node] > tree_[2 * node + 1];
    stack[depth++] = 2 * node + (left_is_greater ? 1 : 0);
    stack[depth++] = 2 * node + (left_is_greater ? 0 : 1);
  }
  return best;
}

double TrafficState::TriedCongestion() {
  if (routeless_ || tried_routeless_) return kInfinite;
  Flush();
  double greatest = 0;
  for (const uint32_t c : touched_channels_) {
    greatest = std::max(greatest, (bytes_[c] + delta_[c]) * per_byte_[c]);
  }
  return GreatestUntouched(greatest);
}

void TrafficState::Commit() {
  const uint32_t slot = slot_of_rank_[tried_rank_], other = rank_in_slot_[tried_slot_];
  mapping_[tried_rank_] = problem_.places->place_of_slot(tried_slot_);
  slot_of_rank_[tried_rank_] = tried_slot_;
  rank_in_slot_[tried_slot_] = tried_rank_;
  rank_in_slot_[slot] = other;
  if (other != kNobody) {
    mapping_[other] = problem_.places->place_of_slot(slot);
    slot_of_rank_[other] = slot;
  }
  for (const uint32_t c : touched_channels_) {
    bytes_[c] = std::max(0.0, bytes_[c] + delta_[c]);
    delta_[c] = 0;
    touched_[c] = 0;
    if (stale_[c] == 0) {
      stale_[c] = 1;
      stale_channels_.push_back(c);
    }
  }
  touched_channels_.clear();
  routeless_ |= tried_routeless_;
  hop_bytes_ = tried_.hop_bytes;
  qap_cost_ = tried_.qap_cost;
  soft_sum_ = tried_soft_sum_;
  soft_peak_ = std::max(soft_peak_, soft_sum_);
  if (++commits_ >= kCommitsBeforeCounting) {
    CountAll();
  } else if (soft_sum_ < 1e-4 * soft_peak_ || soft_sum_ > 1e100) {
    CountSoft();  // 1e-16 of the peak is no longer small
  }
}

void TrafficState::Flush() {
  for (const uint32_t c : stale_channels_) {
    stale_[c] = 0;
    uint32_t node = leaves_ + c;
    tree_[node] = bytes_[c] * per_byte_[c];
    while (node > 1) {
      node /= 2;
      const double greater = std::max(tree_[2 * node], tree_[2 * node + 1]);
      if (tree_[node] == greater) break;
      tree_[node] = greater;
    }
  }
  stale_channels_.clear();
}

TrafficState::Values TrafficState::Now() {
  Flush();
  return {routeless_ ? kInfinite : tree_[1], routeless_ ? kInfinite : scale_ * Root16(soft_sum_),
          hop_bytes_, qap_cost_};
}

ChannelIndex TrafficState::MostCongested() {
  Flush();
  if (tree_[1] == 0) return kNoChannel;
  uint32_t node = 1;
  while (node < leaves_) node = tree_[2 * node] == tree_[node] ? 2 * node : 2 * node + 1;
  return ChannelIndex(node - leaves_);
}

}  // namespace coppice
