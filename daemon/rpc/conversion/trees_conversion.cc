#include "daemon/rpc/conversion/trees_conversion.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/mapping/pattern_store.h"
#include "daemon/manager/requests.h"
#include "daemon/manager/switches/switch_table.h"
#include "daemon/manager/tree_record.h"
#include "daemon/rpc/conversion/identifiers.h"

namespace coppice {
namespace {

constexpr std::pair<TreeBuilder, v1::TreeBuilder> kBuilders[] = {
    {TreeBuilder::kKary, v1::TREE_BUILDER_KARY},
    {TreeBuilder::kKnomial, v1::TREE_BUILDER_KNOMIAL},
    {TreeBuilder::kHierarchical, v1::TREE_BUILDER_HIERARCHICAL},
    {TreeBuilder::kMinimumCost, v1::TREE_BUILDER_MINIMUM_COST},
    {TreeBuilder::kPostal, v1::TREE_BUILDER_POSTAL}};
constexpr std::pair<TreeType, v1::TreeType> kTypes[] = {{TreeType::kTypeI, v1::TREE_TYPE_I},
                                                        {TreeType::kTypeII, v1::TREE_TYPE_II}};
constexpr std::pair<Operation, v1::Operation> kOperations[] = {
    {Operation::kBarrier, v1::OPERATION_BARRIER},
    {Operation::kBcast, v1::OPERATION_BCAST},
    {Operation::kReduce, v1::OPERATION_REDUCE},
    {Operation::kAllreduce, v1::OPERATION_ALLREDUCE}};
constexpr std::pair<RouteKind, v1::RouteKind> kRouteKinds[] = {
    {RouteKind::kForwardingTables, v1::ROUTE_KIND_FORWARDING_TABLES},
    {RouteKind::kShortestPath, v1::ROUTE_KIND_SHORTEST_PATH},
    {RouteKind::kDimensionOrder, v1::ROUTE_KIND_DIMENSION_ORDER}};
constexpr std::pair<CollectiveWay, v1::CollectiveWay> kWays[] = {
    {CollectiveWay::kNative, v1::COLLECTIVE_WAY_NATIVE},
    {CollectiveWay::kTree, v1::COLLECTIVE_WAY_TREE},
    {CollectiveWay::kChain, v1::COLLECTIVE_WAY_CHAIN},
    {CollectiveWay::kBinomial, v1::COLLECTIVE_WAY_BINOMIAL},
    {CollectiveWay::kExchange, v1::COLLECTIVE_WAY_EXCHANGE},
    {CollectiveWay::kForest, v1::COLLECTIVE_WAY_FOREST}};
constexpr std::pair<TreeDetail, v1::TreeView> kViews[] = {
    {TreeDetail::kFull, v1::TREE_VIEW_FULL},
    {TreeDetail::kRank, v1::TREE_VIEW_RANK},
    {TreeDetail::kSummary, v1::TREE_VIEW_SUMMARY}};

v1::TreeBuilder BuilderToProto(absl::string_view name) {
  for (const auto& [builder, wire] : kBuilders) {
    if (name == ToString(builder)) return wire;
  }
  return name == kForestBuilder ? v1::TREE_BUILDER_FOREST : v1::TREE_BUILDER_UNSPECIFIED;
}

void SizesToProto(const std::vector<SizeShare>& sizes, v1::Tree& tree) {
  for (const SizeShare& mine : sizes) {
    v1::SizeShare& share = *tree.add_sizes();
    share.set_bytes(mine.bytes);
    share.set_weight(mine.weight);
  }
}

void AlternativesToProto(const std::vector<Alternative>& alternatives, v1::Tree& tree) {
  tree.mutable_alternatives()->Reserve(static_cast<int>(alternatives.size()));
  for (const Alternative& mine : alternatives) {
    v1::Alternative& alternative = *tree.add_alternatives();
    alternative.set_type(ToProto(mine.type));
    alternative.set_builder(WireOf(kBuilders, mine.builder));
    alternative.set_width(mine.width);
    if (mine.total_us) alternative.set_total_us(*mine.total_us);
    alternative.set_why_not(mine.why_not);
  }
}

void TradeoffsToProto(const std::vector<Tradeoff>& tradeoffs, v1::Tree& tree) {
  for (const Tradeoff& mine : tradeoffs) {
    v1::Tradeoff& tradeoff = *tree.add_tradeoffs();
    tradeoff.set_type(ToProto(mine.type));
    tradeoff.set_builder(WireOf(kBuilders, mine.builder));
    tradeoff.set_width(mine.width);
    tradeoff.set_total_us(mine.total_us);
    tradeoff.set_entries(mine.entries);
    tradeoff.set_busiest_link_us(mine.busiest_link_us);
    tradeoff.set_busiest_link_packets(mine.busiest_link_packets);
    tradeoff.set_chosen(mine.chosen);
  }
}

uint32_t RootOf(const TreeRecord& record) {
  const auto root = std::find(record.parents.begin(), record.parents.end(), -1);
  return static_cast<uint32_t>(root - record.parents.begin());
}

// Port GUID of a rank of the communicator; 0 if the records contradict each other.
Guid PortOf(const TreeView& view, uint32_t rank) {
  const uint32_t job_rank = view.record->ranks[rank];
  return job_rank < view.job->endpoints.size() ? view.job->endpoints[job_rank] : Guid(0);
}

void OrderToProto(const TreeView& view, const Snapshot& snapshot, v1::TreeNodes& nodes) {
  std::vector<EndpointIndex> members;
  members.reserve(view.record->ranks.size());
  for (uint32_t rank = 0; rank < view.record->ranks.size(); ++rank) {
    const std::optional<EndpointIndex> endpoint = snapshot.fabric->FindEndpoint(PortOf(view, rank));
    if (!endpoint) return;
    members.push_back(*endpoint);
  }
  const uint32_t root = RootOf(*view.record);
  const std::vector<uint32_t> order =
      OrderByNearness(*snapshot.hierarchy, members, root < members.size() ? root : 0);
  nodes.mutable_order()->Add(order.begin(), order.end());
}

void NodesToProto(const TreeView& view, v1::TreeNodes& nodes) {
  const TreeRecord& record = *view.record;
  nodes.mutable_parents()->Add(record.parents.begin(), record.parents.end());
  nodes.mutable_links()->Add(record.edge_links_up.begin(), record.edge_links_up.end());
  nodes.mutable_endpoints()->Reserve(static_cast<int>(record.ranks.size()));
  for (uint32_t rank = 0; rank < record.ranks.size(); ++rank) {
    nodes.mutable_endpoints()->AddAlreadyReserved(PortOf(view, rank).value());
  }
  nodes.mutable_switches()->Reserve(static_cast<int>(record.switches.size()));
  for (const TreeSwitchRecord& serving : record.switches) {
    nodes.mutable_switches()->AddAlreadyReserved(serving.guid.value());
  }
}

uint32_t DistinctPorts(const TreeView& view) {
  std::vector<uint64_t> ports;
  ports.reserve(view.record->ranks.size());
  for (uint32_t rank = 0; rank < view.record->ranks.size(); ++rank) {
    ports.push_back(PortOf(view, rank).value());
  }
  absl::c_sort(ports);
  return static_cast<uint32_t>(std::unique(ports.begin(), ports.end()) - ports.begin());
}

void PhysicalToProto(const TreeView& view, v1::PhysicalTree& physical) {
  const std::vector<uint64_t>& pairs = view.record->physical;
  const int count = static_cast<int>(pairs.size() / 2);
  physical.mutable_guids()->Reserve(count);
  physical.mutable_parents()->Reserve(count);
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    physical.mutable_guids()->AddAlreadyReserved(pairs[i]);
    physical.mutable_parents()->AddAlreadyReserved(static_cast<int32_t>(pairs[i + 1]) - 1);
  }
  const uint32_t ports = DistinctPorts(view);
  physical.set_switch_count(static_cast<uint32_t>(count) > ports ? count - ports : 0);
}

void NeighbourToProto(const TreeView& view, uint32_t node, uint32_t links, const Fabric* fabric,
                      v1::Neighbour& neighbour) {
  const uint32_t rank_count = static_cast<uint32_t>(view.record->ranks.size());
  neighbour.set_links(links);
  neighbour.set_is_switch(node >= rank_count);
  Guid guid;
  std::optional<VertexIndex> vertex;
  if (node < rank_count) {
    guid = PortOf(view, node);
    neighbour.set_rank(node);
    const auto endpoint = fabric == nullptr ? std::nullopt : fabric->FindEndpoint(guid);
    if (endpoint) vertex = fabric->Vertex(*endpoint);
  } else {
    guid = view.record->switches[node - rank_count].guid;
    const auto found = fabric == nullptr ? std::nullopt : fabric->FindSwitch(guid);
    if (found) vertex = fabric->Vertex(*found);
  }
  neighbour.set_guid(ToString(guid));
  const Lid lid = vertex ? fabric->lid(*vertex) : Lid(0);
  if (lid != Lid(0)) neighbour.set_lid(lid.value());
}

void ForestToProto(const TreeRecord& record, bool with_parents, v1::Tree& tree) {
  for (const ForestTreeRecord& mine : record.forest) {
    v1::ForestTree& one = *tree.add_forest();
    one.set_share(mine.share);
    if (with_parents) one.mutable_parents()->Add(mine.parents.begin(), mine.parents.end());
  }
}

void SummaryToProto(const TreeView& view, v1::Tree& tree) {
  const TreeRecord& record = *view.record;
  if (record.id.value() != 0) {
    tree.set_id(absl::StrCat(record.id.value()));
    *tree.mutable_create_time() = ToTimestamp(record.created);
  }
  tree.set_job_id(absl::StrCat(record.job.value()));
  tree.set_partition(view.job->partition.value());
  tree.set_type(static_cast<v1::TreeType>(record.type));
  tree.set_builder(BuilderToProto(record.builder));
  tree.set_width(record.width);
  tree.set_height(record.height);
  tree.set_radius(record.radius);
  tree.set_rank_count(static_cast<uint32_t>(record.ranks.size()));
  tree.set_switch_count(static_cast<uint32_t>(record.switches.size()));
  tree.set_operation(ToProto(record.spec.operation));
  SizesToProto(record.spec.sizes, tree);
  v1::Prediction& predicted = *tree.mutable_predicted();
  predicted.set_aggregate_us(record.aggregate_us);
  predicted.set_distribute_us(record.distribute_us);
  predicted.set_total_us(record.total_us);
  AlternativesToProto(record.alternatives, tree);
  tree.set_reason(record.reason);
  tree.set_route_kind(ToProto(view.route_kind));
  tree.set_fabric_version(record.fabric_version);
  tree.set_revision(record.revision);
  tree.set_root(RootOf(record));
  TradeoffsToProto(view.tradeoffs, tree);
  tree.set_busiest_link_us(view.busiest.us);
  tree.set_busiest_link_packets(view.busiest.packets);
}

TradePolicy PolicyFromProto(const v1::Policy& policy) {
  TradePolicy mine = {.latency = policy.latency(),
                      .entries = policy.entries(),
                      .link_load = policy.link_load(),
                      .max_busiest_link_us = policy.max_busiest_link_us()};
  if (policy.has_max_entries()) mine.max_entries = policy.max_entries();
  return mine;
}

// The ranks that either say, in that order; none if neither says any. INVALID_ARGUMENT as
// FromProto.
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

constexpr std::pair<TreeChangeKind, v1::TreeChangeKind> kChangeKinds[] = {
    {TreeChangeKind::kPresent, v1::TREE_CHANGE_KIND_PRESENT},
    {TreeChangeKind::kSynced, v1::TREE_CHANGE_KIND_SYNCED},
    {TreeChangeKind::kGranted, v1::TREE_CHANGE_KIND_GRANTED},
    {TreeChangeKind::kRevised, v1::TREE_CHANGE_KIND_REVISED},
    {TreeChangeKind::kRevoked, v1::TREE_CHANGE_KIND_REVOKED},
    {TreeChangeKind::kReleased, v1::TREE_CHANGE_KIND_RELEASED}};

}  // namespace

