#include "daemon/mapping/mapping_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "proto/text/names.h"

namespace coppice {
namespace {

// Bytes times distance, all of them together, must stay below: searches add up differences of
// costs by the million and square them.
const double kMaxCost = std::sqrt(std::numeric_limits<double>::max()) / 0x1p20;
// Of the objective: so that weights times measures, and their sums, neither overflow nor vanish.
constexpr double kMinWeight = 1e-100, kMaxWeight = 1e100;
constexpr double kMaxRoute = 255;  // as ClassDistances counts links

std::string HeaviestPair(const Pattern& pattern) {
  uint32_t from = 0, to = 0;
  double most = 0;
  const auto take = [&](uint32_t u, uint32_t v, double bytes) {
    if (bytes <= most) return;
    most = bytes;
    from = u;
    to = v;
  };
  for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) {
    take(rank, rank, pattern.self_bytes(rank));
    for (const Exchange& e : pattern.exchanges(rank)) take(rank, e.peer, e.out_bytes);
  }
  return absl::StrFormat("%g from rank %d to rank %d", most, from, to);
}

std::string FarthestPlaces(const PlaceDistances& distances) {
  const auto* const matrix = std::get_if<MatrixDistances>(&distances.form());
  if (matrix == nullptr) return absl::StrFormat("%g", distances.greatest());
  const auto most = std::max_element(matrix->values.begin(), matrix->values.end());
  const auto at = static_cast<uint64_t>(most - matrix->values.begin());
  return absl::StrFormat("%g in row %d, column %d", *most, at / matrix->count + 1,
                         at % matrix->count + 1);
}

absl::Status CheckProducts(const MappingProblem& problem) {
  const Pattern& pattern = *problem.pattern;
  double bytes = pattern.total_bytes();
  for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) bytes += pattern.self_bytes(rank);
  if (bytes * kMaxRoute > kMaxCost) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the pattern's weights, such as %s, are too great to be counted with; "
                        "scale them down to %g in all",
                        HeaviestPair(pattern), kMaxCost / kMaxRoute));
  }
  const double farthest = problem.distances->greatest();
  if (bytes * farthest <= kMaxCost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the pattern's weights, such as %s, times the distances, such as %s, are too great to be "
      "counted with; scale either down so that their product stays below %g in all",
      HeaviestPair(pattern), FarthestPlaces(*problem.distances), kMaxCost));
}

std::vector<Pattern::Entry> EntriesOf(const Pattern& pattern) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t rank = 0; rank < pattern.rank_count(); ++rank) {
    if (pattern.self_bytes(rank) > 0) entries.push_back({rank, rank, pattern.self_bytes(rank), 0});
    const absl::Span<const Exchange> exchanges = pattern.exchanges(rank);
    const absl::Span<const double> messages = pattern.out_messages(rank);
    for (size_t i = 0; i < exchanges.size(); ++i) {
      if (exchanges[i].out_bytes == 0) continue;
      entries.push_back(
          {rank, exchanges[i].peer, exchanges[i].out_bytes, messages.empty() ? 0 : messages[i]});
    }
  }
  entries.insert(entries.end(), pattern.empty_messages().begin(), pattern.empty_messages().end());
  return entries;
}

}  // namespace

absl::string_view ToString(TrafficModel model) { return kTrafficNames[static_cast<size_t>(model)]; }

absl::Status CheckProblem(const MappingProblem& problem) {
  const Places& places = *problem.places;
  if (problem.rank_count() > places.slot_count()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the pattern has %d ranks, but the %d hosts take %d in all; name more hosts or allow more "
        "ranks on each",
        problem.rank_count(), places.count(), places.slot_count()));
  }
  if (problem.distances->count() != places.count()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("distances between %d places, but there are %d places; give one row and "
                        "column for each host",
                        problem.distances->count(), places.count()));
  }
  RETURN_IF_ERROR(CheckProducts(problem));
  const Objective& o = problem.objective;
  for (const double weight : {o.congestion, o.hop_bytes, o.qap_cost}) {
    if (weight == 0) continue;
    if (weight >= kMinWeight && weight <= kMaxWeight) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "the objective has a weight of %g; give 0, or %g to %g", weight, kMinWeight, kMaxWeight));
  }
  if (o == Objective{}) {
    return absl::InvalidArgumentError(
        "the objective weighs nothing; give congestion, dilation or qap a weight above 0");
  }
  if (o.needs_fabric() && !problem.on_fabric()) {
    return absl::InvalidArgumentError(
        "the objective is congestion or dilation, but there is no fabric whose links it could "
        "count; name a fabric and hosts, or choose the objective qap");
  }
  return absl::OkStatus();
}

absl::StatusOr<PlainProblem> Flatten(const MappingProblem& problem) {
  const Places& places = *problem.places;
  if (places.slot_count() > PlainProblem::kMaxSlots) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%d slots, but a search by all distances takes %d at most; map over fewer "
                        "hosts, or let the daemon or coppice-plan search",
                        places.slot_count(), PlainProblem::kMaxSlots));
  }
  PlainProblem plain;
  plain.rank_count = problem.rank_count();
  plain.entries = EntriesOf(*problem.pattern);
  for (uint32_t slot = 0; slot < places.slot_count(); ++slot) {
    plain.place_of_slot.push_back(places.place_of_slot(slot).value());
  }
  plain.distances.reserve(size_t{places.count()} * places.count());
  for (uint32_t from = 0; from < places.count(); ++from) {
    for (uint32_t to = 0; to < places.count(); ++to) {
      plain.distances.push_back((*problem.distances)(PlaceIndex(from), PlaceIndex(to)));
    }
  }
  return plain;
}

absl::StatusOr<MappingProblem> Unflatten(PlainProblem plain) {
  MappingProblem problem;
  ASSIGN_OR_RETURN(problem.pattern, Pattern::Make(plain.rank_count, std::move(plain.entries)));
  ASSIGN_OR_RETURN(problem.places, Places::OfSlots(plain.place_of_slot));
  ASSIGN_OR_RETURN(problem.distances,
                   PlaceDistances::Matrix(problem.places->count(), std::move(plain.distances)));
  problem.objective = {.qap_cost = 1};
  RETURN_IF_ERROR(CheckProblem(problem));
  return problem;
}

}  // namespace coppice
