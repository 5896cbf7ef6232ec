// Which nodes are hidden behind what is silent (unseen.h): a search from the silent over what is
// absent, along the cables that it had when it was last seen.
//
//     leaf A -- spine S (silent) -- leaf B (absent) -- n7 (absent)
//               start                hidden             hidden
//
// Whoever is absent and not reached so has been seen to be gone by somebody who answered. A
// function of values.
#ifndef COPPICE_DAEMON_MANAGER_SWEEP_HIDDEN_H_
#define COPPICE_DAEMON_MANAGER_SWEEP_HIDDEN_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/sweep/unseen.h"

namespace coppice {

// By node GUID. Looks at what `before` (may be null) had and what was hidden then, as far as it is
// not in `now`. O(nodes + links).
absl::flat_hash_map<Guid, HiddenNode> FindHiddenNodes(const Fabric& now, const Fabric* before,
                                                      const std::vector<SilentNode>& silent,
                                                      const Unseen& unseen);

// Its host; without one, its description.
std::string NameOfAdapter(const Fabric& fabric, const AdapterInfo& adapter);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWEEP_HIDDEN_H_
