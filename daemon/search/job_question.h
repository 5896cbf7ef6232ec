// A question that a running coppiced knows the parts of: a job's places, how far they are from each
// other, a stored pattern; and the way of the answer back to it: over a connection of its own, or,
// in the user's name, through the node's agent, where users have no rights at the daemon but by it.
#ifndef COPPICE_DAEMON_SEARCH_JOB_QUESTION_H_
#define COPPICE_DAEMON_SEARCH_JOB_QUESTION_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "coppice/v1/mapping.pb.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/tools/map_options.h"

namespace coppice {

// What coppice-search is asked on the command line: the options of coppice-plan map, and those for
// a question that a running coppiced answers.
struct SearchOptions {
  MapOptions map;
  std::string grace = "30s";
  // Of a daemon.
  std::string job, application;
  std::string server = DefaultServer();
  std::string agent;  // socket of the one that the daemon is asked through; empty: none
  TlsOptions tls = DefaultTls();
};

void AddSearchOptions(CLI::App& app, SearchOptions& options);

// To be called after parsing. Throws CLI::RequiredError or CLI::ExcludesError where options are
// missing or contradict each other.
void CheckUsage(const CLI::App& app, const SearchOptions& options);

// One for each run.
class JobQuestion final {
 public:
  // Asks the daemon for the problem. Errors are the daemon's, those of the readers of --pattern and
  // --distance, and INVALID_ARGUMENT for a bad --server.
  static absl::StatusOr<std::unique_ptr<JobQuestion>> Ask(const SearchOptions& options);

  const v1::MappingProblem& problem() const { return problem_; }

  // Has the daemon measure the answer's order, on the fabric that the question was asked on, and
  // puts its measures into `answer`. ABORTED: the problem is another one since.
  absl::Status Measure(MappingAnswer& answer);
  // Leaves the order with the daemon, for the launcher.
  absl::Status Put(const MappingAnswer& answer);

 private:
  explicit JobQuestion(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  // Again, after a pause, while that is UNAVAILABLE, or CANCELLED, as by a daemon that ends: all
  // calls may be made twice.
  template <class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (MappingStub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                                const Request& request);
  // Whether the problem is still the one that was searched, on another version of the fabric, which
  // the task has then.
  bool IsAsBefore();

  const std::unique_ptr<Connection> connection_;
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