void ToProto(const TreeView& view, TreeDetail detail, const Snapshot* snapshot, v1::Tree& tree) {
  SummaryToProto(view, tree);
  ForestToProto(*view.record, detail == TreeDetail::kFull, tree);
  if (detail != TreeDetail::kFull) return;
  NodesToProto(view, *tree.mutable_nodes());
  if (snapshot != nullptr) OrderToProto(view, *snapshot, *tree.mutable_nodes());
  if (!view.record->physical.empty()) PhysicalToProto(view, *tree.mutable_physical());
}

absl::Status RankToProto(const TreeView& view, uint32_t rank, const Fabric* fabric,
                         v1::Tree& tree) {
  const TreeRecord& record = *view.record;
  if (rank >= record.ranks.size()) {
    return absl::InvalidArgumentError(absl::StrCat("tree ", record.id.value(), " has no rank ",
                                                   rank, ": its ranks are 0 to ",
                                                   record.ranks.size() - 1));
  }
  if (!record.forest.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("tree ", record.id.value(), " is a forest of ", record.forest.size(),
                     " trees, in each of which a rank has another place: take the whole of it"));
  }
  SummaryToProto(view, tree);
  v1::RankView& part = *tree.mutable_rank_view();
  part.set_rank(rank);
  const int32_t parent = record.parents[rank];
  if (parent >= 0) {
    NeighbourToProto(view, static_cast<uint32_t>(parent), record.edge_links_up[rank], fabric,
                     *part.mutable_parent());
  }
  for (uint32_t node = 0; node < record.parents.size(); ++node) {
    if (record.parents[node] != static_cast<int32_t>(rank)) continue;
    NeighbourToProto(view, node, record.edge_links_up[node], fabric, *part.add_children());
  }
  return absl::OkStatus();
}

