// The way in: CreateTreeRequest to the manager's arguments.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/identifiers.h"
#include "daemon/rpc/trees_conversion.h"

namespace coppice {
namespace {

absl::Status UnknownEnumerator(absl::string_view field, int value) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " ", value, " is not known: use a value of coppice.v1"));
}

absl::StatusOr<std::optional<TreeType>> FromProto(v1::TreeType type) {
  switch (type) {
    case v1::TREE_TYPE_UNSPECIFIED:
      return std::nullopt;
    case v1::TREE_TYPE_I:
      return TreeType::kTypeI;
    case v1::TREE_TYPE_II:
      return TreeType::kTypeII;
    default:
      return UnknownEnumerator("type", type);
  }
}

absl::StatusOr<std::optional<TreeBuilder>> FromProto(v1::TreeBuilder builder) {
  switch (builder) {
    case v1::TREE_BUILDER_UNSPECIFIED:
      return std::nullopt;
    case v1::TREE_BUILDER_KARY:
      return TreeBuilder::kKary;
    case v1::TREE_BUILDER_KNOMIAL:
      return TreeBuilder::kKnomial;
    case v1::TREE_BUILDER_HIERARCHICAL:
      return TreeBuilder::kHierarchical;
    case v1::TREE_BUILDER_MINIMUM_COST:
      return TreeBuilder::kMinimumCost;
    case v1::TREE_BUILDER_POSTAL:
      return TreeBuilder::kPostal;
    default:
      return UnknownEnumerator("builder", builder);
  }
}

TradePolicy PolicyFromProto(const v1::Policy& policy) {
  TradePolicy mine = {.latency = policy.latency(),
                      .entries = policy.entries(),
                      .link_load = policy.link_load(),
                      .max_busiest_link_us = policy.max_busiest_link_us()};
  if (policy.has_max_entries()) mine.max_entries = policy.max_entries();
  return mine;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> RanksOf(
    const google::protobuf::RepeatedPtrField<v1::RankRange>& ranges,
    const google::protobuf::RepeatedField<uint32_t>& list, uint32_t max_ranks) {
  if (ranges.empty()) return std::vector<uint32_t>(list.begin(), list.end());
  if (!list.empty()) {
    return absl::InvalidArgumentError(
        "rank_ranges and ranks are both given: the members are either ranges or a list");
  }
  std::vector<uint32_t> ranks;
  for (const v1::RankRange& range : ranges) {
    if (range.count() == 0) continue;
    if (range.count() > max_ranks - ranks.size()) {
      return absl::InvalidArgumentError(absl::StrCat("rank_ranges hold more than ", max_ranks,
                                                     " ranks, the most that a job may have"));
    }
    const uint64_t stride = range.stride() == 0 ? 1 : range.stride();
    const uint64_t last = range.first() + stride * (range.count() - 1);
    if (last > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank range from ", range.first(), ", ", range.count(), " ranks, stride ",
                       stride, " goes beyond every rank: its last would be ", last));
    }
    for (uint64_t i = 0; i < range.count(); ++i) {
      ranks.push_back(static_cast<uint32_t>(range.first() + stride * i));
    }
  }
  if (ranks.empty()) {
    return absl::InvalidArgumentError("rank_ranges hold no rank: give a count of at least 1");
  }
  return ranks;
}

absl::StatusOr<CreateTreeArgs> FromProto(const v1::CreateTreeRequest& request, uint32_t max_ranks) {
  CreateTreeArgs args;
  ASSIGN_OR_RETURN(args.job, ParseJobId(request.job_id()));
  args.request_id = request.request_id();
  ASSIGN_OR_RETURN(args.ranks, RanksOf(request.rank_ranges(), request.ranks(), max_ranks));
  ASSIGN_OR_RETURN(args.operation, FromProto(request.operation()));
  for (const v1::SizeShare& share : request.sizes()) {
    args.sizes.push_back({share.bytes(), share.weight() == 0 ? 1 : share.weight()});
  }
  ASSIGN_OR_RETURN(args.type, FromProto(request.type()));
  ASSIGN_OR_RETURN(args.builder, FromProto(request.builder()));
  if (request.width() != 0) args.width = request.width();
  if (request.nic_degree() != 0) args.nic_degree = request.nic_degree();
  if (!request.root_switch().empty()) {
    ASSIGN_OR_RETURN(args.root_switch, ParseGuid(request.root_switch()));
  }
  if (request.has_policy()) args.policy = PolicyFromProto(request.policy());
  args.list_tradeoffs = request.tradeoffs();
  return args;
}

absl::StatusOr<TreeDetail> FromProto(v1::TreeView view) {
  switch (view) {
    case v1::TREE_VIEW_UNSPECIFIED:
    case v1::TREE_VIEW_FULL:
      return TreeDetail::kFull;
    case v1::TREE_VIEW_RANK:
      return TreeDetail::kRank;
    case v1::TREE_VIEW_SUMMARY:
      return TreeDetail::kSummary;
    default:
      return UnknownEnumerator("view", view);
  }
}

absl::StatusOr<Operation> FromProto(v1::Operation operation) {
  switch (operation) {
    case v1::OPERATION_UNSPECIFIED:
    case v1::OPERATION_ALLREDUCE:
      return Operation::kAllreduce;
    case v1::OPERATION_BARRIER:
      return Operation::kBarrier;
    case v1::OPERATION_BCAST:
      return Operation::kBcast;
    case v1::OPERATION_REDUCE:
      return Operation::kReduce;
    default:
      return UnknownEnumerator("operation", operation);
  }
}

}  // namespace coppice
