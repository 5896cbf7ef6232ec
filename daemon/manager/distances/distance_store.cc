#include "daemon/manager/distances/distance_store.h"

#include "daemon/base/log.h"
#include "daemon/base/status_macros.h"

namespace coppice {

absl::StatusOr<std::unique_ptr<DistanceStore>> DistanceStore::Create(Store* store,
                                                                     size_t most_pairs) {
  ASSIGN_OR_RETURN(std::vector<DistanceRecord> records, store->Distances());
  std::unique_ptr<DistanceStore> distance_store(new DistanceStore(store, most_pairs));
  PutDistances put;
  {
    std::lock_guard lock(distance_store->mutex_);
    for (DistanceRecord& record : records) distance_store->Enter(std::move(record));
    put.drop = distance_store->DropOldest();
  }
  if (!put.drop.empty()) RETURN_IF_ERROR(store->Apply(std::move(put)));
  return distance_store;
}

void DistanceStore::Enter(DistanceRecord record) {
  HostPair hosts{record.host_a, record.host_b};
  const auto old = records_.find(hosts);
  if (old != records_.end()) by_age_.erase({old->second.measured, hosts});
  by_age_.emplace(record.measured, hosts);
  records_.insert_or_assign(std::move(hosts), std::move(record));
}

std::vector<HostPair> DistanceStore::DropOldest() {
  std::vector<HostPair> dropped;
  while (records_.size() > most_pairs_) {
    const auto oldest = by_age_.begin();
    records_.erase(oldest->second);
    dropped.push_back(oldest->second);
    by_age_.erase(oldest);
  }
  return dropped;
}

void DistanceStore::Put(std::vector<DistanceRecord> records) {
  if (records.empty()) return;
  std::lock_guard writing(writing_);
  PutDistances put;
  put.put = records;
  {
    std::lock_guard lock(mutex_);
    ++revision_;
    for (DistanceRecord& record : records) Enter(std::move(record));
    put.drop = DropOldest();
    // One of them may be among the oldest itself.
    std::erase_if(put.put, [this](const DistanceRecord& record) {
      return !records_.contains({record.host_a, record.host_b});
    });
  }
  const size_t count = put.put.size();
  calls_.Submit(std::move(put), [count](absl::Status status) {
    if (!status.ok()) {
      spdlog::warn("{} measured distances are lost at the next start: {}", count,
                   status.ToString());
    }
  });
}

size_t DistanceStore::size() const {
  std::lock_guard lock(mutex_);
  return records_.size();
}

uint64_t DistanceStore::revision() const {
  std::lock_guard lock(mutex_);
  return revision_;
}

std::optional<DistanceRecord> DistanceStore::Find(const HostPair& hosts) const {
  std::lock_guard lock(mutex_);
  const auto found = records_.find(hosts);
  if (found == records_.end()) return std::nullopt;
  return found->second;
}

}  // namespace coppice