namespace {

// With what all can do; the addresses, [serving switch], are for the caller to tell.
std::vector<std::string> TermsToProto(const TreeRecord& record, HelloOf hello_of,
                                      v1::Carriage& carriage) {
  carriage.set_key(record.carriage.key);
  carriage.set_segment_bytes(record.carriage.segment_bytes);
  carriage.set_window(record.carriage.window);
  uint64_t operations = UINT64_MAX, types = UINT64_MAX;
  std::vector<std::string> addresses;
  for (const TreeSwitchRecord& serving : record.switches) {
    const SwitchHello hello = hello_of(serving.guid).value_or(SwitchHello());
    operations &= hello.abilities.operations;
    types &= hello.abilities.types;
    addresses.push_back(hello.address);
  }
  carriage.set_operations(operations);
  carriage.set_types(types);
  return addresses;
}

}  // namespace

void CarriageToProto(const TreeRecord& record, HelloOf hello_of, v1::Tree& tree) {
  if (record.carriage.key.empty()) return;
  v1::Carriage& carriage = *tree.mutable_carriage();
  for (std::string& address : TermsToProto(record, hello_of, carriage)) {
    carriage.add_switch_addresses(std::move(address));
  }
}

void CarriageToProto(const TreeRecord& record, uint32_t rank, HelloOf hello_of, v1::Tree& tree) {
  if (record.carriage.key.empty()) return;
  v1::Carriage& carriage = *tree.mutable_carriage();
  std::vector<std::string> addresses = TermsToProto(record, hello_of, carriage);
  const auto parent = static_cast<size_t>(record.parents[rank]) - record.ranks.size();
  carriage.set_parent_address(std::move(addresses[parent]));
  carriage.set_number_at_parent(NumbersAtParents(record)[rank]);
}

