// What the store says when it refuses, each naming the object and what to do.
#ifndef COPPICE_DB_REFUSALS_H_
#define COPPICE_DB_REFUSALS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "db/store.h"

namespace coppice {

std::string LinkName(const LinkRecord& link);  // "0002c9020040b0e0/1 - 0002c9020040b0e1/7"

absl::Status JobIdTaken(JobId id);
absl::Status JobRequestTaken(const std::string& request_id, JobId holder);
absl::Status NoActiveJob(JobId id);   // NOT_FOUND, for EndJob
absl::Status JobNotActive(JobId id);  // FAILED_PRECONDITION, for GrantTree
absl::Status NoSuchJob(JobId id);
absl::Status TreeIdTaken(TreeId id);
absl::Status TreeIdFromEarlierRun(TreeId id, TreeId last);
absl::Status TreeRequestTaken(const std::string& request_id, JobId job, TreeId holder);
absl::Status NoSuchTree(TreeId id, JobId job);
// For ChangeTrees: what forbids `next` to follow the stored tree, whose `stored_revision` it is.
absl::Status NotTheNextRevision(const TreeRecord& next, uint32_t stored_revision);
absl::Status NotTheSameTree(TreeId id);
absl::Status NoCapability(Guid guid);
absl::Status NoEntryLeft(const EntryUse& use);
absl::Status EventIdTaken(int64_t id);
absl::Status NoSuchLink(const LinkRecord& link);
absl::Status NoSuchLinkId(int64_t id);
std::string PortName(Guid node, uint8_t port);  // "port 0002c9020040b0e0/7"
absl::Status NoCounters(Guid node, uint8_t port);
absl::Status SlotClosed(HistoryResolution resolution, int64_t slot, int64_t last);
absl::Status PatternIdTaken(int64_t id);
absl::Status PatternPartTaken(int64_t id, uint32_t part);
absl::Status PatternPartsMissing(const PatternRecord& pattern, uint32_t wanted, uint64_t there);
absl::Status NoSuchPattern(const std::string& name);
absl::Status NoSuchPatternId(int64_t id);
absl::Status PlacementIdTaken(PlacementId id);
absl::Status PlacementRequestTaken(const std::string& request_id, PlacementId holder);
absl::Status NodeHeld(const std::string& node, PlacementId holder);
absl::Status NoHeldPlacement(PlacementId id);
absl::Status NoSuchPlacement(PlacementId id);
absl::Status OrderOfNoActiveJob(JobId id);
// `others`: positions of the orders of other jobs.
absl::Status NoRoomForOrder(const PutOrder& put, int64_t others);
absl::Status NoSuchOrder(JobId id);
absl::Status NodeNotInInventory(Guid guid, const std::string& user);

}  // namespace coppice

#endif  // COPPICE_DB_REFUSALS_H_
