// A question that a running coppiced knows the parts of: a job's places, how far they are from each
// other, a stored pattern; and the way of the answer back to it: over a connection of its own, or,
// in the user's name, through the node's agent, where users have no rights at the daemon but by it.
#ifndef COPPICE_DAEMON_SEARCH_JOB_QUESTION_H_
#define COPPICE_DAEMON_SEARCH_JOB_QUESTION_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/library/agent_calls.h"
#include "coppice/v1/mapping.pb.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/search/search_options.h"

namespace coppice {

// One for each run.
class JobQuestion final {
 public:
  // Asks the daemon for the problem. Errors are the daemon's, those of the readers of --pattern and
  // --distance, and INVALID_ARGUMENT for a bad --server.
  static absl::StatusOr<std::unique_ptr<JobQuestion>> Ask(const SearchOptions& options);

  const v1::MappingProblem& problem() const { return problem_; }

  // Has the daemon measure the answer's order, on the fabric that the question was asked on, and
  // puts its measures into `answer`. ABORTED: the fabric has moved since.
  absl::Status Measure(MappingAnswer& answer);
  // Leaves the order with the daemon, for the launcher.
  absl::Status Put(const MappingAnswer& answer);

 private:
  JobQuestion(const SearchOptions& options,
              const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  // `name` is the method's, as the agent knows it.
  template <class Request, class Response>
  absl::StatusOr<Response> Call(const char* name,
                                grpc::Status (v1::Mapping::StubInterface::*method)(
                                    grpc::ClientContext*, const Request&, Response*),
                                const Request& request);

  Connection connection_;
  std::optional<AgentCalls> agent_;  // where the daemon is asked through one
  v1::MappingTask task_;
  v1::MappingProblem problem_;
};

// A mapping problem as the message that the daemon answers with and that rank 0 tells the others.

// Fills in pattern, places and distances. Errors as Flatten.
absl::Status ToProto(const MappingProblem& problem, v1::MappingProblem& message);

// For a search by QAP cost. INVALID_ARGUMENT: lists of unlike lengths, and as Unflatten.
absl::StatusOr<MappingProblem> FromProto(const v1::MappingProblem& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_SEARCH_JOB_QUESTION_H_
