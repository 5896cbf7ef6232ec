// Where the ranks of a job may sit: its places, which are allocated nodes (or cores of a made-up
// hierarchy, or locations of a QAP instance), how many ranks each takes, and the slots of the
// present allocation in rank order; and how far places are from each other.
//
//     slots    0   1   2   3   4   5        (rank r sits in slot r today)
//     place    A   A   B   B   A   A        A: node17, 4 ranks   B: node18, 2 ranks
#ifndef COPPICE_DAEMON_MAPPING_PLACES_H_
#define COPPICE_DAEMON_MAPPING_PLACES_H_

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/routes.h"
#include "proto/text/limits.h"

namespace coppice {

using PlaceIndex = StrongId<struct PlaceIndexTag, uint32_t>;

// A place for every rank: [rank].
using Mapping = std::vector<PlaceIndex>;

// Immutable; thread-safe.
class Places final {
 public:
  static constexpr uint32_t kMaxSlots = kMaxJobRanks;

  // `slot_endpoints` in rank order of the present allocation, `ranks_per_endpoint` slots for each;
  // one that is named twice is one place with twice the slots. Places are numbered by their first
  // slot. INVALID_ARGUMENT: none, 0 ranks each, more than kMaxSlots, an endpoint that is not the
  // fabric's.
  static absl::StatusOr<std::shared_ptr<const Places>> OfEndpoints(
      const Fabric& fabric, absl::Span<const EndpointIndex> slot_endpoints,
      uint32_t ranks_per_endpoint);

  // `count` places without a fabric, `capacity` slots each, place by place. INVALID_ARGUMENT: none,
  // or more than kMaxSlots slots.
  static absl::StatusOr<std::shared_ptr<const Places>> Numbered(uint32_t count, uint32_t capacity);

  // Places without a fabric, by the place of every slot: numbered from 0 by their first slot, as
  // OfEndpoints numbers them. INVALID_ARGUMENT: no slots, more than kMaxSlots, or another
  // numbering.
  static absl::StatusOr<std::shared_ptr<const Places>> OfSlots(
      absl::Span<const uint32_t> place_of_slot);

  uint32_t count() const { return static_cast<uint32_t>(slots_begin_.size() - 1); }
  uint32_t slot_count() const { return static_cast<uint32_t>(place_of_slot_.size()); }
  uint32_t capacity(PlaceIndex p) const {
    return slots_begin_[p.value() + 1] - slots_begin_[p.value()];
  }
  // The slots of a place, ascending.
  absl::Span<const uint32_t> slots(PlaceIndex p) const {
    return absl::MakeConstSpan(slots_).subspan(slots_begin_[p.value()], capacity(p));
  }
  PlaceIndex place_of_slot(uint32_t slot) const { return place_of_slot_[slot]; }

  // Only for places of a fabric.
  bool has_endpoints() const { return !endpoints_.empty(); }
  EndpointIndex endpoint(PlaceIndex p) const { return endpoints_[p.value()]; }

  // Ranks 0..rank_count-1 in the slots of the same numbers; rank_count <= slot_count().
  Mapping PresentOrder(uint32_t rank_count) const;

 private:
  Places() = default;
  void IndexSlots(uint32_t place_count);

  std::vector<PlaceIndex> place_of_slot_;
  std::vector<uint32_t> slots_begin_;  // [count + 1] into slots_
  std::vector<uint32_t> slots_;
  std::vector<EndpointIndex> endpoints_;  // [count], or empty
};

// The slot of every rank under `mapping`: a rank whose slot of today is on its place keeps it, the
// others take the free slots of their places, both ascending. `mapping` must be admissible
// (mapping_metrics.h). O(slots).
std::vector<uint32_t> AssignSlots(const Places& places, const Mapping& mapping);

// How far places are from each other, D of the QAP cost (Wang 2015, eq. 1), in three forms:
//
//   levels     D depends on the smallest group that holds both places: core, node, switch, pod
//   classes    endpoints of one leaf switch are equally far from all others: a table of switches
//   matrix     given or measured, any values, asymmetric if you like
//
// Each of the three is called with place numbers: d(a, b) = D(a, b).

struct LevelDistances {
  // [place] the groups that hold a place from the widest to the place itself, as fields of bits:
  // two places are in one group at a level iff the bits from there up are equal.
  std::vector<uint64_t> codes;
  std::array<double, 65> by_width{};  // [bit width of codes[a] ^ codes[b]]; [0] is one place

