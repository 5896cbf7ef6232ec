#include "daemon/rpc/conversion/mapping_conversion.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/input/pattern_file.h"
#include "daemon/mapping/input/square_matrix.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "proto/text/option_words.h"

namespace coppice {
namespace {

absl::Status Bad(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

constexpr std::pair<TrafficModel, v1::TrafficModel> kTrafficModels[] = {
    {TrafficModel::kRoutes, v1::TRAFFIC_MODEL_ROUTES},
    {TrafficModel::kEvenShortestPaths, v1::TRAFFIC_MODEL_EVEN},
    {TrafficModel::kApproximate, v1::TRAFFIC_MODEL_APPROXIMATE}};
constexpr std::pair<PlaceDistanceKind, v1::PlaceDistance> kDistances[] = {
    {PlaceDistanceKind::kHops, v1::PLACE_DISTANCE_HOPS},
    {PlaceDistanceKind::kRoutes, v1::PLACE_DISTANCE_ROUTES},
    {PlaceDistanceKind::kMeasured, v1::PLACE_DISTANCE_MEASURED}};

// Of the three ways to say how far places are from each other, the one that the task takes.
absl::Status FillDistance(const v1::MappingTask& message, MappingTask& task) {
  const bool is_named = message.distance() != v1::PLACE_DISTANCE_UNSPECIFIED;
  if (is_named + !message.distance_matrix().empty() + message.has_distance_file() > 1) {
    return Bad("task", "give one of distance, distance_matrix and distance_file");
  }
  if (message.has_distance_file()) {
    ASSIGN_OR_RETURN(task.matrix, ReadDistanceMatrix(message.distance_file().text(),
                                                     message.distance_file().origin()));
  } else if (!message.distance_matrix().empty()) {
    uint32_t count = 0;
    while (uint64_t{count} * count < static_cast<uint64_t>(message.distance_matrix_size())) ++count;
    ASSIGN_OR_RETURN(task.matrix, PlaceDistances::Matrix(count, {message.distance_matrix().begin(),
                                                                 message.distance_matrix().end()}));
  }
  ASSIGN_OR_RETURN(const std::optional<PlaceDistanceKind> kind,
                   ValueOf(kDistances, message.distance(), "task.distance"));
  task.distance =
      kind.value_or(task.matrix ? PlaceDistanceKind::kMatrix : PlaceDistanceKind::kHops);
  return absl::OkStatus();
}

// Of a place in a fabric all are known.
void ToProto(const MappingMeasures& measures, v1::MappingMeasures& message) {
  message.set_max_congestion(measures.max_congestion.value_or(0));
  message.set_average_dilation(measures.average_dilation.value_or(0));
  message.set_max_dilation(measures.max_dilation.value_or(0));
  message.set_hop_bytes(measures.hop_bytes.value_or(0));
  message.set_qap_cost(measures.qap_cost);
  message.set_inter_node_bytes(measures.inter_node_bytes);
  message.set_inter_switch_bytes(measures.inter_switch_bytes.value_or(0));
}

absl::StatusOr<std::shared_ptr<const Pattern>> FromProto(const v1::CommunicationPattern& pattern) {
  const int pairs = pattern.from_size();
  if (pattern.to_size() != pairs || pattern.bytes_size() != pairs ||
      (pattern.messages_size() != 0 && pattern.messages_size() != pairs)) {
    return Bad("pattern", absl::StrCat(pairs, " from, ", pattern.to_size(), " to, ",
                                       pattern.bytes_size(), " bytes and ", pattern.messages_size(),
                                       " messages; give one of each for every pair"));
  }
  std::vector<Pattern::Entry> entries(static_cast<size_t>(pairs));
  for (int i = 0; i < pairs; ++i) {
    entries[i] = {pattern.from(i), pattern.to(i), pattern.bytes(i),
                  pattern.messages_size() == 0 ? 0.0 : pattern.messages(i)};
  }
  return Pattern::Make(pattern.rank_count(), std::move(entries));
}

absl::StatusOr<std::shared_ptr<const Pattern>> ReadFiles(const v1::InputFile& bytes,
                                                         const v1::InputFile* messages) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Pattern> pattern,
                   ReadPattern(bytes.text(), bytes.origin()));
  if (messages == nullptr) return pattern;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Pattern> counts,
                   ReadPattern(messages->text(), messages->origin()));
  return WithMessages(*pattern, *counts);
}

