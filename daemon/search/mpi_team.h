// The ranks of an MPI communicator as a SearchTeam, and what else they tell each other. One of the
// two files that know MPI; the other is main.cc.
//
// No rank waits for ever: whoever has heard nothing from the others until a deadline returns an
// error that says so. A rank that waits sleeps between looks, so that more ranks than cores do not
// rob each other of time. MPI calls never return errors (MPI_ERRORS_ARE_FATAL): a rank that dies
// ends the run through its launcher.
#ifndef COPPICE_DAEMON_SEARCH_MPI_TEAM_H_
#define COPPICE_DAEMON_SEARCH_MPI_TEAM_H_

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/clock.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Calls of one object come from one thread at a time (MPI_THREAD_SERIALIZED).
class MpiTeam final : public SearchTeam {
 public:
  // `clock` outlives it.
  MpiTeam(MPI_Comm communicator, const Clock* clock);

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
  // Until all are done, or the deadline.
  absl::Status Wait(absl::Span<MPI_Request> requests) const;
  absl::Status Wait(MPI_Request request) const { return Wait(absl::MakeSpan(&request, 1)); }

  const MPI_Comm communicator_;
  const Clock* const clock_;
  int process_ = 0, count_ = 1;
  absl::Duration deadline_ = absl::InfiniteDuration();
  // What MPI reads and writes must be there even after a wait that was given up.
  std::vector<char> sent_, received_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_SEARCH_MPI_TEAM_H_
