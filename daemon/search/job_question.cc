#include "daemon/search/job_question.h"

#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/tools/tree_inputs.h"

namespace coppice {
namespace {

using MappingStub = v1::Mapping::StubInterface;

// A call may bring 128 MiB of distances.
constexpr absl::Duration kCallDeadline = absl::Minutes(1);
// What PutOrder takes.
constexpr size_t kMaxNote = 1024;

absl::Status FillFile(const std::string& path, v1::InputFile& file) {
  ASSIGN_OR_RETURN(*file.mutable_text(), ReadTextFile(path));
  file.set_origin(path);
  return absl::OkStatus();
}

absl::Status FillTask(const SearchOptions& options, v1::MappingTask& task) {
  task.set_job_id(options.job);
  task.mutable_objective()->set_qap(1);
  if (options.map.pattern.empty()) {
    task.set_pattern_name(options.application);
  } else {
    RETURN_IF_ERROR(FillFile(options.map.pattern, *task.mutable_pattern_file()));
  }
  if (!options.map.messages.empty()) {
    RETURN_IF_ERROR(FillFile(options.map.messages, *task.mutable_messages_file()));
  }
  const std::string& distance = options.map.distance;
  if (distance == "measured") {
    task.set_distance(v1::PLACE_DISTANCE_MEASURED);
  } else if (distance == "routes") {
    task.set_distance(v1::PLACE_DISTANCE_ROUTES);
  } else if (!distance.empty() && distance != "hops") {
    RETURN_IF_ERROR(FillFile(distance, *task.mutable_distance_file()));
  }
  return absl::OkStatus();
}

MappingMeasures FromProto(const v1::MappingMeasures& message) {
  MappingMeasures measures;
  measures.max_congestion = message.max_congestion();
  measures.average_dilation = message.average_dilation();
  measures.max_dilation = message.max_dilation();
  measures.hop_bytes = message.hop_bytes();
  measures.qap_cost = message.qap_cost();
  measures.inter_node_bytes = message.inter_node_bytes();
  measures.inter_switch_bytes = message.inter_switch_bytes();
  return measures;
}

}  // namespace

JobQuestion::JobQuestion(const SearchOptions& options,
                         const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : connection_(options.server, kCallDeadline, credentials) {}

absl::StatusOr<std::unique_ptr<JobQuestion>> JobQuestion::Ask(const SearchOptions& options) {
  RETURN_IF_ERROR(CheckServer(options.server));
  ASSIGN_OR_RETURN(const auto credentials, CredentialsFor(options.server, options.tls));
  std::unique_ptr<JobQuestion> question(new JobQuestion(options, credentials));
  v1::GetMappingProblemRequest request;
  RETURN_IF_ERROR(FillTask(options, *request.mutable_task()));
  Connection& connection = question->connection_;
  ASSIGN_OR_RETURN(question->problem_,
                   connection.Call(connection.mapping(), &MappingStub::GetMappingProblem, request));
  question->task_ = std::move(*request.mutable_task());
  question->task_.set_fabric_version(question->problem_.fabric_version());
  return question;
}

absl::Status JobQuestion::Measure(MappingAnswer& answer) {
  v1::EvaluateMappingRequest request;
  *request.mutable_task() = task_;
  request.mutable_permutation()->Add(answer.slots.begin(), answer.slots.end());
  ASSIGN_OR_RETURN(const v1::MappingEvaluation evaluation,
                   connection_.Call(connection_.mapping(), &MappingStub::EvaluateMapping, request));
  answer.before = FromProto(evaluation.before());
  answer.after = FromProto(evaluation.after());
  answer.score = evaluation.score();
  return absl::OkStatus();
}

absl::Status JobQuestion::Put(const MappingAnswer& answer) {
  v1::PutOrderRequest request;
  request.set_job_id(task_.job_id());
  request.mutable_permutation()->Add(answer.slots.begin(), answer.slots.end());
  request.set_note(answer.reason.substr(0, kMaxNote));
  return connection_.Call(connection_.mapping(), &MappingStub::PutOrder, request).status();
}

}  // namespace coppice
