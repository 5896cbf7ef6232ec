#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/dense/dense_search.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search/sparse/sparse_search.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

absl::StatusOr<Mapped> RunLocalSearch(const MappingProblem& problem, const Mapping& start,
                                      const MethodOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const SparsePointer sparse, MakeSparseProblem(problem, control));
  Seats seats = PlacesOf(start);
  double gained = 0;
  if (sparse->HasLargePlaces()) {
    gained += RefineOnAllLevels(*sparse, options.seed, nullptr, control, seats);
  }
  gained += SwapUntilLocalOptimum(*sparse, {options.seed, options.Count("near")}, control, seats);
  if (!(gained > 0)) return Mapped{start, "no swap or move near a partner helps"};
  Mapped mapped{MappingOf(seats), absl::StrFormat("gained %g", gained)};
  control.Offer(mapped.mapping);
  return mapped;
}

// Pair exchange as Wang et al. compare with it ("Optimization of process-to-core mapping based on
// clustering analysis", Chinese Journal of Computers 38(5), 2015, sections 4.4.3 and 5.1.3:
// pe-500k), after B. Brandfass, T. Alrutz and T. Gerhold, "Rank reordering for MPI communication
// optimization", Computers & Fluids 80, 2013.
//
//     slots   [ a ][ b ][ c ][ - ][ d ]         `iterations` times: a rank and a slot
//               \_____________/                 exchange them if that lessens
//                a for a free slot                  Z = sum of w(u,v) D(place u, place v)
//                    \______________/           and keep the order otherwise
//                     b for d
//
// Departures: positions are slots, free ones included, so that a job that does not fill its nodes
// moves ranks as well. Pairs in order go round until a whole round gains nothing; random pairs, as
// in Wang's figures, cannot know that and go on to the end. O(iterations * degree).

namespace {

constexpr uint64_t kAsked = 64;         // iterations between looks at the clock
constexpr uint64_t kOffered = 1 << 16;  // ... between offers of something better

template <class Cost>
class PairExchange final {
 public:
  PairExchange(const Cost& cost, const SparseProblem& problem, const Mapping& start)
      : cost_(cost), occupants_(problem.capacities, PlacesOf(start)) {
    for (uint32_t p = 0; p < problem.capacities.size(); ++p) {
      for (uint32_t i = 0; i < problem.capacities[p]; ++i) slots_.push_back({p, i});
    }
    least_ = kCostRounding * CostOf(cost, occupants_.seats());
  }

  Mapped Run(uint64_t iterations, bool in_order, uint64_t seed, const SearchControl& control) {
    Xoshiro random(seed);
    const auto ranks = static_cast<uint32_t>(occupants_.seats().size());
    const auto slots = static_cast<uint32_t>(slots_.size());
    const uint64_t round = uint64_t{ranks} * slots;
    uint64_t done = 0, since = 0, offered = 0;
    for (; done < iterations && since < round; ++done) {
      if (done % kAsked == 0 && control.stopped()) break;
      if (done % kOffered == kOffered - 1 && exchanged_ > offered) {
        control.Offer(MappingOf(occupants_.seats()));
        offered = exchanged_;
      }
      const auto u = in_order ? static_cast<uint32_t>(done / slots % ranks) : random.Below(ranks);
      const auto slot = in_order ? static_cast<uint32_t>(done % slots) : random.Below(slots);
      const bool gained = Try(u, slots_[slot]);
      since = in_order && !gained ? since + 1 : 0;
    }
    return {MappingOf(occupants_.seats()),
            absl::StrFormat("%d exchanges of %d tried; gained %g%s", exchanged_, done, gained_,
                            since == round ? "; no exchange of two gains more" : "")};
  }

 private:
  struct Slot {
    uint32_t place, number;  // number < the place's ranks: the rank there; else a free one
  };

  bool Try(uint32_t u, const Slot& slot) {
    const Seats& seats = occupants_.seats();
    if (seats[u] == slot.place) return false;
    const absl::Span<const uint32_t> there = occupants_.of(slot.place);
    const bool is_free = slot.number >= there.size();
    const double delta = is_free ? MoveDelta(cost_, seats, u, slot.place)
                                 : SwapDelta(cost_, seats, u, there[slot.number]);
    if (!(delta < -least_)) return false;
    if (is_free) {
      occupants_.Move(u, slot.place);
    } else {
      occupants_.Swap(u, there[slot.number]);
    }
    gained_ -= delta;
    ++exchanged_;
    return true;
  }

  const Cost cost_;
  Occupants occupants_;
  std::vector<Slot> slots_;
  double least_ = 0, gained_ = 0;
  uint64_t exchanged_ = 0;
};

}  // namespace

absl::StatusOr<Mapped> RunPairExchange(const MappingProblem& problem, const Mapping& start,
                                       const MethodOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const SparsePointer sparse, MakeSparseProblem(problem, control));
  const auto iterations = static_cast<uint64_t>(options.Of("iterations"));
  return VisitCost(*sparse->distances, sparse->graph, [&](const auto& cost) {
    return PairExchange(cost, *sparse, start)
        .Run(iterations, options.Is("in-order"), options.seed, control);
  });
}

absl::StatusOr<Mapped> RunRobustTabu(const MappingProblem& problem, const Mapping& start,
                                     const MethodOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  const auto steps = static_cast<uint64_t>(options.Or("steps", 2000.0 * qap.size()));
  const uint32_t searches = options.Count("searches");
  const DenseOrder first = qap.OrderOf(problem, start);
  DenseBest best(problem, control);
  std::vector<DenseSolution> found(searches, {first, qap.Cost(first)});
  RunLogicalWorkers(options.threads, searches, [&](uint32_t i) {
    if (i > 0 && control.stopped()) return;
    Xoshiro random(WorkerSeed(options.seed, 0, i));
    DenseTabu search(qap, i == 0 ? first : RandomDenseOrder(qap.size(), random), random());
    search.Run(steps, control, best);
    if (search.best().cost < found[i].cost) found[i] = search.best();
  });
  const auto winner = absl::c_min_element(found);
  return Mapped{DenseQap::MappingOf(problem, winner->order),
                absl::StrFormat("search %d of %d, %d steps each", winner - found.begin() + 1,
                                searches, steps)};
}

}  // namespace coppice
