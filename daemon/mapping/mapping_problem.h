// The question that every algorithm answers: this pattern, these places, these distances, this
// fabric, and what "better" means.
#ifndef COPPICE_DAEMON_MAPPING_MAPPING_PROBLEM_H_
#define COPPICE_DAEMON_MAPPING_MAPPING_PROBLEM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/mapping/pattern.h"
#include "daemon/mapping/places.h"

namespace coppice {

// How traffic is shared over links.
enum class TrafficModel : uint8_t {
  kRoutes,             // the snapshot's routes: forwarding tables, dimension order, one path a pair
  kEvenShortestPaths,  // all shortest paths in equal shares (Hoefler 2.5)
  kApproximate,        // the fast approximation (Hoefler algorithm 3)
};

// "routes", "even", "approximate".
absl::string_view ToString(TrafficModel model);

// What is minimised: the weighted sum of the measures, each divided by that of the present order
// (where that is 0, the measure counts as it is). Weights 0 or 1e-100 to 1e100, one above 0.
struct Objective {
  double congestion = 0;
  double hop_bytes = 0;  // and with it the average dilation: their ratio is the pattern's total
  double qap_cost = 0;

  bool needs_fabric() const { return congestion > 0 || hop_bytes > 0; }
  friend bool operator==(const Objective&, const Objective&) = default;
};

// Shared and immutable. `pattern`, `places` and `distances` are never null; `snapshot` is null
// where there is no fabric: then there is no congestion and hop_bytes are unknown.
struct MappingProblem {
  std::shared_ptr<const Pattern> pattern;
  std::shared_ptr<const Places> places;
  std::shared_ptr<const PlaceDistances> distances;  // over `places`
  std::shared_ptr<const Snapshot> snapshot;
  TrafficModel traffic = TrafficModel::kRoutes;
  bool use_load = false;  // measured load lowers the links' capacity (Hoefler 2.2)
  Objective objective;

  uint32_t rank_count() const { return pattern->rank_count(); }
  bool on_fabric() const { return snapshot != nullptr && places->has_endpoints(); }
  Mapping present() const { return places->PresentOrder(rank_count()); }
};

// INVALID_ARGUMENT: more ranks than slots (both numbers), distances over another number of places,
// bytes times distances beyond what a double holds (naming the greatest of both), an objective that
// weighs nothing, a weight out of range, or one that asks for links where there is no fabric.
absl::Status CheckProblem(const MappingProblem& problem);

// A mapping problem as plain lists, for those who search elsewhere by the QAP cost alone: what goes
// over the wire to other processes.
struct PlainProblem {
  // Distances of all pairs are listed: 128 MiB. As many as a dense search takes.
  static constexpr uint32_t kMaxSlots = 4096;

  uint32_t rank_count = 0;
  std::vector<Pattern::Entry> entries;  // of the pattern
  std::vector<uint32_t> place_of_slot;
  std::vector<double> distances;  // between places, row by row
};

// Without the fabric and what belongs to it. RESOURCE_EXHAUSTED, naming both numbers: more than
// kMaxSlots slots. O(pairs + places^2).
absl::StatusOr<PlainProblem> Flatten(const MappingProblem& problem);

// The same problem for every search by QAP cost, which is its objective. INVALID_ARGUMENT: as
// Pattern::Make, Places::OfSlots, PlaceDistances::Matrix and CheckProblem.
absl::StatusOr<MappingProblem> Unflatten(PlainProblem plain);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_MAPPING_PROBLEM_H_
