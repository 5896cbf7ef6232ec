#include "daemon/mapping/mapping_metrics.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/link_traffic.h"

namespace coppice {
namespace {

absl::Status MeasureLinks(const MappingProblem& problem, absl::Span<const PlaceIndex> mapping,
                          MappingMeasures& measures) {
  ASSIGN_OR_RETURN(const LinkTraffic traffic, CountLinkTraffic(problem, mapping));
  const std::vector<double> capacities = ChannelCapacities(problem);
  double hop_bytes = 0, congestion = 0;
  for (uint32_t c = 0; c < traffic.bytes.size(); ++c) {
    hop_bytes += traffic.bytes[c];
    congestion = std::max(congestion, traffic.bytes[c] / capacities[c]);
  }
  double powers = 0;  // of congestion over the greatest, which is at most 1
  for (uint32_t c = 0; congestion > 0 && c < traffic.bytes.size(); ++c) {
    const double share = traffic.bytes[c] / capacities[c] / congestion;
    const double square = share * share, fourth = square * square, eighth = fourth * fourth;
    powers += eighth * eighth;
  }
  measures.smooth_congestion = congestion * std::pow(powers, 1.0 / 16);
  const double total = problem.pattern->total_bytes();
  measures.max_congestion = congestion;
  measures.hop_bytes = hop_bytes;
  measures.average_dilation = total > 0 ? hop_bytes / total : 0.0;
  measures.max_dilation = traffic.longest;
  return absl::OkStatus();
}

// Bytes between ranks whose places have different keys.
template <class KeyOf>
double BytesBetween(const Pattern& pattern, absl::Span<const PlaceIndex> mapping,
                    const KeyOf& key_of) {
  double bytes = 0;
  for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) {
    const auto key = key_of(mapping[rank]);
    for (const Exchange& exchange : pattern.exchanges(rank)) {
      if (key_of(mapping[exchange.peer]) != key) bytes += exchange.out_bytes;
    }
  }
  return bytes;
}

// w(u,v) * D(place u, place v), of ordered pairs of different ranks that count.
template <class Counts>
double SumOfPairs(const Pattern& pattern, const PlaceDistances& distances,
                  absl::Span<const PlaceIndex> mapping, const Counts& counts) {
  return std::visit(
      [&](const auto& d) {
        double cost = 0;
        for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) {
          for (const Exchange& e : pattern.exchanges(rank)) {
            if (!counts(rank, e.peer)) continue;
            cost += e.out_bytes * d(mapping[rank].value(), mapping[e.peer].value());
          }
        }
        return cost;
      },
      distances.form());
}

double Relative(double value, double present) { return present > 0 ? value / present : value; }

constexpr double kSumRounding = 1e-12;  // of sums of doubles in another order, relative
// Of some hundred channels one more that is full makes about as much: nobody measures less.
constexpr double kSmoother = 1e-3;
constexpr double kWorthMoving = 1e-6;  // of the hop-bytes

// Of two that are not negative, and may be infinite.
bool IsLess(double a, double b, double tolerance) { return b - a > tolerance * std::min(a, b); }

}  // namespace

absl::StatusOr<MappingMeasures> Measure(const MappingProblem& problem,
                                        absl::Span<const PlaceIndex> mapping) {
  MappingMeasures measures;
  measures.qap_cost = QapCost(*problem.pattern, *problem.distances, mapping);
  if (!problem.on_fabric()) {
    measures.inter_node_bytes =
        BytesBetween(*problem.pattern, mapping, [](PlaceIndex p) { return p; });
    return measures;
  }
  const Fabric& fabric = *problem.snapshot->fabric;
  const auto host = [&](PlaceIndex p) { return fabric.host(problem.places->endpoint(p)); };
  const auto leaf = [&](PlaceIndex p) {
    const EndpointIndex e = problem.places->endpoint(p);
    const std::optional<SwitchIndex> attached = fabric.attached_switch(e);
    return attached.has_value() ? fabric.Vertex(*attached) : fabric.Vertex(e);
  };
  measures.inter_node_bytes = BytesBetween(*problem.pattern, mapping, host);
  measures.inter_switch_bytes = BytesBetween(*problem.pattern, mapping, leaf);
  RETURN_IF_ERROR(MeasureLinks(problem, mapping, measures));
  return measures;
}

