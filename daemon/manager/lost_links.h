// Which granted trees stand on links that are gone. A link is lost when neither its ends nor the
// cable between them is as it was, so a switch or port that vanished shows here, too.
#ifndef COPPICE_DAEMON_MANAGER_LOST_LINKS_H_
#define COPPICE_DAEMON_MANAGER_LOST_LINKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "db/store.h"

namespace coppice {

// The trees, in the order given, of which some link is not among `present` but was among `before`
// (or `before` is null: the first sweep of this run). Ids of links as the store gives them.
// O(L log L + links of the trees * log L).
std::vector<TreeId> TreesWithLostLinks(absl::Span<const std::shared_ptr<const TreeRecord>> trees,
                                       const std::vector<int64_t>* before,
                                       const std::vector<int64_t>& present);

// "3 granted trees cross links that are gone, and keep their entries: 4, 7, 9; ..."
std::string LostLinksMessage(absl::Span<const TreeId> trees);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOST_LINKS_H_
