#include "daemon/rpc/conversion/patterns.h"

#include <algorithm>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/pattern_file.h"
#include "daemon/rpc/conversion/identifiers.h"

namespace coppice {
namespace {

absl::StatusOr<std::shared_ptr<const Pattern>> FromLists(const v1::CommunicationPattern& pattern) {
  const int pairs = pattern.from_size();
  if (pattern.to_size() != pairs || pattern.bytes_size() != pairs ||
      (pattern.messages_size() != 0 && pattern.messages_size() != pairs)) {
    return BadField("pattern",
                    absl::StrCat(pairs, " from, ", pattern.to_size(), " to, ", pattern.bytes_size(),
                                 " bytes and ", pattern.messages_size(),
                                 " messages; give one of each for every pair"));
  }
  std::vector<Pattern::Entry> entries(static_cast<size_t>(pairs));
  for (int i = 0; i < pairs; ++i) {
    entries[i] = {pattern.from(i), pattern.to(i), pattern.bytes(i),
                  pattern.messages_size() == 0 ? 0.0 : pattern.messages(i)};
  }
  return Pattern::Make(pattern.rank_count(), std::move(entries));
}

absl::StatusOr<std::shared_ptr<const Pattern>> ReadFiles(const v1::InputFile& bytes,
                                                         const v1::InputFile* messages) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Pattern> pattern,
                   ReadPattern(bytes.text(), bytes.origin()));
  if (messages == nullptr) return pattern;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Pattern> counts,
                   ReadPattern(messages->text(), messages->origin()));
  return WithMessages(*pattern, *counts);
}

template <class Message>
absl::StatusOr<std::shared_ptr<const Pattern>> PatternIn(const Message& message) {
  if (message.has_messages_file() && !message.has_pattern_file()) {
    return BadField("messages_file", "it stands beside a pattern_file of bytes; give that");
  }
  if (!message.has_pattern_file()) return FromLists(message.pattern());
  return ReadFiles(message.pattern_file(),
                   message.has_messages_file() ? &message.messages_file() : nullptr);
}

size_t BytesOf(const v1::CommunicationPattern& pattern) {
  // Lists that differ in length are refused, ranks beyond a bound unless they talk.
  const auto pairs = static_cast<size_t>(pattern.from_size());
  const size_t ranks =
      std::min<size_t>(pattern.rank_count(), std::max<size_t>(Pattern::kMaxIdleRanks, 16 * pairs));
  return MakingBytes(pairs, ranks);
}

template <class Message>
size_t PatternBytes(const Message& message) {
  return BytesOf(message.pattern()) + ReadingBytes(message.pattern_file().text()) +
         ReadingBytes(message.messages_file().text());
}

}  // namespace

size_t ReadingBytes(const v1::MappingTask& task) {
  // A number of a matrix takes two characters at least; as a vector grows, three times 8 bytes.
  constexpr size_t kOfDistanceCharacter = 12;
  return PatternBytes(task) + kOfDistanceCharacter * task.distance_file().text().size() +
         task.SpaceUsedLong();  // hosts and distances that are copied, and more
}

size_t ReadingBytes(const v1::PutPatternRequest& request) { return PatternBytes(request); }

size_t ReadingBytes(const v1::PlacementTraffic& traffic) {
  return BytesOf(traffic.pattern()) + ReadingBytes(traffic.pattern_file().text());
}

absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::MappingTask& task) {
  return PatternIn(task);
}

absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::PutPatternRequest& request) {
  if (request.has_pattern() + request.has_pattern_file() != 1) {
    return BadField("pattern", "give either pattern or pattern_file");
  }
  return PatternIn(request);
}

absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::PlacementTraffic& traffic) {
  if (traffic.has_pattern()) return FromLists(traffic.pattern());
  return ReadFiles(traffic.pattern_file(), nullptr);
}

absl::StatusOr<std::shared_ptr<const Pattern>> PlacementPatterns::Of(
    const v1::PlacementTraffic& traffic) {
  const bool is_stored = !traffic.pattern_name().empty();
  const int given = traffic.has_pattern() + traffic.has_pattern_file() + is_stored;
  if (given == 0) return nullptr;
  if (given > 1) {
    return absl::InvalidArgumentError(
        "traffic: give one of pattern, pattern_name and pattern_file, not several");
  }
  const auto known = stored_.find(traffic.pattern_name());
  if (known != stored_.end()) return known->second;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Pattern> pattern, Read(traffic));
  const bool is_first = held_ == 0;
  held_ += pattern->MemoryBytes();
  if (!is_first && held_ > kMaxBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("traffic: this pattern and those of the requests before take more than ",
                     kMaxBytes >> 20, " MiB; ask for fewer at once"));
  }
  if (is_stored) stored_.emplace(traffic.pattern_name(), pattern);
  return pattern;
}

absl::StatusOr<std::shared_ptr<const Pattern>> PlacementPatterns::Read(
    const v1::PlacementTraffic& traffic) {
  if (!traffic.pattern_name().empty()) {
    return pattern_store_->Load(traffic.pattern_name(), user_, *memory_);
  }
  ASSIGN_OR_RETURN(MemoryBudget::Share room,
                   memory_->Take(ReadingBytes(traffic), "reading this pattern"));
  ASSIGN_OR_RETURN(std::shared_ptr<const Pattern> pattern, PatternOf(traffic));
  room.ShrinkTo(pattern->MemoryBytes());
  return Counted(std::move(pattern), std::move(room));
}

}  // namespace coppice