double QapCost(const Pattern& pattern, const PlaceDistances& distances,
               absl::Span<const PlaceIndex> mapping) {
  const auto all = [](uint32_t, uint32_t) { return true; };
  double cost = SumOfPairs(pattern, distances, mapping, all);
  for (uint32_t rank = 0; pattern.has_self_bytes() && rank < mapping.size(); ++rank) {
    cost += pattern.self_bytes(rank) * distances(mapping[rank], mapping[rank]);
  }
  return cost;
}

double AggregatedQapCost(const Pattern& pattern, const PlaceDistances& distances,
                         absl::Span<const PlaceIndex> mapping,
                         absl::Span<const uint32_t> cluster_of_rank) {
  return SumOfPairs(pattern, distances, mapping, [&](uint32_t u, uint32_t v) {
    return cluster_of_rank[u] != cluster_of_rank[v];
  });
}

double Score(const Objective& objective, const MappingMeasures& measures,
             const MappingMeasures& present) {
  double score = 0;
  const double weights = objective.congestion + objective.hop_bytes + objective.qap_cost;
  if (objective.congestion > 0) {
    score += objective.congestion * Relative(*measures.max_congestion, *present.max_congestion);
  }
  if (objective.hop_bytes > 0) {
    score += objective.hop_bytes * Relative(*measures.hop_bytes, *present.hop_bytes);
  }
  if (objective.qap_cost > 0) {
    score += objective.qap_cost * Relative(measures.qap_cost, present.qap_cost);
  }
  return score / weights;
}

absl::Status CheckMapping(const Places& places, uint32_t rank_count,
                          absl::Span<const PlaceIndex> mapping) {
  if (mapping.size() != rank_count) {
    return absl::InternalError(
        absl::StrFormat("a mapping of %d ranks for %d", mapping.size(), rank_count));
  }
  std::vector<uint32_t> taken(places.count(), 0);
  for (uint32_t rank = 0; rank < rank_count; ++rank) {
    const PlaceIndex p = mapping[rank];
    if (p.value() >= places.count()) {
      return absl::InternalError(
          absl::StrFormat("rank %d is on place %d of %d", rank, p.value(), places.count()));
    }
    if (++taken[p.value()] > places.capacity(p)) {
      return absl::InternalError(
          absl::StrFormat("place %d takes %d ranks and has more, rank %d "
                          "among them",
                          p.value(), places.capacity(p), rank));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSlots(const Places& places, absl::Span<const uint32_t> slot_of_rank) {
  std::vector<bool> taken(places.slot_count(), false);
  for (uint32_t rank = 0; rank < slot_of_rank.size(); ++rank) {
    const uint32_t slot = slot_of_rank[rank];
    if (slot >= places.slot_count()) {
      return absl::InternalError(
          absl::StrFormat("rank %d is in slot %d of %d", rank, slot, places.slot_count()));
    }
    if (taken[slot]) {
      return absl::InternalError(absl::StrFormat("slot %d holds two ranks, one is %d", slot, rank));
    }
    taken[slot] = true;
  }
  return absl::OkStatus();
}

bool MappingStanding::HasScoreOf(const MappingStanding& other) const {
  return !IsLess(score, other.score, kSumRounding) && !IsLess(other.score, score, kSumRounding);
}

bool MappingStanding::HasLessSmooth(const MappingStanding& other) const {
  return IsLess(smooth, other.smooth, kSmoother);
}

bool MappingStanding::HasFewerHopBytes(const MappingStanding& other) const {
  return IsLess(hop_bytes, other.hop_bytes, kWorthMoving);
}

bool MappingStanding::IsBetterThan(const MappingStanding& other) const {
  if (!HasScoreOf(other)) return score < other.score;
  return HasLessSmooth(other) || (!other.HasLessSmooth(*this) && HasFewerHopBytes(other));
}

MappingStanding StandingOf(const Objective& objective, const MappingMeasures& measures,
                           const MappingMeasures& present) {
  MappingStanding standing{Score(objective, measures, present)};
  if (objective.congestion == 0) return standing;
  standing.smooth = *measures.smooth_congestion;
  standing.hop_bytes = *measures.hop_bytes;
  return standing;
}

}  // namespace coppice
