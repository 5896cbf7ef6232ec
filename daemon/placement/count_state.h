// How many hosts each open leaf switch gives, and what these counts cost, kept up to date while
// hosts move from one leaf switch to another. What depends on which hosts of a leaf switch are
// taken (routes: shared links and load) is known here as a mean a leaf switch only.
//
// With H(l) = the distances from a host of leaf switch l to all chosen hosts (itself counted as one
// of its leaf switch) and w its hops_within, total distance T changes by
//     q hosts leave l   T -= q (H(l) - w) - q (q - 1) / 2 w
//     q hosts come to l T += q H(l)       + q (q - 1) / 2 w
// H is kept by class of leaf switch, so that a move costs the number of classes in the field and
// the price of one nothing but two look-ups.
#ifndef COPPICE_DAEMON_PLACEMENT_COUNT_STATE_H_
#define COPPICE_DAEMON_PLACEMENT_COUNT_STATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "daemon/placement/placement_constraints.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placement_search.h"

namespace coppice {

// What leaf switches cost by their counts: every term that is a sum over them, not weighed yet, so
// that what is a number stays whole while counts come and go.
struct LeafSums {
  static LeafSums Of(const OpenLeaf& leaf, uint32_t count, double penalty) {
    if (count == 0) return {};
    return {1, (leaf.free > count ? 1 : 0) - (leaf.held > 0 && leaf.free > 0 ? 1 : 0), penalty};
  }
  LeafSums& operator+=(const LeafSums& other) {
    leaves += other.leaves, broken += other.broken, penalty += other.penalty;
    return *this;
  }
  LeafSums& operator-=(const LeafSums& other) {
    leaves -= other.leaves, broken -= other.broken, penalty -= other.penalty;
    return *this;
  }
  double Cost(const PlacementObjective& objective) const {
    return objective.leaf_switches * leaves + objective.fragmentation * broken + penalty;
  }

  int32_t leaves = 0;
  int32_t broken = 0;  // with free hosts left, less those broken before
  double penalty = 0;  // of using them at all
};

// The leaf switches that a search looks at, with all that it asks of them again and again.
struct LeafField {
  enum class Distances : uint8_t { kAll, kNone };  // none: for FillLeaves alone

  // `penalty` is by position in open.leaves, or empty: none. Without distances there are no ties.
  LeafField(const PlacementIndex& index, const OpenHosts& open, const PlacementRequest& request,
            absl::Span<const double> penalty, std::vector<uint32_t> positions,
            Distances distances = Distances::kAll);

  uint32_t size() const { return static_cast<uint32_t>(positions.size()); }
  const OpenLeaf& leaf(uint32_t i) const { return open.leaves[positions[i]]; }
  double hops(uint32_t i, uint32_t j) const {
    return i == j ? within[i] : matrix[size_t{class_of[i]} * class_count + class_of[j]];
  }
  // From 1 to the most its cost is concave in the count, which FillLeaves needs, and like for leaf
  // switches that are alike in open, free and held hosts and in penalty (FillLeaves, exact_search).
  // A term that may be below 0 is in the bound of exact_search, too.
  LeafSums SumsOf(uint32_t i, uint32_t count) const {
    return LeafSums::Of(leaf(i), count, penalty[i]);
  }
  // Decides between counts that cost the same: those that leave free hosts together; below
  // kMaxTie in all. Taking x of f free hosts lessens the sum of f^2 by x (2 f - x).
  double Tie(uint32_t i, uint32_t count) const {
    return tie_weight * count * (2.0 * leaf(i).free - count);
  }

  const OpenHosts& open;
  const PlacementConstraints& constraints;
  const PlacementObjective& objective;
  std::vector<uint32_t> positions;  // in open.leaves, ascending
  std::vector<uint32_t> pod_of;     // [i] numbered from 0 within the field
  uint32_t pod_count = 0;
  std::vector<uint32_t> class_of;  // [i] numbered from 0 within the field
  uint32_t class_count = 0;
  std::vector<float> matrix;       // [class][class] hops between hosts of different leaf switches
  std::vector<float> within;       // [i]
  std::vector<double> penalty;     // [i] of using the leaf switch at all
  std::vector<uint32_t> pod_free;  // [pod] free hosts in the field
  double pair_weight = 0;          // of a hop between one pair of hosts
  double tie_weight = 0;
  static constexpr double kMaxTie = 1e-5;
};

class CountState {
 public:
  explicit CountState(const LeafField& field);

  // Begins anew with these counts, whose positions are the field's.
  void Assign(const LeafCounts& counts);
  LeafCounts Counts() const;

