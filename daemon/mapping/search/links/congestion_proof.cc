#include "daemon/mapping/search/links/congestion_proof.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "absl/strings/str_format.h"
#include "daemon/mapping/search/links/least_cut.h"

namespace coppice {
namespace {

constexpr uint32_t kMostRanks = 4096;         // a search looks at all of them for each node
constexpr size_t kMostKinds = 64;             // that a short search is made for
constexpr uint64_t kShortVisits = 1'000'000;  // ranks looked at by all short searches together
constexpr double kEqual = 1 - 1e-12;          // the same but for rounding

}  // namespace

CongestionProof::CongestionProof(const MappingProblem& problem)
    : problem_(problem),
      cuts_(problem.rank_count() > kMostRanks || problem.pattern->pair_count() == 0
                ? std::vector<PlaceCut>()
                : FindPlaceCuts(problem)) {
  std::map<std::tuple<uint32_t, uint32_t, double, double>, size_t> known;
  for (const PlaceCut& cut : cuts_) {
    const auto [at, added] = known.try_emplace(
        {cut.least_ranks, cut.most_ranks, cut.out_capacity, cut.in_capacity}, kinds_.size());
    if (added) kinds_.emplace_back();
    kinds_[at->second].cuts.push_back(&cut);
  }
}

CongestionBound CongestionProof::BoundOf(const Kind& kind, double enough, uint64_t& nodes,
                                         const SearchControl& control) const {
  const PlaceCut& cut = *kind.cuts[0];
  LeastCut search(*problem_.pattern, cut.least_ranks, cut.most_ranks, 1 / cut.out_capacity,
                  1 / cut.in_capacity);
  const double value = search.AtLeast(enough, nodes, control);
  const std::string ranks = cut.least_ranks == cut.most_ranks
                                ? absl::StrFormat("%d", cut.most_ranks)
                                : absl::StrFormat("%d to %d", cut.least_ranks, cut.most_ranks);
  return {value, absl::StrFormat("what any %s ranks %s exchange with the others over the %g Gb/s "
                                 "that join them",
                                 ranks, cut.name, std::min(cut.out_capacity, cut.in_capacity))};
}

CongestionBound CongestionProof::ShortBound() const {
  CongestionBound best;
  const size_t count = std::min(kinds_.size(), kMostKinds);
  for (size_t k = 0; k < count; ++k) {
    uint64_t nodes = kShortVisits / (count * problem_.rank_count());
    CongestionBound bound =
        BoundOf(kinds_[k], std::numeric_limits<double>::infinity(), nodes, SearchControl());
    if (bound.value > best.value) best = std::move(bound);
  }
  return best;
}

double CongestionProof::ValueOf(const PlaceCut& cut, const Mapping& mapping) const {
  double out = 0, in = 0;
  const auto inside = [&](uint32_t rank) {
    return std::binary_search(cut.places.begin(), cut.places.end(), mapping[rank].value());
  };
  for (uint32_t r = 0; r < mapping.size(); ++r) {
    if (!inside(r)) continue;
    for (const Exchange& e : problem_.pattern->exchanges(r)) {
      if (inside(e.peer)) continue;
      out += e.out_bytes;
      in += e.in_bytes;
    }
  }
  return std::max(out / cut.out_capacity, in / cut.in_capacity);
}

std::vector<const CongestionProof::Kind*> CongestionProof::Candidates(const Mapping& mapping,
                                                                      double congestion) const {
  std::vector<const Kind*> candidates;
  for (const Kind& kind : kinds_) {
    const bool full = std::all_of(kind.cuts.begin(), kind.cuts.end(), [&](const PlaceCut* cut) {
      return ValueOf(*cut, mapping) >= congestion * kEqual;
    });
    if (full) candidates.push_back(&kind);
  }
  return candidates;
}

CongestionBound CongestionProof::Prove(const Mapping& mapping, double congestion, uint64_t nodes,
                                       const SearchControl& control) const {
  CongestionBound best;
  const std::vector<const Kind*> candidates = Candidates(mapping, congestion);
  for (const Kind* kind : candidates) {
    uint64_t share = nodes / candidates.size();
    CongestionBound bound = BoundOf(*kind, congestion * kEqual, share, control);
    if (bound.value > best.value) best = std::move(bound);
    if (best.value >= congestion * kEqual || control.stopped()) break;
  }
  return best;
}

}  // namespace coppice
