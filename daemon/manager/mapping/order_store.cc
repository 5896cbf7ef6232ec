#include "daemon/manager/mapping/order_store.h"

#include <memory>
#include <optional>
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
  if (note.size() > OrderStore::kMaxNoteBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("note: %d bytes; give at most %d", note.size(), OrderStore::kMaxNoteBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobView> OrderStore::ActiveJob(JobId id) {
  ASSIGN_OR_RETURN(JobView job, manager_->GetJob(id));
  if (job.record->state == JobState::kActive) return job;
  return absl::FailedPreconditionError(
      absl::StrCat("job ", id.value(),
                   job.record->state == JobState::kEnded ? " has ended" : "'s lease has expired",
                   "; register a new job"));
}

absl::StatusOr<OrderRecord> OrderStore::Put(JobId id, std::vector<uint32_t> positions,
                                            std::string note, const MayChange& may_change) {
  ASSIGN_OR_RETURN(const JobView job, ActiveJob(id));
  RETURN_IF_ERROR(may_change(*job.record));
  RETURN_IF_ERROR(CheckOrder(*job.record, positions, note));
  OrderRecord order{id, std::move(positions), std::move(note), clock_->Now()};
  RETURN_IF_ERROR(store_->Apply(PutOrder{order, kMaxPositions}));
  return order;
}

absl::StatusOr<OrderRecord> OrderStore::Get(JobId id) {
  ASSIGN_OR_RETURN(const JobView job, ActiveJob(id));
  absl::StatusOr<OrderRecord> order = store_->GetOrder(id);
  if (absl::IsNotFound(order.status())) {
    return absl::NotFoundError(absl::StrCat(
        order.status().message(),
        "; find one with coppice-search --job, or ask MapRanks, which needs none to be kept"));
  }
  absl::Status damage = order.status();
  if (order.ok()) damage = CheckOrder(*job.record, order->positions, order->note);
  if (damage.ok()) return order;
  if (order.ok() || absl::IsDataLoss(damage)) {
    return absl::DataLossError(absl::StrCat("the order that was kept for job ", id.value(),
                                            " is damaged (", damage.message(),
                                            "); find another with coppice-search --job"));
  }
  return damage;
}

absl::StatusOr<std::string> OrderStore::LaunchTextOf(const OrderRecord& order,
                                                     LaunchFormat format) {
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