v1::Operation ToProto(Operation operation) { return WireOf(kOperations, operation); }
v1::TreeType ToProto(TreeType type) { return WireOf(kTypes, type); }
v1::RouteKind ToProto(RouteKind kind) { return WireOf(kRouteKinds, kind); }

// The way in: CreateTreeRequest to the manager's arguments.

absl::StatusOr<CreateTreeArgs> FromProto(const v1::CreateTreeRequest& request, uint32_t max_ranks) {
  CreateTreeArgs args;
  ASSIGN_OR_RETURN(args.job, ParseJobId(request.job_id()));
  args.request_id = request.request_id();
  ASSIGN_OR_RETURN(args.ranks, RanksOf(request.rank_ranges(), request.ranks(), max_ranks));
  ASSIGN_OR_RETURN(args.operation, FromProto(request.operation()));
  for (const v1::SizeShare& share : request.sizes()) {
    args.sizes.push_back({share.bytes(), share.weight() == 0 ? 1 : share.weight()});
  }
  ASSIGN_OR_RETURN(args.type, ValueOf(kTypes, request.type(), "type"));
  ASSIGN_OR_RETURN(args.builder, ValueOf(kBuilders, request.builder(), "builder"));
  if (request.width() != 0) args.width = request.width();
  if (request.nic_degree() != 0) args.nic_degree = request.nic_degree();
  if (!request.root_switch().empty()) {
    ASSIGN_OR_RETURN(args.root_switch, ParseGuid(request.root_switch()));
  }
  if (request.has_policy()) args.policy = PolicyFromProto(request.policy());
  args.list_tradeoffs = request.tradeoffs();
  args.carried = request.carried();
  if (request.max_trees() > 1) args.max_trees = request.max_trees();
  return args;
}

