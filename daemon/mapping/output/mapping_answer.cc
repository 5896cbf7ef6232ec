#include "daemon/mapping/output/mapping_answer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/mapping_metrics.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

// Why there is nothing to search for; "" if there is.
std::string WhyNothing(const Pattern& pattern) {
  if (pattern.rank_count() == 1) return "one rank has nobody to talk to: the present order stays";
  // Bytes to themselves may cost more on one place than on another.
  if (pattern.pair_count() > 0 || pattern.has_self_bytes()) return "";
  return "no rank sends anything: all orders are alike, the present one stays";
}

// What tells two orders of one score apart.
std::string AmongEquals(const MappingStanding& after, const MappingStanding& before) {
  if (!after.IsBetterThan(before)) return "";
  std::string text;
  if (after.HasLessSmooth(before)) text = ", with fewer channels nearly as full as the fullest";
  if (after.HasFewerHopBytes(before)) {
    absl::StrAppendFormat(&text, "%s %.3g %% fewer hop-bytes", text.empty() ? ", with" : " and",
                          100 * (1 - after.hop_bytes / before.hop_bytes));
  }
  return text;
}

// The score of the present order is 0 if nothing that counts is to be had for less.
std::string Reason(absl::string_view name, const MappingStanding& after,
                   const MappingStanding& before) {
  if (after.HasScoreOf(before)) {
    return absl::StrCat(name, "'s order is as good as the present one", AmongEquals(after, before));
  }
  const double score = after.score, present = before.score;
  const char* const better = score < present ? "better" : "worse";
  const std::string share =
      present > 0 ? absl::StrFormat("%.3g %% ", 100 * std::abs(score / present - 1)) : "";
  return absl::StrCat(name, "'s order is ", share, better,
                      " than the present one by the objective");
}

// None of the formats knows quotation marks; these characters mean something in one of them.
absl::Status CheckName(absl::string_view host) {
  const auto fits = [](unsigned char c) {
    return absl::ascii_isgraph(c) && !absl::StrContains("=:,;#\"'[]", static_cast<char>(c));
  };
  if (!host.empty() && absl::c_all_of(host, fits)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("host \"", host,
                   "\" has a name that no launcher's file can hold; emit the "
                   "permutation instead"));
}

absl::Status CheckNames(absl::Span<const absl::string_view> host_of_slot,
                        absl::Span<const uint32_t> slot_of_rank) {
  if (host_of_slot.empty()) {
    return absl::FailedPreconditionError(
        "the places have no host names, which a launcher's file needs; name the hosts, or emit the "
        "permutation");
  }
  for (const uint32_t slot : slot_of_rank) RETURN_IF_ERROR(CheckName(host_of_slot[slot]));
  return absl::OkStatus();
}

// A rank's core is where its slot stands among those of its host: who stays keeps the core.
std::string Rankfile(absl::Span<const absl::string_view> host_of_slot,
                     absl::Span<const uint32_t> slot_of_rank) {
  absl::flat_hash_map<absl::string_view, uint32_t> seen;
  std::vector<uint32_t> core_of_slot;
  core_of_slot.reserve(host_of_slot.size());
  for (const absl::string_view host : host_of_slot) core_of_slot.push_back(seen[host]++);
  std::string text;
  for (size_t rank = 0; rank < slot_of_rank.size(); ++rank) {
    const uint32_t slot = slot_of_rank[rank];
    absl::StrAppend(&text, "rank ", rank, "=", host_of_slot[slot], " slot=", core_of_slot[slot],
                    "\n");
  }
  return text;
}

std::string Machinefile(absl::Span<const absl::string_view> host_of_slot,
                        absl::Span<const uint32_t> slot_of_rank) {
  std::string text;
  for (size_t rank = 0; rank < slot_of_rank.size();) {
    const absl::string_view host = host_of_slot[slot_of_rank[rank]];
    size_t end = rank + 1;
    while (end < slot_of_rank.size() && host_of_slot[slot_of_rank[end]] == host) ++end;
    absl::StrAppend(&text, host, ":", end - rank, "\n");
    rank = end;
  }
  return text;
}

}  // namespace

