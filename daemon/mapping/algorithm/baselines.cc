#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/search/random.h"

namespace coppice {
namespace {

absl::StatusOr<Mapped> Identity(const MappingProblem&, const Mapping& start,
                                const AlgorithmOptions&, const SearchControl&) {
  return Mapped{start, ""};
}

absl::StatusOr<Mapped> Block(const MappingProblem& problem, const Mapping&, const AlgorithmOptions&,
                             const SearchControl&) {
  Mapped mapped;
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    const uint32_t room = problem.rank_count() - static_cast<uint32_t>(mapped.mapping.size());
    mapped.mapping.insert(mapped.mapping.end(),
                          std::min(room, problem.places->capacity(PlaceIndex(p))), PlaceIndex(p));
  }
  return mapped;
}

absl::StatusOr<Mapped> RoundRobin(const MappingProblem& problem, const Mapping&,
                                  const AlgorithmOptions&, const SearchControl&) {
  Mapped mapped;
  for (uint32_t round = 0; mapped.mapping.size() < problem.rank_count(); ++round) {
    for (uint32_t p = 0; p < problem.places->count(); ++p) {
      if (mapped.mapping.size() == problem.rank_count()) break;
      if (round < problem.places->capacity(PlaceIndex(p))) mapped.mapping.emplace_back(p);
    }
  }
  return mapped;
}

absl::StatusOr<Mapped> Random(const MappingProblem& problem, const Mapping&,
                              const AlgorithmOptions& options, const SearchControl&) {
  Mapping slots = problem.places->PresentOrder(problem.places->slot_count());
  Xoshiro random(options.seed);
  for (uint32_t i = static_cast<uint32_t>(slots.size()); i > 1; --i) {
    std::swap(slots[i - 1], slots[random.Below(i)]);
  }
  slots.resize(problem.rank_count());
  return Mapped{std::move(slots), ""};
}

}  // namespace

const MappingAlgorithm& IdentityAlgorithm() {
  static const auto* const entry =
      new MappingAlgorithm{"identity", "the order as it is", true, {}, Identity};
  return *entry;
}

const MappingAlgorithm& BlockAlgorithm() {
  static const auto* const entry =
      new MappingAlgorithm{"block", "ranks fill place after place", false, {}, Block};
  return *entry;
}

const MappingAlgorithm& RoundRobinAlgorithm() {
  static const auto* const entry =
      new MappingAlgorithm{"round-robin", "one rank a place in turn", false, {}, RoundRobin};
  return *entry;
}

const MappingAlgorithm& RandomAlgorithm() {
  static const auto* const entry =
      new MappingAlgorithm{"random", "the places shuffled by the seed", false, {}, Random};
  return *entry;
}

}  // namespace coppice
