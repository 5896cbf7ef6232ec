// A fabric as it is once some of its links are gone, before anybody has read all of it again.
#ifndef COPPICE_DAEMON_FABRIC_WITHOUT_LINKS_H_
#define COPPICE_DAEMON_FABRIC_WITHOUT_LINKS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// All switches, also those that are left without a link: their indices stay, and with them the rows
// of forwarding tables. Adapters that keep no link go. What stays keeps its order, so the links of
// the result are those of `fabric` without the others. `is_lost` is [link]. The version is 0.
// O(n log n).
absl::StatusOr<std::shared_ptr<const Fabric>> WithoutLinks(const Fabric& fabric,
                                                           const std::vector<bool>& is_lost);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_WITHOUT_LINKS_H_
