#include "daemon/search/mpi_team.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// Looks without a rest before a rank begins to sleep: what a message within a node takes.
constexpr int kLooksAtOnce = 200;
constexpr absl::Duration kFirstSleep = absl::Microseconds(20);
constexpr absl::Duration kMaxSleep = absl::Milliseconds(1);
constexpr int kRingTag = 1;

// A solution as bytes: cost, slots.
size_t PackedBytes(size_t slots) { return sizeof(double) + slots * sizeof(uint32_t); }

void Pack(const DenseSolution& solution, std::vector<char>& bytes) {
  const size_t begin = bytes.size();
  bytes.resize(begin + PackedBytes(solution.order.size()));
  std::memcpy(&bytes[begin], &solution.cost, sizeof(double));
  std::memcpy(&bytes[begin] + sizeof(double), solution.order.data(),
              solution.order.size() * sizeof(uint32_t));
}

DenseSolution Unpack(const char* bytes, size_t slots) {
  DenseSolution solution{DenseOrder(slots), 0};
  std::memcpy(&solution.cost, bytes, sizeof(double));
  std::memcpy(solution.order.data(), bytes + sizeof(double), slots * sizeof(uint32_t));
  return solution;
}

std::vector<DenseSolution> UnpackAll(const std::vector<char>& bytes, size_t slots) {
  std::vector<DenseSolution> solutions;
  for (size_t at = 0; at < bytes.size(); at += PackedBytes(slots)) {
    solutions.push_back(Unpack(&bytes[at], slots));
  }
  return solutions;
}

}  // namespace

class MpiTeam::Requests {
 public:
  Requests(MPI_Request& request) : of_(&request, 1) {}  // NOLINT: a request is one of them
  explicit Requests(absl::Span<MPI_Request> requests) : of_(requests) {}
  bool AreDone() const {
    int is_done = 0;
    MPI_Testall(static_cast<int>(of_.size()), of_.data(), &is_done, MPI_STATUSES_IGNORE);
    return is_done != 0;
  }

 private:
  const absl::Span<MPI_Request> of_;
};

bool MpiTeam::Start(int& argc, char**& argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  return level >= MPI_THREAD_SERIALIZED;
}

void MpiTeam::Finish() { MPI_Finalize(); }

void MpiTeam::Abort(int exit_status) { MPI_Abort(MPI_COMM_WORLD, exit_status); }

MpiTeam::MpiTeam(const Clock* clock) : clock_(clock) {
  MPI_Comm_rank(MPI_COMM_WORLD, &process_);
  MPI_Comm_size(MPI_COMM_WORLD, &count_);
}

absl::Status MpiTeam::Wait(const Requests& requests) const {
  absl::Duration sleep = kFirstSleep;
  for (int looks = 0;; ++looks) {
    if (requests.AreDone()) return absl::OkStatus();
    if (looks < kLooksAtOnce) continue;
    if (clock_->Monotonic() >= deadline_) {
      return absl::DeadlineExceededError(absl::StrFormat(
          "rank %d of %d has waited in vain for the others, long after the budget's end; see which "
          "of their nodes hangs, or give slow ones more time with --grace",
          process_, count_));
    }
    absl::SleepFor(sleep);
    sleep = std::min(2 * sleep, kMaxSleep);
  }
}

absl::Status MpiTeam::Broadcast(std::string& text) {
  uint64_t size = text.size();
  MPI_Request request;
  MPI_Ibcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
  RETURN_IF_ERROR(Wait(request));
  if (size > INT_MAX) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the question takes %d bytes to send to the ranks, %d at most", size, INT_MAX));
  }
  text.resize(size);
  MPI_Ibcast(text.data(), static_cast<int>(size), MPI_CHAR, 0, MPI_COMM_WORLD, &request);
  return Wait(request);
}

// By the nodes' names: MPI_Comm_split_type has no form that a deadline could end.
absl::StatusOr<uint32_t> MpiTeam::RanksOfNode() {
  constexpr int kName = MPI_MAX_PROCESSOR_NAME;
  sent_.assign(kName, '\0');
  int length = 0;
  MPI_Get_processor_name(sent_.data(), &length);
  received_.resize(size_t{kName} * process_count());
  MPI_Request request;
  MPI_Iallgather(sent_.data(), kName, MPI_CHAR, received_.data(), kName, MPI_CHAR, MPI_COMM_WORLD,
                 &request);
  RETURN_IF_ERROR(Wait(request));
  uint32_t count = 0;
  for (size_t at = 0; at < received_.size(); at += kName) {
    if (std::equal(sent_.begin(), sent_.end(), &received_[at])) ++count;
  }
  return count;
}

absl::StatusOr<bool> MpiTeam::Any(bool mine) {
  int one = mine ? 1 : 0, any = 0;
  MPI_Request request;
  MPI_Iallreduce(&one, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
  RETURN_IF_ERROR(Wait(request));
  return any != 0;
}

absl::Status MpiTeam::ShareBest(DenseSolution& solution) {
  struct CostAndRank {  // as MPI_DOUBLE_INT lies in memory
    double cost;
    int rank;
  };
  CostAndRank mine{solution.cost, process_}, least{};
  MPI_Request request;
  MPI_Iallreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD, &request);
  RETURN_IF_ERROR(Wait(request));
  solution.cost = least.cost;
  MPI_Ibcast(solution.order.data(), static_cast<int>(solution.order.size()), MPI_UINT32_T,
             least.rank, MPI_COMM_WORLD, &request);
  return Wait(request);
}

absl::Status MpiTeam::PassOn(DenseSolution& solution) {
  if (count_ == 1) return absl::OkStatus();
  sent_.clear();
  Pack(solution, sent_);
  received_.resize(sent_.size());
  const auto bytes = static_cast<int>(sent_.size());
  MPI_Request requests[2];
  MPI_Irecv(received_.data(), bytes, MPI_CHAR, (process_ + count_ - 1) % count_, kRingTag,
            MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(sent_.data(), bytes, MPI_CHAR, (process_ + 1) % count_, kRingTag, MPI_COMM_WORLD,
            &requests[1]);
  RETURN_IF_ERROR(Wait(Requests(absl::MakeSpan(requests))));
  solution = Unpack(received_.data(), solution.order.size());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DenseSolution>> MpiTeam::Gather(std::vector<DenseSolution> mine) {
  sent_.clear();
  for (const DenseSolution& solution : mine) Pack(solution, sent_);
  received_.resize(process_ == 0 ? sent_.size() * process_count() : 0);
  const auto bytes = static_cast<int>(sent_.size());
  MPI_Request request;
  MPI_Igather(sent_.data(), bytes, MPI_CHAR, received_.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD,
              &request);
  RETURN_IF_ERROR(Wait(request));
  return UnpackAll(received_, mine.empty() ? 0 : mine[0].order.size());
}

absl::StatusOr<std::vector<DenseSolution>> MpiTeam::Scatter(std::vector<DenseSolution> all,
                                                            uint32_t each) {
  uint64_t slots = all.empty() ? 0 : all[0].order.size();
  MPI_Request request;
  MPI_Ibcast(&slots, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
  RETURN_IF_ERROR(Wait(request));
  sent_.clear();
  for (const DenseSolution& solution : all) Pack(solution, sent_);
  received_.resize(each * PackedBytes(slots));
  const auto bytes = static_cast<int>(received_.size());
  MPI_Iscatter(sent_.data(), bytes, MPI_CHAR, received_.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD,
               &request);
  RETURN_IF_ERROR(Wait(request));
  return UnpackAll(received_, slots);
}

}  // namespace coppice