template <class Message>
absl::StatusOr<std::shared_ptr<const Pattern>> PatternIn(const Message& message) {
  if (message.has_messages_file() && !message.has_pattern_file()) {
    return Bad("messages_file", "it stands beside a pattern_file of bytes; give that");
  }
  if (!message.has_pattern_file()) return FromProto(message.pattern());
  return ReadFiles(message.pattern_file(),
                   message.has_messages_file() ? &message.messages_file() : nullptr);
}

size_t BytesOf(const v1::CommunicationPattern& pattern) {
  // Lists that differ in length are refused, ranks beyond a bound unless they talk.
  const auto pairs = static_cast<size_t>(pattern.from_size());
  const size_t ranks =
      std::min<size_t>(pattern.rank_count(), std::max<size_t>(Pattern::kMaxIdleRanks, 16 * pairs));
  return MakingBytes(pairs, ranks);
}

template <class Message>
size_t PatternBytes(const Message& message) {
  return BytesOf(message.pattern()) + ReadingBytes(message.pattern_file().text()) +
         ReadingBytes(message.messages_file().text());
}

}  // namespace

size_t ReadingBytes(const v1::MappingTask& task) {
  // A number of a matrix takes two characters at least; as a vector grows, three times 8 bytes.
  constexpr size_t kOfDistanceCharacter = 12;
  return PatternBytes(task) + kOfDistanceCharacter * task.distance_file().text().size() +
         task.SpaceUsedLong();  // hosts and distances that are copied, and more
}

size_t ReadingBytes(const v1::PutPatternRequest& request) { return PatternBytes(request); }

size_t ReadingBytes(const v1::PlacementTraffic& traffic) {
  return BytesOf(traffic.pattern()) + ReadingBytes(traffic.pattern_file().text());
}

absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::MappingTask& task) {
  return PatternIn(task);
}

absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::PutPatternRequest& request) {
  if (request.has_pattern() + request.has_pattern_file() != 1) {
    return Bad("pattern", "give either pattern or pattern_file");
  }
  return PatternIn(request);
}

absl::StatusOr<std::shared_ptr<const Pattern>> PatternOf(const v1::PlacementTraffic& traffic) {
  if (traffic.has_pattern()) return FromProto(traffic.pattern());
  return ReadFiles(traffic.pattern_file(), nullptr);
}

absl::StatusOr<std::optional<LaunchFormat>> EmitOf(const std::string& emit) {
  if (emit.empty()) return std::nullopt;
  const std::optional<LaunchFormat> format = ParseLaunchFormat(emit);
  if (format.has_value()) return format;
  return Bad("emit", absl::StrCat("there is no format \"", emit, "\"; choose one of ",
                                  absl::StrJoin(LaunchFormatNames(), ", ")));
}

absl::StatusOr<MappingTask> FromProto(const v1::MappingTask& message) {
  MappingTask task;
  if (message.job_id().empty() == message.hosts().empty()) {
    return Bad("task", "give either job_id or hosts");
  }
  if (!message.job_id().empty()) {
    ASSIGN_OR_RETURN(task.job, ParseJobId(message.job_id()));
    if (message.ranks_per_host() != 0) {
      return Bad("task.ranks_per_host", "a job says itself where its ranks are; leave it out");
    }
  }
  task.hosts.assign(message.hosts().begin(), message.hosts().end());
  if (message.ranks_per_host() != 0) task.ranks_per_host = message.ranks_per_host();
  if (message.has_pattern() + message.has_pattern_file() + !message.pattern_name().empty() != 1) {
    return Bad("task", "give one of pattern, pattern_name and pattern_file");
  }
  if (message.pattern_name().empty()) {
    ASSIGN_OR_RETURN(task.pattern, PatternOf(message));
  }
  task.objective = {.congestion = message.objective().congestion(),
                    .hop_bytes = message.objective().dilation(),
                    .qap_cost = message.objective().qap()};
  ASSIGN_OR_RETURN(const std::optional<TrafficModel> traffic,
                   ValueOf(kTrafficModels, message.traffic(), "task.traffic"));
  task.traffic = traffic.value_or(TrafficModel::kRoutes);
  RETURN_IF_ERROR(FillDistance(message, task));
  task.ignore_load = message.ignore_load();
  task.fabric_version = message.fabric_version();
  return task;
}

