#include "daemon/tools/communicators.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "daemon/tools/command.h"
#include "daemon/tools/tree_inputs.h"
#include "daemon/tree/batch/grid.h"
#include "proto/text/rank_ranges.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

absl::StatusOr<std::vector<BatchCommunicator>> ReadList(absl::string_view text,
                                                        absl::string_view origin,
                                                        absl::Span<const EndpointIndex> members) {
  ASSIGN_OR_RETURN(const std::vector<CommunicatorLine> lines, ParseCommunicators(text, origin));
  std::vector<BatchCommunicator> batch;
  for (const CommunicatorLine& line : lines) {
    BatchCommunicator& communicator = batch.emplace_back();
    for (const RankRange& range : line.ranges) {
      if (range.last >= members.size()) {
        return absl::InvalidArgumentError(absl::StrCat(origin, ":", line.number, ": rank ",
                                                       range.last, ", but there are ",
                                                       members.size(), " members, from 0"));
      }
      for (uint64_t rank = range.first; rank <= range.last; rank += range.stride) {
        communicator.members.push_back(members[rank]);
      }
    }
  }
  return batch;
}

absl::StatusOr<std::vector<BatchCommunicator>> GridOf(const CommunicatorOptions& options,
                                                      absl::Span<const EndpointIndex> members) {
  ProcessGrid grid;
  ASSIGN_OR_RETURN(grid.sizes, ParseGridSizes(options.grid));
  grid.order =
      options.order == "first" ? GridOrder::kFirstAxisFastest : GridOrder::kLastAxisFastest;
  for (const absl::string_view word : absl::StrSplit(options.axes, ',', absl::SkipEmpty())) {
    uint32_t axis = 0;
    if (!absl::SimpleAtoi(word, &axis)) {
      return absl::InvalidArgumentError(absl::StrCat("--axes: \"", word, "\" is no axis"));
    }
    grid.axes.push_back(axis);
  }
  return GridLines(grid, members);
}

}  // namespace

const char kCommunicatorListHelp[] =
    "\n  --list           one communicator a line: ranks (lines of --members, from 0) as numbers, "
    "\n                   ranges 0-15 or ranges with a stride 0-240:16, between blanks";

CLI::App* AddCommunicatorOptions(CLI::App& command, CommunicatorOptions& options) {
  CLI::App* const what = command.add_option_group("communicators");
  AddText(*what, "--grid", options.grid, "every line of a process grid, such as 256x160");
  AddText(*what, "--list", options.list, "communicators, one a line");
  AddText(*what, "--random", options.random, "COUNTxSIZE groups of random members");
  AddText(command, "--axes", options.axes, "axes of the grid along which lines run, as 0,2");
  command.add_option("--order", options.order, "the grid's axis that runs fastest; default last")
      ->check(CLI::IsMember({"first", "last"}));
  return what;
}

absl::StatusOr<std::vector<BatchCommunicator>> LoadCommunicators(
    const CommunicatorOptions& options, absl::Span<const EndpointIndex> members) {
  if (!options.grid.empty()) return GridOf(options, members);
  if (!options.list.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.list));
    return ReadList(text, options.list, members);
  }
  if (options.random.empty()) {
    return std::vector<BatchCommunicator>{{{members.begin(), members.end()}, false}};
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> sizes, ParseGridSizes(options.random));
  if (sizes.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--random ", options.random, " is not COUNTxSIZE, such as 512x128"));
  }
  return RandomGroups(sizes[0], sizes[1], options.seed.value_or(1), members);
}

}  // namespace coppice
