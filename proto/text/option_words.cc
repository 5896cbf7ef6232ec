#include "proto/text/option_words.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "proto/text/byte_size.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

// "n54/1", "n54/1@mlx5_1".
bool MayBeEndpoint(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  const auto& [host, rest] = parts;
  const absl::string_view port = rest.substr(0, rest.find('@'));
  return !host.empty() && host.front() != '.' && host.front() != '~' && !port.empty() &&
         port.find_first_not_of("0123456789") == absl::string_view::npos;
}

}  // namespace

std::optional<std::vector<uint64_t>> ParseByteSizes(absl::string_view text) {
  std::vector<uint64_t> sizes;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::optional<uint64_t> size = ParseByteSize({word.data(), word.size()}, kMaxByteSize);
    if (!size.has_value()) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

std::optional<absl::Duration> ParseBudget(absl::string_view text) {
  absl::Duration budget;
  if (!absl::ParseDuration(text, &budget)) return std::nullopt;
  if (budget <= absl::ZeroDuration() || budget > kMaxPeriod) return std::nullopt;
  return budget;
}

std::optional<std::pair<std::string, double>> ParseParameter(absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, '=');
  double value = 0;
  if (words.size() != 2 || words[0].empty() || !absl::SimpleAtod(words[1], &value)) {
    return std::nullopt;
  }
  return std::pair(words[0], value);
}

std::optional<MappingWeights> ParseObjective(absl::string_view text) {
  static constexpr std::pair<absl::string_view, double MappingWeights::*> kWeights[] = {
      {"congestion", &MappingWeights::congestion},
      {"dilation", &MappingWeights::dilation},
      {"qap", &MappingWeights::qap}};
  MappingWeights weights;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    std::pair<std::string, double> one(part, 1);
    if (part.find('=') != absl::string_view::npos) {
      const auto weighed = ParseParameter(part);
      if (!weighed) return std::nullopt;
      one = *weighed;
    }
    const auto found = std::find_if(std::begin(kWeights), std::end(kWeights),
                                    [&](const auto& known) { return known.first == one.first; });
    if (found == std::end(kWeights)) return std::nullopt;
    weights.*found->second = one.second;
  }
  return weights;
}

std::vector<std::string> LaunchFormatNames() {
  return {"permutation", "rankfile", "hostfile", "machinefile", "slurm"};
}

std::string PartitionText(uint32_t number) {
  return absl::StrCat("0x", absl::Hex(number, absl::kZeroPad4));
}

bool IsFileOfNodes(const std::string& value) {
  std::error_code unreadable;
  const std::filesystem::file_status file = std::filesystem::status(value, unreadable);
  if (value == "-" || (std::filesystem::exists(file) && !std::filesystem::is_directory(file))) {
    return true;
  }
  return absl::StrContains(value, '/') && !LooksLikeNodeList(value) && !MayBeEndpoint(value);
}

bool IsPositive(absl::string_view text) {
  double number = 0;
  return absl::SimpleAtod(text, &number) && number > 0 && std::isfinite(number);
}

std::string FaultOfCount(absl::string_view text, uint32_t least, uint32_t most) {
  uint32_t count = 0;
  const bool is_count = !text.empty() &&
                        text.find_first_not_of("0123456789") == absl::string_view::npos &&
                        absl::SimpleAtoi(text, &count) && count >= least && count <= most;
  if (is_count) return "";
  return absl::StrCat("\"", text, "\" is not a whole number from ", least, " to ", most);
}

}  // namespace coppice