absl::StatusOr<MapRanksArgs> FromProto(const v1::MapRanksRequest& request) {
  MapRanksArgs args;
  ASSIGN_OR_RETURN(args.task, FromProto(request.task()));
  args.algorithm = request.algorithm();
  if (request.has_budget()) {
    ASSIGN_OR_RETURN(const absl::Duration budget, FromProto(request.budget(), "budget"));
    if (budget <= absl::ZeroDuration()) return Bad("budget", "give a time above 0");
    args.budget = budget;
  }
  if (request.seed() != 0) args.seed = request.seed();
  ASSIGN_OR_RETURN(args.emit, EmitOf(request.emit()));
  for (const auto& [name, value] : request.options()) args.parameters.emplace_back(name, value);
  return args;
}

void ToProto(const MappingView& view, v1::MappingResult& message) {
  const MappingAnswer& answer = view.answer;
  message.set_algorithm(answer.algorithm);
  ToProto(answer.before, *message.mutable_before());
  ToProto(answer.after, *message.mutable_after());
  message.mutable_permutation()->Add(answer.slots.begin(), answer.slots.end());
  message.set_seconds(absl::ToDoubleSeconds(view.took));
  message.set_reason(answer.reason);
  message.set_fabric_version(view.fabric_version);
  message.set_score(answer.score);
  message.set_launch_text(view.launch_text);
}

void ToProto(const EvaluationView& view, v1::MappingEvaluation& message) {
  ToProto(view.before, *message.mutable_before());
  ToProto(view.after, *message.mutable_after());
  message.set_score(view.score);
  for (const BusyLink& busy : view.busiest) {
    v1::BusyLink& link = *message.add_busiest();
    link.set_from(busy.from);
    link.set_to(busy.to);
    link.set_bytes(busy.bytes);
    link.set_capacity_gbps(busy.capacity_gbps);
  }
  message.set_fabric_version(view.fabric_version);
  message.set_launch_text(view.launch_text);
}

void ToProto(const ProblemView& view, v1::MappingProblem& message) {
  const PlainProblem& problem = view.problem;
  v1::CommunicationPattern& pattern = *message.mutable_pattern();
  pattern.set_rank_count(problem.rank_count);
  for (const Pattern::Entry& entry : problem.entries) {
    pattern.add_from(entry.from);
    pattern.add_to(entry.to);
    pattern.add_bytes(entry.bytes);
    pattern.add_messages(entry.messages);
  }
  message.mutable_place_of_position()->Add(problem.place_of_slot.begin(),
                                           problem.place_of_slot.end());
  message.mutable_distances()->Add(problem.distances.begin(), problem.distances.end());
  for (const std::string& host : view.host_of_place) message.add_host_of_place(host);
  message.set_fabric_version(view.fabric_version);
}

void ToProto(const OrderRecord& order, v1::StoredOrder& message) {
  message.set_job_id(absl::StrCat(order.job.value()));
  message.mutable_permutation()->Add(order.positions.begin(), order.positions.end());
  message.set_note(order.note);
  *message.mutable_create_time() = ToTimestamp(order.created);
}

void ToProto(const MappingAlgorithm& algorithm, v1::Algorithm& message) {
  message.set_name(std::string(algorithm.name));
  message.set_source(std::string(algorithm.source));
  message.set_refines(algorithm.refines);
  for (const AlgorithmParameter& parameter : algorithm.parameters) {
    v1::AlgorithmOption& option = *message.add_options();
    option.set_name(std::string(parameter.name));
    option.set_preset(parameter.preset);
    option.set_least(parameter.least);
    option.set_greatest(parameter.greatest);
    option.set_meaning(std::string(parameter.meaning));
  }
}

}  // namespace coppice
