// The Store that forgets: for tests, and for a daemon that is to keep nothing. Same semantics, same
// messages, same order and thread of callbacks as SqliteStore; one conformance suite runs on both.
#ifndef COPPICE_DB_MEMORY_STORE_H_
#define COPPICE_DB_MEMORY_STORE_H_

#include <memory>
#include <vector>

#include "db/store.h"

namespace coppice {

class MemoryStore : public Store {
 public:
  MemoryStore();
  // Applies everything that was submitted.
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  void Submit(Mutation mutation, Done done) override;
  absl::StatusOr<StoredState> Load() override;
  absl::StatusOr<std::vector<EntryUse>> Entries() override;
  absl::StatusOr<std::vector<EventRecord>> Events(const EventFilter& filter) override;
  absl::StatusOr<EventRange> KeptEvents() override;
  absl::StatusOr<JobRecord> GetJob(JobId id) override;
  absl::StatusOr<int64_t> EndedJobs(absl::Time before) override;
  absl::StatusOr<std::vector<OwnedJobs>> EndedJobsOfOwners() override;
  absl::StatusOr<PlacementRecord> GetPlacement(PlacementId id) override;
  absl::StatusOr<int64_t> EndedPlacements(absl::Time before) override;
  absl::StatusOr<std::vector<int64_t>> LinkIds(const std::vector<LinkRecord>& links) override;
  absl::StatusOr<StoredLoad> LoadMeasurements() override;
  absl::StatusOr<std::vector<PortCounterRecord>> Counters(Guid node) override;
  absl::StatusOr<std::vector<HistoryPoint>> History(const HistoryQuery& query) override;
  absl::StatusOr<std::vector<PatternRecord>> Patterns() override;
  absl::StatusOr<std::string> PatternData(int64_t id) override;
  absl::StatusOr<std::vector<DistanceRecord>> Distances() override;
  absl::StatusOr<OrderRecord> GetOrder(JobId job) override;
  absl::StatusOr<std::vector<DeedRecord>> Deeds(const DeedFilter& filter) override;
  StoreStatistics Statistics() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace coppice

#endif  // COPPICE_DB_MEMORY_STORE_H_
