#include "daemon/manager/mapping/order_shelf.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

absl::Status CheckOrder(const JobRecord& job, const std::vector<uint32_t>& positions,
                        const std::string& note) {
  const size_t ranks = job.endpoints.size();
  if (positions.empty() || positions.size() > ranks) {
    return absl::InvalidArgumentError(
        absl::StrFormat("permutation: %d ranks for the %d of job %d; give 1 to %d",
                        positions.size(), ranks, job.id.value(), ranks));
  }
  std::vector<bool> is_taken(ranks);
  for (size_t rank = 0; rank < positions.size(); ++rank) {
    if (positions[rank] >= ranks) {
      return absl::InvalidArgumentError(
          absl::StrFormat("permutation: rank %d at position %d; job %d has positions 0 to %d", rank,
                          positions[rank], job.id.value(), ranks - 1));
    }
    if (is_taken[positions[rank]]) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "permutation: two ranks at position %d, of which rank %d is one; give each its own",
          positions[rank], rank));
    }
    is_taken[positions[rank]] = true;
  }
  if (note.size() > OrderShelf::kMaxNoteBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("note: %d bytes; give at most %d", note.size(), OrderShelf::kMaxNoteBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobView> OrderShelf::ActiveJob(JobId id) {
  ASSIGN_OR_RETURN(JobView job, manager_->GetJob(id));
  if (job.record->state == JobState::kActive) return job;
  return absl::FailedPreconditionError(
      absl::StrCat("job ", id.value(),
                   job.record->state == JobState::kEnded ? " has ended" : "'s lease has expired",
                   "; register a new job"));
}

void OrderShelf::Prune() {
  for (auto it = orders_.begin(); it != orders_.end();) {
    if (ActiveJob(it->second.job).ok()) {
      ++it;
      continue;
    }
    position_count_ -= it->second.positions.size();
    it = orders_.erase(it);
  }
}

absl::StatusOr<JobOrder> OrderShelf::Put(JobId id, std::vector<uint32_t> positions,
                                         std::string note, const MayChange& may_change) {
  ASSIGN_OR_RETURN(const JobView job, ActiveJob(id));
  RETURN_IF_ERROR(may_change(*job.record));
  RETURN_IF_ERROR(CheckOrder(*job.record, positions, note));
  const absl::MutexLock lock(&mutex_);
  Prune();
  const auto old = orders_.find(id.value());
  const size_t others = position_count_ - (old == orders_.end() ? 0 : old->second.positions.size());
  if (positions.size() > kMaxPositions - others) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("orders of other jobs hold %d positions of %d; end jobs that are done",
                        others, kMaxPositions));
  }
  position_count_ = others + positions.size();
  JobOrder& order = orders_[id.value()];
  order = {id, std::move(positions), std::move(note), clock_->Now()};
  return order;
}

absl::StatusOr<JobOrder> OrderShelf::Get(JobId id) {
  RETURN_IF_ERROR(ActiveJob(id).status());
  const absl::MutexLock lock(&mutex_);
  const auto found = orders_.find(id.value());
  if (found != orders_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat(
      "no order is kept for job ", id.value(),
      "; find one with coppice-search --job, or ask MapRanks, which needs none to be kept"));
}

absl::StatusOr<std::string> OrderShelf::LaunchTextOf(const JobOrder& order, LaunchFormat format) {
  ASSIGN_OR_RETURN(const JobView job, ActiveJob(order.job));
  const std::shared_ptr<const FabricView> view = manager_->fabric();
  if (view == nullptr) return absl::UnavailableError("no fabric is known yet; try again");
  const Fabric& fabric = *view->snapshot->fabric;
  std::vector<absl::string_view> hosts;
  for (const Guid guid : job.record->endpoints) {
    const std::optional<EndpointIndex> endpoint = fabric.FindEndpoint(guid);
    if (!endpoint.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("job ", order.job.value(), ": its port ", ToString(guid),
                       " has left the fabric; map over the hosts that are left"));
    }
    hosts.push_back(fabric.host_name(fabric.host(*endpoint)));
  }
  return LaunchText(format, hosts, order.positions);
}

}  // namespace coppice
