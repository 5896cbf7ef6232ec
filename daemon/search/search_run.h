// A run of coppice-search: rank 0 asks, tells and answers, all ranks search.
//
//     rank 0     files or daemon --> question --broadcast--> search --> report, daemon
//     others                                      \--------> search
//
// Only rank 0 reads files, speaks to a daemon or prints, so that other nodes need neither, and
// what is wrong with the input is said once. All return the same order (SearchTeam).
#ifndef COPPICE_DAEMON_SEARCH_SEARCH_RUN_H_
#define COPPICE_DAEMON_SEARCH_SEARCH_RUN_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coppice/v1/search.pb.h"
#include "daemon/search/job_question.h"
#include "daemon/search/mpi_team.h"
#include "daemon/search/search_options.h"
#include "daemon/tools/map_options.h"
#include "daemon/tools/map_search.h"

namespace coppice {

// What rank 0 knows before the others hear of it.
struct LeadersQuestion {
  MapQuestion map;                   // with the fabric, if there is one
  std::unique_ptr<JobQuestion> job;  // null: from files
  const MappingAlgorithm* start = nullptr;
  v1::SearchAssignment assignment;
};

// In rank 0 alone. NOT_FOUND: no such algorithm; INVALID_ARGUMENT: one that does not span
// processes (lists those that do), an option it does not know; RESOURCE_EXHAUSTED: too many slots;
// errors of LoadMapQuestion and JobQuestion::Ask.
absl::StatusOr<LeadersQuestion> MakeQuestion(const SearchOptions& options);

// Collective. Rank 0 tells its question, or, with null, that there is none. The others give null;
// theirs returns nullptr when there is nothing to do.
absl::StatusOr<std::unique_ptr<v1::SearchAssignment>> ShareAssignment(
    const v1::SearchAssignment* assignment, MpiTeam& team);

// Collective. Rank 0 gives its question, the others null. Any error ends the run for all ranks.
absl::StatusOr<MapResult> SearchTogether(const v1::SearchAssignment& assignment,
                                         const LeadersQuestion* question, MpiTeam& team);

// In rank 0: to the daemon, to files, to standard output.
absl::Status Report(const SearchOptions& options, const LeadersQuestion& question,
                    MapResult& result);

}  // namespace coppice

#endif  // COPPICE_DAEMON_SEARCH_SEARCH_RUN_H_