absl::StatusOr<TreeDetail> FromProto(v1::TreeView view) {
  ASSIGN_OR_RETURN(const std::optional<TreeDetail> detail, ValueOf(kViews, view, "view"));
  return detail.value_or(TreeDetail::kFull);
}

absl::StatusOr<Operation> FromProto(v1::Operation operation) {
  ASSIGN_OR_RETURN(const std::optional<Operation> known,
                   ValueOf(kOperations, operation, "operation"));
  return known.value_or(Operation::kAllreduce);
}

void ToProto(const WayTime& time, v1::WayTime& message) {
  message.set_operation(ToProto(time.operation));
  message.set_length_bits(time.length_bits);
  message.set_way(WireOf(kWays, time.way));
  message.set_us(time.us);
  message.set_spread(time.spread);
  message.set_runs(time.runs);
}

absl::Status CheckApplication(absl::string_view name) {
  const absl::Status named = CheckPatternName(name);
  if (named.ok()) return named;
  return absl::InvalidArgumentError(absl::StrCat("application: ", named.message()));
}

absl::StatusOr<std::vector<WayTime>> TimesFromProto(const v1::ReleaseTreeRequest& request) {
  std::vector<WayTime> times;
  if (request.times().empty()) return times;
  RETURN_IF_ERROR(CheckApplication(request.application()));
  for (const v1::WayTime& message : request.times()) {
    WayTime& time = times.emplace_back();
    ASSIGN_OR_RETURN(time.operation, FromProto(message.operation()));
    ASSIGN_OR_RETURN(const std::optional<CollectiveWay> way,
                     ValueOf(kWays, message.way(), "times.way"));
    if (!way) return absl::InvalidArgumentError("times.way: it is not set; say which way it was");
    time.way = *way;
    time.length_bits = static_cast<uint8_t>(std::min(message.length_bits(), 255U));
    time.us = message.us();
  }
  return times;
}

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

void ToProto(const TreeChange& change, TreeDetail detail, const Snapshot* snapshot,
             v1::TreeChange& message) {
  message.Clear();
  message.set_kind(WireOf(kChangeKinds, change.kind));
  message.set_resume_token(change.resume_token);
  message.set_reason(change.reason);
  if (change.tree.record == nullptr) return;
  ToProto(change.tree, detail, snapshot, *message.mutable_tree());
}

}  // namespace coppice
