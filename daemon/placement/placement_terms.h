// What a placement costs: the one place where the terms are named, defined and weighed. What reads,
// prints, keeps or sends weights and measures iterates over kPlacementTerms. Knows no fabric: the
// store keeps the measures.
//
//   cost = sum of weight * measure, over the terms, some of which need more words than their help:
//     distance        0 for one host
//     shared_links    in a direction in which routes of other holders use them, too (JobChannels)
//     load            of the channels between switches on its routes
//     entries         its leaf switches, and one switch nearest to all of them (the one with the
//                     most left) where there are several
//     traffic         max congestion times hosts times the fabric's least capacity, over the
//                     pattern's bytes: 1 if the fullest link carries no more than a host's mean
//                     share at that capacity
//
// Default weights. A leaf switch is the unit. The pods decide before leaf switches do: what leaves
// a pod passes two more switches and links that all share, and the few leaf switches that fewer
// pods cost more do not outweigh it (4). Distance tells sets apart that are alike in both, and is
// all that counts on fabrics without pods: a hop in the mean is worth a leaf switch (1). A switch
// without entries costs the job its trees (2). Breaking a leaf switch up costs later jobs little:
// in the replay of tests/benchmark 0.5 makes jobs fill up what is left here and there, which costs
// more leaf switches than it saves, 0.1 does not. Full load on all links is as bad as two leaf
// switches more (2); a shared link matters by its number, 50 of them as one leaf switch (0.02).
// Traffic is a ratio of 1 to some tens and what a run takes (2).
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_TERMS_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_TERMS_H_

#include <array>
#include <cstdint>
#include <variant>

#include "absl/status/status.h"

namespace coppice {

// Weights >= 0 of the terms. All 0: the default ones.
struct PlacementObjective {
  double leaf_switches = 0, pods = 0, distance = 0, shared_links = 0, load = 0, entries = 0,
         fragmentation = 0, traffic = 0;
  friend bool operator==(const PlacementObjective&, const PlacementObjective&) = default;
};

// Every measure of a set of hosts, as proto/coppice/v1/placements.proto defines them.
struct PlacementMeasures {
  uint32_t leaf_switches = 0, least_leaf_switches = 0, pods = 0;
  double total_distance = 0, mean_distance = 0;
  uint32_t shared_links = 0;
  double mean_load = 0, most_load = 0;
  uint32_t switches_without_entries = 0;
  int32_t fragmentation = 0;
  double max_congestion = 0, traffic = 0;  // 0 without a pattern
  double cost = 0;
  friend bool operator==(const PlacementMeasures&, const PlacementMeasures&) = default;
};

struct PlacementMeasure {
  const char* name;  // in the .proto and in records
  std::variant<uint32_t PlacementMeasures::*, int32_t PlacementMeasures::*,
               double PlacementMeasures::*>
      member;
  double Of(const PlacementMeasures& measures) const {
    return std::visit([&](auto m) { return static_cast<double>(measures.*m); }, member);
  }
};

struct PlacementTerm {
  const char* name;  // in the .proto, the configuration and --weights
  double PlacementObjective::*weight;
  double preset;  // its weight by default
  PlacementMeasure measure;
  const char* help;
};
// Requests are known by all weights in this order: after a new term a retry of one from before is
// a request of its own.
inline constexpr auto kPlacementTerms = [] {
  using W = PlacementObjective;
  using M = PlacementMeasures;
  return std::to_array<PlacementTerm>({
      {"leaf_switches", &W::leaf_switches, 1, "leaf_switches", &M::leaf_switches,
       "leaf switches used"},
      {"pods", &W::pods, 4, "pods", &M::pods, "pods used"},
      {"distance", &W::distance, 1, "mean_distance", &M::mean_distance,
       "links on a shortest path, mean over all pairs of nodes"},
      {"shared_links", &W::shared_links, 0.02, "shared_links", &M::shared_links,
       "links between switches that routes of others use, too"},
      {"load", &W::load, 2, "mean_load", &M::mean_load,
       "mean utilisation, 0 to 1, of the links on its routes"},
      {"entries", &W::entries, 2, "switches_without_entries", &M::switches_without_entries,
       "switches with fewer entries left than its trees need"},
      {"fragmentation", &W::fragmentation, 0.1, "fragmentation", &M::fragmentation,
       "leaf switches used in part, more than before"},
      {"traffic", &W::traffic, 2, "traffic", &M::traffic,
       "with a pattern: bytes on the fullest link over a node's mean"},
  });
}();

// What is measured beside the terms.
inline constexpr auto kOtherMeasures = std::to_array<PlacementMeasure>({
    {"least_leaf_switches", &PlacementMeasures::least_leaf_switches},
    {"total_distance", &PlacementMeasures::total_distance},
    {"most_load", &PlacementMeasures::most_load},
    {"max_congestion", &PlacementMeasures::max_congestion},
    {"cost", &PlacementMeasures::cost},
});

// Calls visit(PlacementMeasure) for every measure.
template <class Visit>
void ForEachMeasure(Visit visit) {
  for (const PlacementTerm& term : kPlacementTerms) visit(term.measure);
  for (const PlacementMeasure& measure : kOtherMeasures) visit(measure);
}

// Costs that differ by less than this part of them are equal: sums of the same numbers in another
// order.
inline constexpr double kEqualCost = 1e-9;
// A change that gains less is not made: it would go round in circles.
inline constexpr double kWorthwhileGain = 1e-9;

// What all weights 0 stands for.
PlacementObjective DefaultObjective();

// INVALID_ARGUMENT: a weight that is negative, NaN or infinite (names it).
absl::Status CheckObjective(const PlacementObjective& objective);

double Cost(const PlacementObjective& objective, const PlacementMeasures& measures);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_TERMS_H_
