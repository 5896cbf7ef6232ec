#include "daemon/search/job_question.h"

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/library/retry_pause.h"
#include "daemon/base/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/text/command_line.h"
#include "proto/text/option_words.h"
#include "proto/text/plain_text.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

// A call may bring 128 MiB of distances.
constexpr absl::Duration kCallDeadline = absl::Minutes(1);
// Daemons and agents that are started anew are back in that time, and have swept the fabric.
// Whoever is not there at the beginning may only have slipped.
constexpr absl::Duration kRestart = absl::Minutes(1), kSlip = absl::Seconds(2);
constexpr std::chrono::milliseconds kFirstPause(100), kMaxPause(2'000);
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

absl::StatusOr<std::unique_ptr<Connection>> ConnectionFor(const SearchOptions& options) {
  if (!options.agent.empty()) {
    return std::make_unique<Connection>("the agent at " + options.agent, kCallDeadline,
                                        AgentChannel(options.agent));
  }
  RETURN_IF_ERROR(CheckServer(options.server));
  ASSIGN_OR_RETURN(const auto credentials, CredentialsFor(options.server, options.tls));
  return std::make_unique<Connection>(options.server, kCallDeadline, credentials);
}

constexpr char kPreset[] = "memetic";

// What a daemon is asked for does not come from files.
void CheckJobUsage(const CLI::App& app, const SearchOptions& options) {
  CheckNoneOf(app, "--job",
              {"--qap", "--fabric", "--hosts", "--hierarchy", "--distances", "--ranks-per-host",
               "--routes", "--traffic", "--load", "--links", "--bytes-per-message"});
  if (options.map.pattern.empty() == options.application.empty()) {
    throw CLI::RequiredError("beside --job, one of --pattern and --application");
  }
}

}  // namespace

template <class Request, class Response>
absl::StatusOr<Response> JobQuestion::Call(grpc::Status (MappingStub::*method)(grpc::ClientContext*,
                                                                               const Request&,
                                                                               Response*),
                                           const Request& request) {
  const absl::Time now = absl::Now();
  const absl::Time last = now + (problem_.fabric_version() == 0 ? kSlip : kRestart);
  RetryPause pause(kFirstPause, kMaxPause, static_cast<uint64_t>(absl::ToUnixNanos(now)));
  for (;;) {
    absl::StatusOr<Response> answer = connection_->Call(method, request);
    const bool is_lost = absl::IsUnavailable(answer.status()) || absl::IsCancelled(answer.status());
    if (!is_lost || absl::Now() >= last) return answer;
    absl::SleepFor(absl::FromChrono(pause.Next()));
  }
}

absl::StatusOr<std::unique_ptr<JobQuestion>> JobQuestion::Ask(const SearchOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, ConnectionFor(options));
  std::unique_ptr<JobQuestion> question(new JobQuestion(std::move(connection)));
  v1::GetMappingProblemRequest request;
  RETURN_IF_ERROR(FillTask(options, *request.mutable_task()));
  ASSIGN_OR_RETURN(question->problem_, question->Call(&MappingStub::GetMappingProblem, request));
  question->task_ = std::move(*request.mutable_task());
  question->task_.set_fabric_version(question->problem_.fabric_version());
  return question;
}

bool JobQuestion::IsAsBefore() {
  v1::GetMappingProblemRequest request;
  *request.mutable_task() = task_;
  request.mutable_task()->clear_fabric_version();
  absl::StatusOr<v1::MappingProblem> now = Call(&MappingStub::GetMappingProblem, request);
  if (!now.ok()) return false;
  task_.set_fabric_version(now->fabric_version());
  now->set_fabric_version(problem_.fabric_version());
  return google::protobuf::util::MessageDifferencer::Equals(*now, problem_);
}

absl::Status JobQuestion::Measure(MappingAnswer& answer) {
  v1::EvaluateMappingRequest request;
  *request.mutable_task() = task_;
  request.mutable_permutation()->Add(answer.slots.begin(), answer.slots.end());
  auto evaluation = Call(&MappingStub::EvaluateMapping, request);
  // The version moves with every change and every start of the daemon.
  if (absl::IsAborted(evaluation.status()) && IsAsBefore()) {
    request.mutable_task()->set_fabric_version(task_.fabric_version());
    evaluation = Call(&MappingStub::EvaluateMapping, request);
  }
  RETURN_IF_ERROR(evaluation.status());
  answer.before = FromProto(evaluation->before());
  answer.after = FromProto(evaluation->after());
  answer.score = evaluation->score();
  return absl::OkStatus();
}

absl::Status JobQuestion::Put(const MappingAnswer& answer) {
  v1::PutOrderRequest request;
  request.set_job_id(task_.job_id());
  request.mutable_permutation()->Add(answer.slots.begin(), answer.slots.end());
  request.set_note(std::string(CutText(ShownText(answer.reason), kMaxNote)));
  return Call(&MappingStub::PutOrder, request).status();
}

void AddSearchOptions(CLI::App& app, SearchOptions& options) {
  options.map.algorithm = kPreset;
  AddMapOptions(app, options.map);
  app.get_option("--algorithm")
      ->description("parallel-annealing, parallel-genetic, combined or memetic; default memetic");
  app.get_option("--threads")
      ->description("Of each rank; default the node's processors, shared by its ranks");
  app.get_option("--objective")->description("qap, which is all that is searched for here");
  app.add_option("--grace", options.grace,
                 "How long after the budget a rank waits for others that are silent; default 30s")
      ->check(Understood(ParseBudget, "a time such as 30s"));
  AddText(app, "--job", options.job,
          "Search for this job of a running coppiced, and leave the order there");
  AddText(app, "--application", options.application,
          "With --job: the pattern that the daemon keeps under this name");
  AddText(app, "--server", options.server,
          "With --job: unix:PATH or HOST:PORT; default $COPPICE_SERVER, then the daemon's socket");
  AddText(app, "--agent", options.agent,
          "With --job: socket of the node's agent, which asks the daemon in your name; instead of "
          "--server");
  app.get_option("--agent")->excludes(app.get_option("--server"));
  AddText(app, "--tls-ca", options.tls.ca,
          "With HOST:PORT: file of the authority of the daemon's certificate; $COPPICE_TLS_CA");
  AddText(app, "--tls-cert", options.tls.cert, "File of a certificate of yours; $COPPICE_TLS_CERT");
  AddText(app, "--tls-key", options.tls.key, "File of its key; $COPPICE_TLS_KEY");
  AddText(app, "--munge", options.tls.munge,
          "Without a certificate: be who you are here, by MUNGE; the socket of munged, or "
          "\"default\"; $COPPICE_MUNGE");
  AddText(app, "--munge-realm", options.tls.munge_realm,
          "The realm that the daemon asks for; $COPPICE_MUNGE_REALM");
}

void CheckUsage(const CLI::App& app, const SearchOptions& options) {
  CheckMapWords(app, options.map);
  if (options.map.list) return;
  if (!options.map.objective.empty() && options.map.objective != "qap") {
    throw CLI::ValidationError("--objective", "only qap is searched for over MPI");
  }
  if (!options.job.empty()) return CheckJobUsage(app, options);
  if (!options.agent.empty()) throw CLI::RequiredError("--job beside --agent");
  if (!options.application.empty()) throw CLI::RequiredError("--job beside --application");
  CheckUsage(app, options.map);
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
