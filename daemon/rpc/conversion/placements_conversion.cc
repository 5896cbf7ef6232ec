#include "daemon/rpc/conversion/placements_conversion.h"

#include <variant>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/mapping_conversion.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

template <class Names>
std::vector<std::string> ListOf(const Names& names) {
  return {names.begin(), names.end()};
}

constexpr std::pair<PlacementState, v1::PlacementState> kStates[] = {
    {PlacementState::kHeld, v1::PLACEMENT_STATE_HELD},
    {PlacementState::kStarted, v1::PLACEMENT_STATE_STARTED},
    {PlacementState::kReleased, v1::PLACEMENT_STATE_RELEASED},
    {PlacementState::kExpired, v1::PLACEMENT_STATE_EXPIRED}};

using google::protobuf::FieldDescriptor;

// Terms and measures are found by their names. A field that the message lacks, or has of another
// type, is null, and left out: placements_service_test looks that there is none.
const FieldDescriptor* FieldOf(const google::protobuf::Message& message, const char* name,
                               FieldDescriptor::CppType type) {
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
  return field != nullptr && field->cpp_type() == type ? field : nullptr;
}

void Set(v1::PlacementMeasures& message, const char* name, uint32_t value) {
  const FieldDescriptor* const field = FieldOf(message, name, FieldDescriptor::CPPTYPE_UINT32);
  if (field != nullptr) message.GetReflection()->SetUInt32(&message, field, value);
}

void Set(v1::PlacementMeasures& message, const char* name, int32_t value) {
  const FieldDescriptor* const field = FieldOf(message, name, FieldDescriptor::CPPTYPE_INT32);
  if (field != nullptr) message.GetReflection()->SetInt32(&message, field, value);
}

void Set(v1::PlacementMeasures& message, const char* name, double value) {
  const FieldDescriptor* const field = FieldOf(message, name, FieldDescriptor::CPPTYPE_DOUBLE);
  if (field != nullptr) message.GetReflection()->SetDouble(&message, field, value);
}

void ToProto(const PlacementMeasures& measures, v1::PlacementMeasures& message) {
  ForEachMeasure([&](const PlacementMeasure& measure) {
    std::visit([&](auto member) { Set(message, measure.name, measures.*member); }, measure.member);
  });
}

}  // namespace

absl::StatusOr<PlacementTask> FromProto(const v1::PlacementRequest& request) {
  PlacementTask task;
  const v1::PlacementConstraints& c = request.constraints();
  task.candidates = ListOf(c.candidates());
  task.include = ListOf(c.include());
  task.avoid = ListOf(c.avoid());
  task.constraints.host_count = c.node_count();
  task.constraints.hosts_per_leaf = c.nodes_per_leaf();
  task.constraints.max_hosts_per_leaf = c.max_nodes_per_leaf();
  task.constraints.max_leaf_switches = c.max_leaf_switches();
  task.constraints.min_leaf_switches = c.min_leaf_switches();
  task.constraints.min_pods = c.min_pods();
  task.constraints.same_pod = c.same_pod();
  task.constraints.exclusive_switches = c.exclusive_switches();
  const v1::PlacementObjective& objective = request.objective();
  for (const PlacementTerm& term : kPlacementTerms) {
    const FieldDescriptor* const field =
        FieldOf(objective, term.name, FieldDescriptor::CPPTYPE_DOUBLE);
    if (field == nullptr) continue;
    task.objective.*term.weight = objective.GetReflection()->GetDouble(objective, field);
  }
  const v1::PlacementTraffic& traffic = request.traffic();
  task.pattern_name = traffic.pattern_name();
  if (traffic.ranks_per_node() != 0) task.ranks_per_node = traffic.ranks_per_node();
  task.trees = traffic.trees();
  if (request.seed() != 0) task.seed = request.seed();
  if (request.has_budget()) {
    ASSIGN_OR_RETURN(task.budget, FromProto(request.budget(), "budget"));
    if (task.budget == absl::ZeroDuration()) {
      return absl::InvalidArgumentError("budget: 0 s is no time; leave it out for the default");
    }
  }
  return task;
}

absl::StatusOr<CreatePlacementArgs> FromProto(const v1::CreatePlacementRequest& request) {
  CreatePlacementArgs args;
  args.request_id = request.request_id();
  args.display_name = request.display_name();
  ASSIGN_OR_RETURN(args.task, FromProto(request.placement()));
  if (request.has_term()) {
    ASSIGN_OR_RETURN(args.term, FromProto(request.term(), "term"));
  }
  return args;
}

absl::StatusOr<StartPlacementArgs> FromProto(const v1::StartPlacementRequest& request) {
  StartPlacementArgs args;
  ASSIGN_OR_RETURN(args.id, ParsePlacementId(request.id()));
  args.request_id = request.request_id();
  args.display_name = request.display_name();
  args.ranks_per_node = request.ranks_per_node();
  if (request.has_lease()) {
    ASSIGN_OR_RETURN(args.lease, FromProto(request.lease(), "lease"));
  }
  args.arrange_ranks = request.arrange_ranks();
  return args;
}

void ToProto(const PlacementView& view, bool in_full, v1::Placement& message) {
  const PlacementRecord& record = *view.record;
  message.set_fabric_version(record.fabric_version);
  if (!view.why_not.empty()) {
    message.set_why_not(view.why_not);
    return;
  }
  std::vector<std::string> sorted = record.nodes;
  SortNodeNames(sorted);
  message.set_node_list(FormatNodeList(sorted));
  message.mutable_nodes()->Add(record.nodes.begin(), record.nodes.end());
  if (in_full) {
    message.mutable_permutation()->Add(record.permutation.begin(), record.permutation.end());
    ToProto(view.measures, *message.mutable_measures());
    message.set_reason(record.reason);
  }
  message.set_is_optimal(view.is_optimal);
  if (record.id == PlacementId()) return;  // advice
  message.set_id(absl::StrCat(record.id.value()));
  message.set_display_name(record.name);
  message.set_owner(record.owner);
  message.set_state(WireOf(kStates, record.state));
  if (record.state == PlacementState::kStarted) {
    message.set_job_id(absl::StrCat(record.job.value()));
  }
  *message.mutable_term() = ToDuration(record.term);
  *message.mutable_term_left() = ToDuration(view.term_left);
  *message.mutable_create_time() = ToTimestamp(record.created);
}

void ToProto(const NodeDistancesView& view, v1::NodeDistances& message) {
  message.mutable_nodes()->Add(view.nodes.begin(), view.nodes.end());
  message.mutable_hops()->Add(view.hops.begin(), view.hops.end());
  message.mutable_levels()->Add(view.levels.begin(), view.levels.end());
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