absl::StatusOr<MappingAnswer> AnswerMapping(const MappingProblem& problem,
                                            const MappingMeasures& before,
                                            const MappingAlgorithm& algorithm, const Mapping& start,
                                            const AlgorithmOptions& options,
                                            const SearchControl& control) {
  RETURN_IF_ERROR(CheckProblem(problem));
  MappingAnswer answer;
  answer.algorithm = std::string(algorithm.name);
  answer.mapping = problem.present();
  answer.before = answer.after = before;
  const MappingStanding present = StandingOf(problem.objective, before, before);
  answer.score = present.score;
  answer.reason = WhyNothing(*problem.pattern);
  if (answer.reason.empty()) {
    ASSIGN_OR_RETURN(Mapped mapped, RunAlgorithm(algorithm, problem, start, options, control));
    ASSIGN_OR_RETURN(const MappingMeasures after, Measure(problem, mapped.mapping));
    const MappingStanding found = StandingOf(problem.objective, after, before);
    answer.reason = Reason(algorithm.name, found, present);
    if (algorithm.name == kAutoAlgorithm && !found.IsBetterThan(present)) {
      answer.reason = "nothing better than the present order was found: it stays";
    } else {
      answer.score = found.score;
      answer.mapping = std::move(mapped.mapping);
      answer.after = after;
    }
    if (!mapped.note.empty()) absl::StrAppend(&answer.reason, "; ", mapped.note);
  }
  answer.slots = AssignSlots(*problem.places, answer.mapping);
  RETURN_IF_ERROR(CheckMapping(*problem.places, problem.rank_count(), answer.mapping));
  RETURN_IF_ERROR(CheckSlots(*problem.places, answer.slots));
  return answer;
}

absl::StatusOr<std::vector<BusyLink>> FindBusyLinks(const MappingProblem& problem,
                                                    absl::Span<const PlaceIndex> mapping,
                                                    size_t most) {
  ASSIGN_OR_RETURN(const LinkTraffic traffic, CountLinkTraffic(problem, mapping));
  const std::vector<double> capacities = ChannelCapacities(problem);
  std::vector<std::pair<double, uint32_t>> order;  // less its congestion, so that it sorts first
  for (uint32_t c = 0; c < capacities.size(); ++c) {
    if (traffic.bytes[c] > 0) order.emplace_back(-traffic.bytes[c] / capacities[c], c);
  }
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), most));
  const Fabric& fabric = *problem.snapshot->fabric;
  std::vector<BusyLink> links;
  for (const auto& [less, number] : order) {
    const ChannelIndex c(number);
    links.push_back({Describe(fabric, fabric.channel_from(c)),
                     Describe(fabric, fabric.channel_to(c)), traffic.bytes[number],
                     capacities[number], -less, less / order[0].first});
  }
  return links;
}

std::optional<LaunchFormat> ParseLaunchFormat(absl::string_view name) {
  const std::vector<std::string> names = LaunchFormatNames();
  const auto at = absl::c_find(names, name);
  if (at == names.end()) return std::nullopt;
  return static_cast<LaunchFormat>(at - names.begin());
}

absl::StatusOr<std::string> LaunchText(LaunchFormat format,
                                       absl::Span<const absl::string_view> host_of_slot,
                                       absl::Span<const uint32_t> slot_of_rank) {
  if (format == LaunchFormat::kPermutation) {
    return absl::StrCat(absl::StrJoin(slot_of_rank, "\n"), "\n");
  }
  RETURN_IF_ERROR(CheckNames(host_of_slot, slot_of_rank));
  switch (format) {
    case LaunchFormat::kRankfile:
      return Rankfile(host_of_slot, slot_of_rank);
    case LaunchFormat::kMachinefile:
      return Machinefile(host_of_slot, slot_of_rank);
    default:
      return absl::StrJoin(slot_of_rank, "", [&](std::string* out, uint32_t slot) {
        absl::StrAppend(out, host_of_slot[slot], "\n");
      });
  }
}

}  // namespace coppice
