#include "daemon/mapping/output/launch_file.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

// None of the formats knows quotation marks; these characters mean something in one of them.
absl::Status CheckName(absl::string_view host) {
  bool fits = !host.empty();
  for (const char c : host) {
    fits = fits && absl::ascii_isgraph(static_cast<unsigned char>(c)) &&
           absl::string_view("=:,;#\"'[]").find(c) == absl::string_view::npos;
  }
  if (fits) return absl::OkStatus();
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

std::string Permutation(absl::Span<const uint32_t> slot_of_rank) {
  std::string text;
  for (const uint32_t slot : slot_of_rank) absl::StrAppend(&text, slot, "\n");
  return text;
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

std::string HostOfEachRank(absl::Span<const absl::string_view> host_of_slot,
                           absl::Span<const uint32_t> slot_of_rank) {
  std::string text;
  for (const uint32_t slot : slot_of_rank) absl::StrAppend(&text, host_of_slot[slot], "\n");
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

std::optional<LaunchFormat> ParseLaunchFormat(absl::string_view name) {
  const std::vector<std::string> names = LaunchFormatNames();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<LaunchFormat>(at - names.begin());
}

absl::StatusOr<std::string> LaunchText(LaunchFormat format,
                                       absl::Span<const absl::string_view> host_of_slot,
                                       absl::Span<const uint32_t> slot_of_rank) {
  if (format == LaunchFormat::kPermutation) return Permutation(slot_of_rank);
  RETURN_IF_ERROR(CheckNames(host_of_slot, slot_of_rank));
  switch (format) {
    case LaunchFormat::kRankfile:
      return Rankfile(host_of_slot, slot_of_rank);
    case LaunchFormat::kMachinefile:
      return Machinefile(host_of_slot, slot_of_rank);
    default:
      return HostOfEachRank(host_of_slot, slot_of_rank);
  }
}

}  // namespace coppice
