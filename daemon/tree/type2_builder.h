// Type II trees: from a communicator and what switches have left to the tree that takes the fewest
// entries (Chen 2024, section 4), with the reason if there is none.
#ifndef COPPICE_DAEMON_TREE_TYPE2_BUILDER_H_
#define COPPICE_DAEMON_TREE_TYPE2_BUILDER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

struct Type2Result {
  std::optional<TimedTree> best;
  bool may_serve_more = false;  // more switches of its physical tree could serve than do
  // Switches without a free entry that kept every candidate away, or without which the tree takes
  // more entries than it would; by index.
  std::vector<FullSwitch> full_switches;
  bool routes_are_wrong = false;  // no tree, because routes break off or no switch reaches all
  std::string why_not;            // if there is no tree: for a person
};

// Candidates are the requested root or else all switches. Those nearest to the members, or the
// nearest that work, say how many switches serve: the fewest. Of all roots whose trees need no more
// the soonest is taken, within 2 % and by the exact prediction: nearer ones first, a farther one
// for a gain of 1 % at least. Roots that cannot be sooner (root_choice.h), or are like one that was
// tried, are passed over. Large searches end early, with the best so far (bounds: .cc); "none" is
// the answer after every candidate, or says how many were tried.
//
// Roots and cables are chosen by the load of `snapshot`, times are predicted with that of
// `predicting` (link_use.h). Nobody serves for one member. `request` is valid and its members
// reach each other.
Type2Result BuildType2(const Snapshot& snapshot, const Snapshot& predicting,
                       const CostProfile& profile, absl::Span<const SwitchCapacity> capacity,
                       const TreeRequest& request, const MemberPlaces& places);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE2_BUILDER_H_
