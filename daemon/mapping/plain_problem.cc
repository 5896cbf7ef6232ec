#include "daemon/mapping/plain_problem.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

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
