#include "client/cli/map_words.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace coppice {

std::optional<v1::MappingObjective> ParseObjective(absl::string_view text) {
  v1::MappingObjective objective;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    std::pair<std::string, double> one(part, 1);
    if (part.find('=') != absl::string_view::npos) {
      const auto weighed = ParseParameter(part);
      if (!weighed) return std::nullopt;
      one = *weighed;
    }
    if (one.first == "congestion") {
      objective.set_congestion(one.second);
    } else if (one.first == "dilation") {
      objective.set_dilation(one.second);
    } else if (one.first == "qap") {
      objective.set_qap(one.second);
    } else {
      return std::nullopt;
    }
  }
  return objective;
}

std::optional<std::pair<std::string, double>> ParseParameter(absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, '=');
  double value = 0;
  if (words.size() != 2 || words[0].empty() || !absl::SimpleAtod(words[1], &value)) {
    return std::nullopt;
  }
  return std::pair(words[0], value);
}

std::optional<absl::Duration> ParseBudget(absl::string_view text) {
  constexpr absl::Duration kLongest = absl::Hours(24 * 365);
  absl::Duration budget;
  if (!absl::ParseDuration(text, &budget)) return std::nullopt;
  if (budget <= absl::ZeroDuration() || budget > kLongest) return std::nullopt;
  return budget;
}

}  // namespace coppice