  uint32_t count(uint32_t i) const { return count_[i]; }
  uint32_t leaves() const { return static_cast<uint32_t>(sums_.leaves); }
  uint32_t pods() const { return pods_; }
  // Fields' indices in use, in no order.
  absl::Span<const uint32_t> used() const { return used_; }
  double cost() const;
  // Of leaf switches and, likewise, of pods.
  double tie() const;

  // What cost() and the leaf switches' tie would change by if q <= count(a) hosts moved from a to
  // b != a.
  double MoveDelta(uint32_t a, uint32_t b, uint32_t q) const;
  void Move(uint32_t a, uint32_t b, uint32_t q);
  // q hosts more or, below 0, fewer on leaf switch i.
  void Change(uint32_t i, int32_t q);

  // Whether constraints on numbers of leaf switches and pods hold after the move, and counts may be
  // so.
  bool MayMove(uint32_t a, uint32_t b, uint32_t q) const;
  // Whether hosts of leaf switch i's pod are chosen.
  bool HasPod(uint32_t i) const { return pod_leaves_[field_.pod_of[i]] > 0; }
  // Distance of a host on leaf switch i to all chosen ones.
  double Reach(uint32_t i) const {
    return to_class_[field_.class_of[i]] - count_[i] * (Diagonal(i) - field_.within[i]);
  }

 private:
  double Diagonal(uint32_t i) const {
    const size_t c = field_.class_of[i];
    return field_.matrix[c * field_.class_count + c];
  }
  bool IsCount(uint32_t i, uint32_t count) const;

  const LeafField& field_;
  std::vector<uint32_t> count_;  // [i]
  std::vector<uint32_t> used_;
  std::vector<uint32_t> used_at_;     // [i] in used_
  std::vector<uint32_t> pod_leaves_;  // [pod] leaf switches in use
  std::vector<uint32_t> pod_hosts_;   // [pod] chosen
  std::vector<double> to_class_;      // [class] distances from it to all chosen hosts
  uint32_t pods_ = 0;
  double distance_ = 0;
  LeafSums sums_;
};

// Moves hosts from leaf switch to leaf switch until no move makes `state`, which meets the
// constraints, cheaper, or `patience` moves have been priced, which is counted down. Deterministic.
void ImproveCounts(const LeafField& field, CountState& state, uint64_t& patience);

// Spreads hosts over further leaf switches and pods until there are as many as asked for, at the
// least rise of the cost. False: `state` cannot be made to meet the constraints so. Not for
// hosts_per_leaf, whose counts must be right.
bool MendCounts(const LeafField& field, CountState& state);

// What links between the chosen hosts and the other open hosts of the field weigh together: for
// each such pair 1 / hops^2.
double CutOf(const LeafField& field, const CountState& state);

// GraphHunter's first stage: exchanges hosts, from counts that meet the constraints, until no
// exchange makes the cut less or `patience` exchanges have been priced, which is counted down.
// Deterministic.
void ImproveCut(const LeafField& field, CountState& state, uint64_t& patience);

// Where the search for counts begins (placement_starts.cc): regions of the fabric in which an
// answer may lie, and counts within them.

// Positions in OpenHosts::leaves, ascending; all within one scope, with room for all hosts.
using Region = std::vector<uint32_t>;

// Pods that are large enough, and the fullest unions of pods: the ones that promise the fewest leaf
// switches first, the smallest of them first. At most `most` of each kind. O(leaf switches log).
std::vector<Region> PodRegions(const PlacementQuestion& question, const OpenScope& scope,
                               uint32_t most);

// What is nearest to a leaf switch: rings of leaf switches around it, pod by pod, those with most
// room first, until there is room for all hosts and half as many again.
struct Ball {
  Region region;
  LeafCounts counts;   // nearest first until all hosts are placed; may break least numbers
  double promise = 0;  // roughly its cost, for choosing among balls
};

// Around up to `most` leaf switches, spread evenly, or around the first to be included; the most
// promising `kept` of them, best first. O(most * leaf switches).
std::vector<Ball> Balls(const PlacementQuestion& question, const OpenScope& scope, uint32_t most,
                        uint32_t kept);

struct LeafFill {
  LeafCounts counts;
  double cost = 0;  // of leaf switches, fragmentation, penalties and distance, pods left out
};

// The counts of `hosts` on leaf switches of the field with the least cost if hosts of different
// leaf switches are `hops` apart, whatever the field's distances are; counts of leaf switches,
// pods and hosts_per_leaf are not heeded. nullopt: too little room, or more than kMaxFillHosts.
// O(hosts * kinds of leaf switches * (log + most hosts of one)).
inline constexpr uint32_t kMaxFillHosts = 4096;
std::optional<LeafFill> FillLeaves(const LeafField& field, uint32_t hosts, double hops);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_COUNT_STATE_H_
