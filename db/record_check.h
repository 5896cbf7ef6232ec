// Refuses records that must not be kept, before the database sees them: INVALID_ARGUMENT, naming
// the record. Shape only; what the present state forbids is the database's own matter.
#ifndef COPPICE_DB_RECORD_CHECK_H_
#define COPPICE_DB_RECORD_CHECK_H_

#include <string_view>

#include "absl/status/status.h"
#include "db/store.h"

namespace coppice {

absl::Status CheckShape(const PutJob& put);
absl::Status CheckShape(const EndJob& end);
absl::Status CheckShape(const GrantTree& grant);
absl::Status CheckShape(const ReleaseTree& release);
absl::Status CheckShape(const ChangeTrees& change);
absl::Status CheckShape(const PutCapabilities& put);
absl::Status CheckShape(const PutProfile& put);
absl::Status CheckShape(const PutInventory& put);
absl::Status CheckShape(const AppendEvents& append);
absl::Status CheckShape(const PutCounters& put);
absl::Status CheckShape(const PruneHistory& prune);
absl::Status CheckShape(const PruneEvents& prune);
absl::Status CheckShape(const PruneJobs& prune);
absl::Status CheckShape(const PutPatternPart& put);
absl::Status CheckShape(const PutPattern& put);
absl::Status CheckShape(const DropPatternParts& drop);
absl::Status CheckShape(const DropPattern& drop);
absl::Status CheckShape(const PutDistances& put);
absl::Status CheckShape(const PutPlacements& put);
absl::Status CheckShape(const EndPlacement& end);
absl::Status CheckShape(const StartPlacement& start);
absl::Status CheckShape(const PrunePlacements& prune);
absl::Status CheckShape(const PutOrder& put);
absl::Status CheckShape(const PutQuota& put);
absl::Status CheckShape(const AppendDeeds& append);

// 0, 1, 2 for "info", "warning", "error"; -1 for anything else.
int SeverityRank(std::string_view severity);

// The link with its ends in order.
LinkRecord Ordered(LinkRecord link);

}  // namespace coppice

#endif  // COPPICE_DB_RECORD_CHECK_H_