  double operator()(uint32_t a, uint32_t b) const {
    return by_width[std::bit_width(codes[a] ^ codes[b])];
  }
};

struct ClassDistances {
  std::vector<uint32_t> bundles;       // [place] places of one bundle are at distance 0
  std::vector<uint32_t> from_classes;  // [place] row
  std::vector<uint32_t> to_classes;    // [place] column
  uint32_t columns = 0;
  std::vector<uint8_t> links;  // [row][column], between places of different bundles

  double operator()(uint32_t a, uint32_t b) const {
    return bundles[a] == bundles[b]
               ? 0.0
               : links[static_cast<size_t>(from_classes[a]) * columns + to_classes[b]];
  }
};

struct MatrixDistances {
  uint32_t count = 0;
  std::vector<double> values;  // [from][to]

  double operator()(uint32_t a, uint32_t b) const {
    return values[static_cast<size_t>(a) * count + b];
  }
};

using DistancesPointer = std::shared_ptr<const class PlaceDistances>;

// Immutable; thread-safe.
class PlaceDistances final {
 public:
  using Form = std::variant<LevelDistances, ClassDistances, MatrixDistances>;
  static constexpr uint32_t kMaxMatrixPlaces = 1 << 14;  // 2 GiB of doubles
  static constexpr size_t kMaxTableBytes = size_t{1} << 30;

  // A uniform hierarchy, from the innermost level: extents {4, 8, 6} and distances {1, 10, 100} are
  // 4 places a node 1 apart, 8 nodes a switch 10 apart, 6 switches 100 apart; 0 within a place.
  // INVALID_ARGUMENT, naming the level: no levels, other numbers of both, an extent of 0, more than
  // Places::kMaxSlots places, a distance that is negative, NaN or infinite.
  static absl::StatusOr<DistancesPointer> Uniform(absl::Span<const uint32_t> extents,
                                                  absl::Span<const double> distances);

  // Links on a shortest path between the places' endpoints; 0 in one bundle (Fabric::bundle).
  // FAILED_PRECONDITION, naming two endpoints: no path. RESOURCE_EXHAUSTED: more than
  // kMaxTableBytes. Memory: leaf switches squared bytes.
  static absl::StatusOr<DistancesPointer> Hops(const Places& places,
                                               const SwitchDistances& distances);

  // Links on the route between the places' endpoints; may be asymmetric. Errors as Hops and
  // Routes::Length. Memory: leaf switches times places bytes, or squared where the routes to all
  // places of a leaf switch are equally long; time: places times switches.
  static absl::StatusOr<DistancesPointer> RouteLengths(const Places& places, const Routes& routes);

  // [from][to], row by row. INVALID_ARGUMENT, naming row and column (from 1): not square, a value
  // that is negative, NaN or infinite; or more than kMaxMatrixPlaces.
  static absl::StatusOr<DistancesPointer> Matrix(uint32_t count, std::vector<double> values);

  uint32_t count() const { return count_; }
  // D(a, b) = D(b, a) for all places.
  bool symmetric() const { return symmetric_; }
  // Every distance is a whole number.
  bool whole() const { return whole_; }
  double greatest() const { return greatest_; }

  double operator()(PlaceIndex a, PlaceIndex b) const {
    return std::visit([&](const auto& d) { return d(a.value(), b.value()); }, form_);
  }
  // For loops that must not ask at every step which form it is:
  //   std::visit([&](const auto& d) { ... d(a, b) ... }, distances.form());
  const Form& form() const { return form_; }

 private:
  PlaceDistances(Form form, uint32_t count, bool symmetric, bool whole, double greatest)
      : form_(std::move(form)),
        count_(count),
        symmetric_(symmetric),
        whole_(whole),
        greatest_(greatest) {}

  const Form form_;
  const uint32_t count_;
  const bool symmetric_, whole_;
  const double greatest_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_PLACES_H_
