// What the words of options mean that every program takes: sizes, times, parameters, objectives.
#ifndef COPPICE_PROTO_TEXT_OPTION_WORDS_H_
#define COPPICE_PROTO_TEXT_OPTION_WORDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/text/limits.h"

namespace coppice {

// Each is nullopt if `text` is not of its form.
// "8,4K,1M": bytes of each, in order; K, M, G and T, of either case, are powers of 1024. None is
// above kMaxByteSize.
std::optional<std::vector<uint64_t>> ParseByteSizes(absl::string_view text);
// "500ms", "1h30m": above 0, and at most kMaxPeriod.
std::optional<absl::Duration> ParseBudget(absl::string_view text);
// "NAME=VALUE".
std::optional<std::pair<std::string, double>> ParseParameter(absl::string_view text);

// How an order of ranks is written for launchers (daemon/mapping/output/mapping_answer.h).
std::vector<std::string> LaunchFormatNames();

// What a mapping is to make small, and how much each weighs.
struct MappingWeights {
  double congestion = 0, dilation = 0, qap = 0;
};
// "congestion", "dilation,qap", "congestion=1,dilation=0.5"; a name alone weighs 1.
std::optional<MappingWeights> ParseObjective(absl::string_view text);

// The number of a partition, as ParsePartition reads it.
std::string PartitionText(uint32_t number);

// Whether a value that names nodes is meant as a file of them: "-", the name of one that is there,
// or a path, with a slash and not as an endpoint has one, "n54/1". Else it is a list (node_list.h),
// or one node.
bool IsFileOfNodes(const std::string& value);

// A check for CLI11: `parse` understands the text, or the message says what was meant.
template <class Parser>
auto Understood(const Parser& parse, const std::string& meant) {
  return [parse, meant](const std::string& text) {
    return parse(text) ? std::string() : absl::StrCat("\"", text, "\" is not ", meant);
  };
}

// What ParseByteSizes wants, for such a check.
inline constexpr char kByteSizesMeant[] =
    "a list of sizes in bytes, such as 8,4K,1M; the most is 1024T";

// A number above 0, for such a check: CLI11 would write out the greatest double, of 309 digits.
bool IsPositive(absl::string_view text);
inline constexpr char kPositiveMeant[] = "a number above 0";

// Why `text` is no whole number in decimal digits from `least` to `most`; empty: it is one. For
// CLI11, which forgives blanks, a sign and the empty text.
std::string FaultOfCount(absl::string_view text, uint32_t least, uint32_t most);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_OPTION_WORDS_H_
