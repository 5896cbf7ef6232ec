#include "daemon/rpc/conversion/trees_batch_conversion.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/requests.h"
#include "daemon/rpc/conversion/identifiers.h"

namespace coppice {
namespace {

absl::Status TooManyRanks() {
  return absl::InvalidArgumentError(absl::StrCat(
      "communicators: they hold more than ", kMaxBatchRanks, " ranks together; split the batch"));
}

absl::Status TooMany(absl::string_view field, int64_t given, int64_t most) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", given, " are given, the limit is ",
                                                 most, "; take a smaller batch"));
}

// This runs on a thread that all calls share: what is too long is refused before any of it is
// copied.
absl::Status CheckLengths(const v1::BatchCreateTreesRequest& request) {
  constexpr int64_t kMaxRanks = kMaxBatchRanks, kMaxAxes = kMaxGridAxes;
  const v1::ProcessGrid& grid = request.grid();
  const std::tuple<absl::string_view, int64_t, int64_t> fields[] = {
      {"grid.sizes", grid.sizes_size(), kMaxAxes},
      {"grid.axes", grid.axes_size(), kMaxAxes},
      {"grid.rank_order", grid.rank_order_size(), kMaxRanks},
      {"communicators", request.communicators_size(), kMaxRanks}};
  for (const auto& [field, given, most] : fields) {
    if (given > most) return TooMany(field, given, most);
  }
  int64_t ranks = 0;
  for (int c = 0; c < request.communicators_size(); ++c) {
    const v1::Communicator& communicator = request.communicators(c);
    if (communicator.ranks_size() == 0 && communicator.rank_ranges_size() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("communicators[", c, "]: has no ranks; name at least one"));
    }
    ranks += communicator.ranks_size();
  }
  return ranks > kMaxRanks ? TooManyRanks() : absl::OkStatus();
}

void GridFromProto(const v1::ProcessGrid& message, CreateBatchArgs& args) {
  ProcessGrid& grid = args.grid.emplace();
  grid.sizes.assign(message.sizes().begin(), message.sizes().end());
  grid.axes.assign(message.axes().begin(), message.axes().end());
  grid.order =
      message.first_axis_fastest() ? GridOrder::kFirstAxisFastest : GridOrder::kLastAxisFastest;
  args.rank_order.assign(message.rank_order().begin(), message.rank_order().end());
}

// Ranges are short on the wire and long here, so all of them together are bounded while they grow.
absl::Status ListsFromProto(const v1::BatchCreateTreesRequest& request, uint32_t max_ranks,
                            CreateBatchArgs& args) {
  uint64_t ranks = 0;
  args.communicators.reserve(static_cast<size_t>(request.communicators_size()));
  for (const v1::Communicator& communicator : request.communicators()) {
    absl::StatusOr<std::vector<uint32_t>> list =
        RanksOf(communicator.rank_ranges(), communicator.ranks(), max_ranks);
    if (!list.ok()) {
      return Annotate(list.status(),
                      absl::StrCat("communicators[", args.communicators.size(), "]"));
    }
    ranks += list->size();
    if (ranks > kMaxBatchRanks) return TooManyRanks();
    args.communicators.push_back(*std::move(list));
  }
  return absl::OkStatus();
}

constexpr std::pair<bool, v1::BatchAdmission> kAdmissions[] = {{false, v1::BATCH_ADMISSION_ALL},
                                                               {true, v1::BATCH_ADMISSION_LARGEST}};
constexpr std::pair<BatchGoal, v1::BatchGoal> kGoals[] = {
    {BatchGoal::kBoth, v1::BATCH_GOAL_BOTH},
    {BatchGoal::kEntries, v1::BATCH_GOAL_ENTRIES},
    {BatchGoal::kLinks, v1::BATCH_GOAL_LINKS}};

void ToProto(const BatchComparison::Totals& totals, v1::BatchTotals& message) {
  message.set_admitted(totals.numbers.admitted);
  message.set_refused(totals.numbers.failures);
  message.set_entries(totals.numbers.entries);
  message.set_farther_roots(totals.numbers.farther_roots);
  message.set_most_packets(totals.numbers.most_packets);
  message.set_most_loaded(totals.most_loaded);
}

