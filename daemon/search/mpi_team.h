// The ranks of an MPI program as a SearchTeam, and what else they tell each other. Only mpi_team.cc
// knows MPI, so that it alone is compiled for each.
//
// No rank waits for ever: whoever has heard nothing from the others until a deadline returns an
// error that says so. A rank that waits sleeps between looks, so that more ranks than cores do not
// rob each other of time. MPI calls never return errors (MPI_ERRORS_ARE_FATAL): a rank that dies
// ends the run through its launcher.
#ifndef COPPICE_DAEMON_SEARCH_MPI_TEAM_H_
#define COPPICE_DAEMON_SEARCH_MPI_TEAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Calls of one object come from one thread at a time (MPI_THREAD_SERIALIZED).
class MpiTeam final : public SearchTeam {
 public:
  // Once, before anything else: whether MPI allows calls from more than one thread, one at a time.
  static bool Start(int& argc, char**& argv);
  // Once, at the end.
  static void Finish();
  // Ends all ranks. Where it returns, the caller ends with that status.
  static void Abort(int exit_status);

  // All ranks of the program. `clock` outlives it.
  explicit MpiTeam(const Clock* clock);

  // From now on waits end at `deadline` of the clock's monotonic time: DEADLINE_EXCEEDED.
  void WaitUntil(absl::Duration deadline) { deadline_ = deadline; }

  // Collective: the text of rank 0 becomes everybody's. RESOURCE_EXHAUSTED, in every rank: 2 GiB or
  // more.
  absl::Status Broadcast(std::string& text);
  // How many ranks run on this rank's node, itself included. Collective.
  absl::StatusOr<uint32_t> RanksOfNode();

  uint32_t process() const override { return static_cast<uint32_t>(process_); }
  uint32_t process_count() const override { return static_cast<uint32_t>(count_); }
  absl::StatusOr<bool> Any(bool mine) override;
  absl::Status ShareBest(DenseSolution& solution) override;
  absl::Status PassOn(DenseSolution& solution) override;
  absl::StatusOr<std::vector<DenseSolution>> Gather(std::vector<DenseSolution> mine) override;
  absl::StatusOr<std::vector<DenseSolution>> Scatter(std::vector<DenseSolution> all,
                                                     uint32_t each) override;

 private:
  class Requests;  // of mpi.h

  // Until all are done, or the deadline.
  absl::Status Wait(const Requests& requests) const;

  const Clock* const clock_;
  int process_ = 0, count_ = 1;
  absl::Duration deadline_ = absl::InfiniteDuration();
  // What MPI reads and writes must be there even after a wait that was given up.
  std::vector<char> sent_, received_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_SEARCH_MPI_TEAM_H_
