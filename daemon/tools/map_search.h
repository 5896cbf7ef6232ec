// How coppice-plan map and coppice-search search: within a budget of time, beside a thread that
// tells standard error how a long search goes, and until SIGINT at the latest, which ends it with
// the best so far.
#ifndef COPPICE_DAEMON_TOOLS_MAP_SEARCH_H_
#define COPPICE_DAEMON_TOOLS_MAP_SEARCH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/tools/map_options.h"

namespace coppice {

struct MapSearch {
  const MappingAlgorithm* algorithm = nullptr;
  const MappingAlgorithm* start = nullptr;  // null: the present order
  AlgorithmOptions options;
  absl::Duration budget;
  SearchTeam* team = nullptr;            // of `algorithm`; null: it is alone
  const char* program = "coppice-plan";  // whose name progress bears; null: nobody is told
};

// NOT_FOUND: no algorithm of that name.
absl::StatusOr<MapSearch> MakeMapSearch(const MapOptions& options);

struct MapResult {
  MappingAnswer answer;
  absl::Duration took;
};

// `problem` is checked. With a team, `algorithm` runs on a thread of its own and the caller's
// waits. Errors as Measure and AnswerMapping. One call at a time: it takes SIGINT over until it
// returns; a second SIGINT ends the process.
absl::StatusOr<MapResult> RunMapSearch(const MappingProblem& problem, const MapSearch& search);

// What coppice-plan map and coppice-search print of an order that they found; and the list of
// algorithms. Decides nothing.

// Writes what was found as the options say: for a launcher, as JSON or for people, with the busiest
// links if they were asked for. Errors as LaunchText, FindBusyLinks, WriteTextFile and PrintText.
absl::Status PrintMap(const MapOptions& options, const MapQuestion& question,
                      const MapResult& result);

// Prints names, sources and parameters of all algorithms. Errors as PrintText.
absl::Status ListAlgorithms(const MapOptions& options);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_MAP_SEARCH_H_
