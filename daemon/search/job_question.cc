#include "daemon/search/job_question.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/tools/tree_inputs.h"
#include "proto/text/plain_text.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

using MappingStub = v1::Mapping::StubInterface;

constexpr char kGetProblem[] = "/coppice.v1.Mapping/GetMappingProblem";
constexpr char kEvaluate[] = "/coppice.v1.Mapping/EvaluateMapping";
constexpr char kPutOrder[] = "/coppice.v1.Mapping/PutOrder";
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
    : connection_(options.server, kCallDeadline, credentials) {
  if (!options.agent.empty()) agent_.emplace(options.agent);
}

template <class Request, class Response>
absl::StatusOr<Response> JobQuestion::Call(const char* name,
                                           grpc::Status (MappingStub::*method)(grpc::ClientContext*,
                                                                               const Request&,
                                                                               Response*),
                                           const Request& request) {
  if (!agent_) return connection_.Call(connection_.mapping(), method, request);
  std::string text;
  const SteadyTime deadline =
      After(static_cast<uint32_t>(absl::ToInt64Milliseconds(kCallDeadline)));
  const Outcome outcome =
      agent_->Make({name, request.SerializeAsString(), /*may_repeat=*/true, deadline}, text);
  if (!outcome.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(outcome.code), outcome.message);
  }
  Response response;
  if (response.ParseFromString(text)) return response;
  return absl::InternalError(absl::StrCat(name, ": the agent's answer cannot be read"));
}

absl::StatusOr<std::unique_ptr<JobQuestion>> JobQuestion::Ask(const SearchOptions& options) {
  // Of the connection, which goes unused where there is an agent.
  const std::string server = options.agent.empty() ? options.server : kDefaultServer;
  RETURN_IF_ERROR(CheckServer(server));
  ASSIGN_OR_RETURN(const auto credentials, CredentialsFor(server, options.tls));
  std::unique_ptr<JobQuestion> question(new JobQuestion(options, credentials));
  v1::GetMappingProblemRequest request;
  RETURN_IF_ERROR(FillTask(options, *request.mutable_task()));
  ASSIGN_OR_RETURN(question->problem_,
                   question->Call(kGetProblem, &MappingStub::GetMappingProblem, request));
  question->task_ = std::move(*request.mutable_task());
  question->task_.set_fabric_version(question->problem_.fabric_version());
  return question;
}

absl::Status JobQuestion::Measure(MappingAnswer& answer) {
  v1::EvaluateMappingRequest request;
  *request.mutable_task() = task_;
  request.mutable_permutation()->Add(answer.slots.begin(), answer.slots.end());
  ASSIGN_OR_RETURN(const v1::MappingEvaluation evaluation,
                   Call(kEvaluate, &MappingStub::EvaluateMapping, request));
  answer.before = FromProto(evaluation.before());
  answer.after = FromProto(evaluation.after());
  answer.score = evaluation.score();
  return absl::OkStatus();
}

absl::Status JobQuestion::Put(const MappingAnswer& answer) {
  v1::PutOrderRequest request;
  request.set_job_id(task_.job_id());
  request.mutable_permutation()->Add(answer.slots.begin(), answer.slots.end());
  request.set_note(std::string(CutText(ShownText(answer.reason), kMaxNote)));
  return Call(kPutOrder, &MappingStub::PutOrder, request).status();
}

absl::Status ToProto(const MappingProblem& problem, v1::MappingProblem& message) {
  ASSIGN_OR_RETURN(const PlainProblem plain, Flatten(problem));
  v1::CommunicationPattern& pattern = *message.mutable_pattern();
  pattern.set_rank_count(plain.rank_count);
  for (const Pattern::Entry& entry : plain.entries) {
    pattern.add_from(entry.from);
    pattern.add_to(entry.to);
    pattern.add_bytes(entry.bytes);
    pattern.add_messages(entry.messages);
  }
  message.mutable_place_of_position()->Add(plain.place_of_slot.begin(), plain.place_of_slot.end());
  message.mutable_distances()->Add(plain.distances.begin(), plain.distances.end());
  return absl::OkStatus();
}

absl::StatusOr<MappingProblem> FromProto(const v1::MappingProblem& message) {
  const v1::CommunicationPattern& pattern = message.pattern();
  const int pairs = pattern.from_size();
  if (pattern.to_size() != pairs || pattern.bytes_size() != pairs ||
      pattern.messages_size() != pairs) {
    return absl::InvalidArgumentError("pattern: not as many senders as receivers, bytes, messages");
  }
  PlainProblem plain;
  plain.rank_count = pattern.rank_count();
  for (int i = 0; i < pairs; ++i) {
    plain.entries.push_back(
        {pattern.from(i), pattern.to(i), pattern.bytes(i), pattern.messages(i)});
  }
  plain.place_of_slot = {message.place_of_position().begin(), message.place_of_position().end()};
  plain.distances = {message.distances().begin(), message.distances().end()};
  return Unflatten(std::move(plain));
}

}  // namespace coppice
