// The measures of a mapping, whoever made it (Hoefler 2011, 2.1-2.2, eq. 1-5; Wang 2015, eq. 1-3):
// counted from the pattern, the distances and the routes alone.
#ifndef COPPICE_DAEMON_MAPPING_MAPPING_METRICS_H_
#define COPPICE_DAEMON_MAPPING_MAPPING_METRICS_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/places.h"

namespace coppice {

struct MappingMeasures {
  // Only with a fabric. Bytes over a channel divided by its capacity in Gb/s (a link of unknown
  // capacity counts as the fabric's least known one, or as 1 where none is known), the most of all
  // channels; channels of endpoints included.
  std::optional<double> max_congestion;
  // (sum over channels of congestion^16)^(1/16): tells orders apart whose fullest channels are
  // alike.
  std::optional<double> smooth_congestion;
  std::optional<double> average_dilation;    // hop_bytes / bytes between different ranks; 0 without
  std::optional<uint32_t> max_dilation;      // links of the longest route that is used
  std::optional<double> hop_bytes;           // sum of bytes * links
  std::optional<double> inter_switch_bytes;  // between endpoints of different leaf switches

  double qap_cost = 0;          // sum over ordered pairs of w(u,v) * D(place u, place v)
  double inter_node_bytes = 0;  // between different hosts; without a fabric, different places
};

// `mapping` must be admissible. NOT_FOUND: a pair that communicates has no route (routes.h).
// Congestion and links follow problem.traffic: with kEvenShortestPaths and kApproximate, lengths
// are those of shortest paths. O(pairs * length), for even shares times the width of the paths.
absl::StatusOr<MappingMeasures> Measure(const MappingProblem& problem,
                                        absl::Span<const PlaceIndex> mapping);

// The QAP cost alone. O(pairs).
double QapCost(const Pattern& pattern, const PlaceDistances& distances,
               absl::Span<const PlaceIndex> mapping);

// What of the QAP cost is between different clusters of ranks: the aggregated QAP cost (Wang 2015,
// eq. 2-3, summed over unordered pairs of different clusters, so that every pair of ranks counts
// once, as in eq. 1). cluster_of_rank: [rank], any labels. O(pairs).
double AggregatedQapCost(const Pattern& pattern, const PlaceDistances& distances,
                         absl::Span<const PlaceIndex> mapping,
                         absl::Span<const uint32_t> cluster_of_rank);

// The objective's value: 1 for the present order, whose measures `present` are; lower is better.
double Score(const Objective& objective, const MappingMeasures& measures,
             const MappingMeasures& present);

// The independent verifier of every mapping. INTERNAL, naming rank or place: not one place for each
// of `rank_count` ranks, a place that does not exist, one with more ranks than its capacity.
// O(ranks + places).
absl::Status CheckMapping(const Places& places, uint32_t rank_count,
                          absl::Span<const PlaceIndex> mapping);

// INTERNAL, naming rank or slot: a slot that does not exist or holds two ranks. O(slots).
absl::Status CheckSlots(const Places& places, absl::Span<const uint32_t> slot_of_rank);

// Which of two mappings is the better one, and which of two that the objective does not tell apart.
//
//     score              by the objective
//       equal: smooth    what is nearly as full as the fullest channel
//         equal: hop_bytes
//
// On networks of full bisection the fullest channel is a rank's own port in nearly every order: of
// these one may move twice the bytes between switches that another does. Simulated programs
// (tests/smpi) take as long as their fullest channels do, hence the smooth congestion before the
// hop-bytes.
struct MappingStanding {
  double score = std::numeric_limits<double>::infinity();  // infinite: there is none
  // Where congestion is in the objective, else 0.
  double smooth = 0;     // the smooth congestion
  double hop_bytes = 0;  // sum of bytes * links

  // Scores that differ by the rounding of sums alone are equal, and so is smooth congestion within
  // a thousandth: who compares one after the other keeps the least of equals beside the best.
  bool IsBetterThan(const MappingStanding& other) const;
  bool HasScoreOf(const MappingStanding& other) const;
  bool HasLessSmooth(const MappingStanding& other) const;
  bool HasFewerHopBytes(const MappingStanding& other) const;

  friend bool operator==(const MappingStanding&, const MappingStanding&) = default;
};

// `present` are the measures of the present order.
MappingStanding StandingOf(const Objective& objective, const MappingMeasures& measures,
                           const MappingMeasures& present);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_MAPPING_METRICS_H_
