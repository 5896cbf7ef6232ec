#include "daemon/mapping/algorithm/auto_exhaustive.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/sparse/sparse_cost.h"

namespace coppice {
namespace {

// Branches looked at: a cost is some tens of nanoseconds, measures of a fabric are microseconds and
// more, by its channels.
constexpr uint64_t kCostBranches = 20'000'000;
constexpr uint64_t kMeasuredBranches = 1'000'000;
constexpr uint64_t kMeasuredChannels = 400'000'000;

std::vector<uint32_t> HeaviestFirst(const WeightedGraph& links) {
  std::vector<double> weight(links.vertex_count(), 0);
  for (uint32_t u = 0; u < links.vertex_count(); ++u) {
    for (size_t e = links.begin[u]; e < links.begin[u + 1]; ++e) weight[u] += links.weights[e];
  }
  std::vector<uint32_t> order(weight.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return weight[a] > weight[b]; });
  return order;
}

// The walk; Bound is what knows the objective of the ranks that are placed:
//   StatusOr<double> Add(depth, seats)   with order[0..depth] placed
template <class Bound>
class Walk final {
 public:
  Walk(const SparseProblem& sparse, const std::vector<uint32_t>& order, uint64_t branches,
       const SearchControl& control, Bound& bound)
      : order_(order),
        branches_(branches),
        control_(control),
        bound_(bound),
        room_(sparse.capacities),
        seats_(order.size(), 0) {}

  // Seats of a mapping below `least`, the best of all if complete(); empty if there is none.
  absl::StatusOr<Seats> Run(double least) {
    least_ = least;
    RETURN_IF_ERROR(Place(0));
    return best_;
  }
  bool complete() const { return branches_ > 0; }

 private:
  absl::Status Place(size_t depth) {
    if (depth == order_.size()) {
      best_ = seats_;
      least_ = value_;
      return absl::OkStatus();
    }
    for (uint32_t p = 0; p < room_.size(); ++p) {
      if (room_[p] == 0) continue;
      if (branches_ > 0 && ((branches_ & 63) != 0 || !control_.stopped())) {
        --branches_;
      } else {
        branches_ = 0;
        return absl::OkStatus();
      }
      seats_[order_[depth]] = p;
      ASSIGN_OR_RETURN(const double value, bound_.Add(depth, seats_));
      if (value >= least_ * (1 - 1e-12)) continue;
      --room_[p];
      value_ = value;
      RETURN_IF_ERROR(Place(depth + 1));
      ++room_[p];
    }
    return absl::OkStatus();
  }

  const std::vector<uint32_t>& order_;
  uint64_t branches_;
  const SearchControl& control_;
  Bound& bound_;
  std::vector<uint32_t> room_;  // [place]
  Seats seats_, best_;
  double value_ = 0, least_ = 0;
};

// The cost alone: that of the prefix before, and the links of the rank that is new.
template <class Cost>
class CostBound final {
 public:
  CostBound(const Cost& cost, const std::vector<uint32_t>& order)
      : cost_(cost), depth_of_(order.size()), sums_(order.size() + 1, 0), order_(order) {
    for (uint32_t d = 0; d < order.size(); ++d) depth_of_[order[d]] = d;
  }
  absl::StatusOr<double> Add(size_t depth, const Seats& seats) {
    const WeightedGraph& links = cost_.graph.links;
    const uint32_t u = order_[depth];
    double sum = sums_[depth];
    if (!cost_.graph.self.empty()) sum += cost_.graph.self[u] * cost_.d(seats[u], seats[u]);
    for (size_t e = links.begin[u]; e < links.begin[u + 1]; ++e) {
      const uint32_t v = links.neighbours[e];
      if (depth_of_[v] < depth) sum += cost_.Of(cost_.WeightOf(e), seats[u], seats[v]);
    }
    return sums_[depth + 1] = sum;
  }

 private:
  const Cost cost_;
  std::vector<size_t> depth_of_;  // [rank]
  std::vector<double> sums_;      // [ranks placed]
  const std::vector<uint32_t>& order_;
};

// Any objective: the measures of the pattern of the ranks placed so far, all others silent.
class MeasuredBound final {
 public:
  static absl::StatusOr<MeasuredBound> Make(const MappingProblem& problem,
                                            const std::vector<uint32_t>& order) {
    MeasuredBound made;
    const Pattern& pattern = *problem.pattern;
    std::vector<bool> placed(order.size(), false);
    for (const uint32_t rank : order) {
      placed[rank] = true;
      std::vector<Pattern::Entry> entries;
      for (uint32_t u = 0; u < order.size(); ++u) {
        if (!placed[u]) continue;
        entries.push_back({u, u, pattern.self_bytes(u), 0});
        for (const Exchange& x : pattern.exchanges(u)) {
          if (placed[x.peer]) entries.push_back({u, x.peer, x.out_bytes, 0});
        }
      }
      made.prefixes_.push_back(problem);
      ASSIGN_OR_RETURN(made.prefixes_.back().pattern,
                       Pattern::Make(pattern.rank_count(), std::move(entries)));
    }
    ASSIGN_OR_RETURN(made.present_, Measure(problem, problem.present()));
    return made;
  }
  absl::StatusOr<double> Add(size_t depth, const Seats& seats) {
    ASSIGN_OR_RETURN(MappingMeasures measures, Measure(prefixes_[depth], MappingOf(seats)));
    if (prefixes_[depth].traffic == TrafficModel::kApproximate && depth + 1 < prefixes_.size()) {
      measures.max_congestion = 0;
    }
    return Score(prefixes_[depth].objective, measures, present_);
  }

 private:
  std::vector<MappingProblem> prefixes_;  // [depth]
  MappingMeasures present_;
};

template <class Bound>
absl::StatusOr<bool> Search(const SparseProblem& sparse, const std::vector<uint32_t>& order,
                            uint64_t branches, double least, const SearchControl& control,
                            Bound& bound, Incumbent& incumbent) {
  Walk<Bound> walk(sparse, order, branches, control, bound);
  ASSIGN_OR_RETURN(const Seats best, walk.Run(least));
  if (!best.empty()) {
    ASSIGN_OR_RETURN(const ScoredMapping scored, incumbent.ScoreOf(MappingOf(best)));
    incumbent.Merge("all mappings", scored);
  }
  return walk.complete();
}

}  // namespace

absl::StatusOr<bool> TryAllMappings(const MappingProblem& problem, const SparseProblem& sparse,
                                    const SearchControl& control, Incumbent& incumbent) {
  const std::vector<uint32_t> order = HeaviestFirst(sparse.graph.links);
  if (!sparse.is_objective) {
    ASSIGN_OR_RETURN(MeasuredBound bound, MeasuredBound::Make(problem, order));
    const uint64_t channels = 1 + (problem.places->has_endpoints() && problem.snapshot != nullptr
                                       ? problem.snapshot->fabric->channel_count()
                                       : 0);
    return Search(sparse, order, std::min(kMeasuredBranches, kMeasuredChannels / channels),
                  incumbent.score(), control, bound, incumbent);
  }
  return VisitCost(*sparse.distances, sparse.graph, [&](const auto& cost) -> absl::StatusOr<bool> {
    CostBound bound(cost, order);
    const double least = CostOf(cost, PlacesOf(incumbent.best()));
    return Search(sparse, order, kCostBranches, least, control, bound, incumbent);
  });
}

}  // namespace coppice
