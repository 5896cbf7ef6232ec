// A store that passes everything on: what tests' stores that forget, refuse or hold back begin
// with, each of which overrides what it does otherwise.
#ifndef COPPICE_TESTS_SUPPORT_PASSING_STORE_H_
#define COPPICE_TESTS_SUPPORT_PASSING_STORE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "db/store.h"

namespace coppice {

class PassingStore : public Store {
 public:
  // `store` is not owned.
  explicit PassingStore(Store* store) : store_(store) {}

  void Submit(Mutation mutation, Done done) override {
    store_->Submit(std::move(mutation), std::move(done));
  }
  absl::StatusOr<StoredState> Load() override { return store_->Load(); }
  absl::StatusOr<std::vector<EntryUse>> Entries() override { return store_->Entries(); }
  absl::StatusOr<std::vector<EventRecord>> Events(const EventFilter& filter) override {
    return store_->Events(filter);
  }
  absl::StatusOr<EventRange> KeptEvents() override { return store_->KeptEvents(); }
  absl::StatusOr<JobRecord> GetJob(JobId id) override { return store_->GetJob(id); }
  absl::StatusOr<int64_t> EndedJobs(absl::Time before) override {
    return store_->EndedJobs(before);
  }
  absl::StatusOr<std::vector<OwnedJobs>> EndedJobsOfOwners() override {
    return store_->EndedJobsOfOwners();
  }
  absl::StatusOr<PlacementRecord> GetPlacement(PlacementId id) override {
    return store_->GetPlacement(id);
  }
  absl::StatusOr<int64_t> EndedPlacements(absl::Time before) override {
    return store_->EndedPlacements(before);
  }
  absl::StatusOr<std::vector<int64_t>> LinkIds(const std::vector<LinkRecord>& links) override {
    return store_->LinkIds(links);
  }
  absl::StatusOr<std::vector<LinkRecord>> LastLinks() override { return store_->LastLinks(); }
  absl::StatusOr<StoredLoad> LoadMeasurements() override { return store_->LoadMeasurements(); }
  absl::StatusOr<std::vector<PortCounterRecord>> Counters(Guid node) override {
    return store_->Counters(node);
  }
  absl::StatusOr<std::vector<HistoryPoint>> History(const HistoryQuery& query) override {
    return store_->History(query);
  }
  absl::StatusOr<std::vector<PatternRecord>> Patterns() override { return store_->Patterns(); }
  absl::StatusOr<std::string> PatternData(int64_t id) override { return store_->PatternData(id); }
  absl::StatusOr<std::vector<DistanceRecord>> Distances() override { return store_->Distances(); }
  absl::StatusOr<OrderRecord> GetOrder(JobId job) override { return store_->GetOrder(job); }
  absl::StatusOr<std::vector<DeedRecord>> Deeds(const DeedFilter& filter) override {
    return store_->Deeds(filter);
  }
  StoreStatistics Statistics() override { return store_->Statistics(); }
  uint64_t DatabaseId() override { return store_->DatabaseId(); }

 protected:
  Store* const store_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_PASSING_STORE_H_