void ToProto(const BatchComparison& comparison, v1::BatchComparison& message) {
  ToProto(comparison.batch, *message.mutable_batch());
  ToProto(comparison.one_by_one, *message.mutable_one_by_one());
  ToProto(comparison.unreduced, *message.mutable_unreduced());
  v1::BatchBounds& bounds = *message.mutable_bounds();
  bounds.set_entries_alone(comparison.bounds.alone);
  bounds.set_entries_counting(comparison.bounds.counting);
  bounds.set_no_nearest_root(comparison.bounds.no_nearest_root);
  bounds.set_refused(comparison.bounds.failures);
  bounds.set_most_packets(comparison.bounds.most_packets);
}

// [BatchWatch::Phase]
constexpr const char* kPhases[] = {"planning", "improving", "hanging ranks", "granting"};

}  // namespace

absl::StatusOr<CreateBatchArgs> FromProto(const v1::BatchCreateTreesRequest& request,
                                          uint32_t max_ranks) {
  RETURN_IF_ERROR(CheckLengths(request));
  CreateBatchArgs args;
  ASSIGN_OR_RETURN(args.job, ParseJobId(request.job_id()));
  args.request_id = request.request_id();
  if (request.has_grid()) GridFromProto(request.grid(), args);
  RETURN_IF_ERROR(ListsFromProto(request, max_ranks, args));
  ASSIGN_OR_RETURN(args.operation, FromProto(request.operation()));
  for (const v1::SizeShare& share : request.sizes()) {
    args.sizes.push_back({share.bytes(), share.weight() == 0 ? 1 : share.weight()});
  }
  ASSIGN_OR_RETURN(const std::optional<bool> largest_part,
                   ValueOf(kAdmissions, request.admission(), "admission"));
  args.largest_part = largest_part.value_or(false);
  ASSIGN_OR_RETURN(const std::optional<BatchGoal> goal, ValueOf(kGoals, request.goal(), "goal"));
  args.goal = goal.value_or(BatchGoal::kBoth);
  args.accept_type1 = request.accept_type_i();
  args.validate_only = request.validate_only();
  args.compare = request.compare();
  return args;
}

absl::StatusOr<TreeDetail> BatchDetail(v1::TreeView view) {
  ASSIGN_OR_RETURN(const TreeDetail detail, FromProto(view));
  if (detail != TreeDetail::kRank) return detail;
  return absl::InvalidArgumentError(
      "view: TREE_VIEW_RANK is of one rank of one tree; ask for FULL or SUMMARY here");
}

void ToProto(const BatchView::Tree& tree, TreeDetail detail, v1::BatchTree& message) {
  message.set_communicator(tree.communicator);
  if (detail == TreeDetail::kSummary) {
    SummaryToProto(tree.view, *message.mutable_tree());
  } else {
    FullToProto(tree.view, *message.mutable_tree());
  }
}

void ToProto(const BatchView& batch, v1::BatchSummary& summary) {
  uint32_t type1 = 0;
  uint64_t entries = 0;
  for (const BatchView::Tree& tree : batch.trees) {
    type1 += tree.view.record->type == 1 ? 1 : 0;
    entries += tree.view.record->switches.size();
  }
  summary.set_communicators(batch.communicators);
  summary.set_granted(static_cast<uint32_t>(batch.trees.size()));
  summary.set_type_i(type1);
  summary.set_entries(entries);
  summary.set_most_packets(batch.most_packets);
  summary.set_most_loaded(batch.most_loaded);
  for (const BatchView::Refusal& refusal : batch.refusals) {
    v1::BatchRefusal& told = *summary.add_refusals();
    told.set_communicator(refusal.communicator);
    told.set_why_not(refusal.why_not);
  }
  summary.set_fabric_version(batch.fabric_version);
  if (batch.comparison) ToProto(*batch.comparison, *summary.mutable_comparison());
}

void ToProto(BatchWatch::Phase phase, uint32_t done, uint32_t communicators,
             v1::BatchProgress& progress) {
  progress.set_phase(kPhases[static_cast<size_t>(phase)]);
  progress.set_planned(done);
  progress.set_communicators(communicators);
}

}  // namespace coppice
