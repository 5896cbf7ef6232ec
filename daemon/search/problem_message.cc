#include "daemon/search/problem_message.h"

#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/mapping_problem.h"

namespace coppice {

absl::Status ToProto(const MappingProblem& problem, v1::MappingProblem& message) {
  ASSIGN_OR_RETURN(const PlainProblem plain, Flatten(problem));
  v1::CommunicationPattern& pattern = *message.mutable_pattern();
  pattern.set_rank_count(plain.rank_count);
  for (const Pattern::Entry& entry : plain.entries) {
    pattern.add_from(entry.from);
    pattern.add_to(entry.to);
    pattern.add_bytes(entry.bytes);
    pattern.add_messages(entry.messages);
  }
  message.mutable_place_of_position()->Add(plain.place_of_slot.begin(), plain.place_of_slot.end());
  message.mutable_distances()->Add(plain.distances.begin(), plain.distances.end());
  return absl::OkStatus();
}

absl::StatusOr<MappingProblem> FromProto(const v1::MappingProblem& message) {
  const v1::CommunicationPattern& pattern = message.pattern();
  const int pairs = pattern.from_size();
  if (pattern.to_size() != pairs || pattern.bytes_size() != pairs ||
      pattern.messages_size() != pairs) {
    return absl::InvalidArgumentError("pattern: not as many senders as receivers, bytes, messages");
  }
  PlainProblem plain;
  plain.rank_count = pattern.rank_count();
  for (int i = 0; i < pairs; ++i) {
    plain.entries.push_back(
        {pattern.from(i), pattern.to(i), pattern.bytes(i), pattern.messages(i)});
  }
  plain.place_of_slot = {message.place_of_position().begin(), message.place_of_position().end()};
  plain.distances = {message.distances().begin(), message.distances().end()};
  return Unflatten(std::move(plain));
}

}  // namespace coppice
