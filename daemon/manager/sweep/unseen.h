// What a sweep could not see: nodes that did not answer, and what may only be hidden behind them.
// A port that is not in the fabric is either gone for certain, because the switch that it hung on
// answered and has nothing there, or it may come back with the node that did not answer.
//
//      leaf A ---x--- n3        A answered, nothing is at that port: n3 is gone
//      leaf B (silent) --- n7   n7 is not in the fabric either, but nobody said that it is gone
//      leaf C ---x--- D --- n9  D is gone for certain, and n9 with it, whoever else is silent
//
// Only silence hides: what a node refuses, or what contradicts the rest, may stay so for ever.
// Functions of values.
#ifndef COPPICE_DAEMON_MANAGER_SWEEP_UNSEEN_H_
#define COPPICE_DAEMON_MANAGER_SWEEP_UNSEEN_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/subnet_port.h"

namespace coppice {

// How long what may only be hidden is given to come back.
inline constexpr absl::Duration kUnseenPatience = absl::Seconds(30);

// A node that did not answer, or not all that it was asked, found by the cable that leads to it
// unless it said who it is.
struct SilentNode {
  Guid neighbour;
  PortNum neighbour_port;
  Guid guid;  // 0: no sweep has ever seen what is there
  bool is_switch = false;
  std::string name;  // description of a switch, host of an adapter; may be empty
};

// A node that could be seen only through what is silent.
struct HiddenNode {
  bool is_switch = false;
  std::string name;                              // as SilentNode's
  std::vector<std::pair<Guid, PortNum>> cables;  // their far ends when it was last seen
};

struct HiddenPorts {
  struct Place {
    Guid attached;  // the switch that it hung on
    PortNum port;
    absl::Duration since;
  };
  absl::flat_hash_map<Guid, Place> ports;       // by port GUID
  absl::flat_hash_map<Guid, HiddenNode> nodes;  // by node GUID; the silent are not among them
  // Nothing is known of the fabric before: any port that is absent may be hidden, until patience
  // ends.
  bool is_any = false;
  absl::Duration any_since;
};

struct Unseen {
  std::vector<SilentNode> silent;             // each node or cable once, in order of answers
  std::shared_ptr<const HiddenPorts> hidden;  // null: none; every port that is absent is gone
};

// Of a sweep that saw `now`, after one that saw `before` (null: it is the first) with `unseen`.
// `when` is monotonic. O(ports) if something did not answer, else O(1).
Unseen FindUnseen(const std::vector<UnansweredNode>& unanswered, const Fabric& now,
                  const Fabric* before, const Unseen& unseen, absl::Duration when);

// Since when an absent port may only be hidden; infinite future (InfiniteDuration): it is gone for
// certain.
absl::Duration HiddenSince(const Unseen& unseen, Guid port_guid);

// Which nodes are hidden behind what is silent: a search from the silent over what is absent, along
// the cables that it had when it was last seen.
//
//     leaf A -- spine S (silent) -- leaf B (absent) -- n7 (absent)
//               start                hidden             hidden
//
// By node GUID. Looks at what `before` (may be null) had and what was hidden then, as far as it is
// not in `now`. O(nodes + links).
absl::flat_hash_map<Guid, HiddenNode> FindHiddenNodes(const Fabric& now, const Fabric* before,
                                                      const std::vector<SilentNode>& silent,
                                                      const Unseen& unseen);

// The switch, or a cabled port of the adapter, that has this node GUID.
std::optional<VertexIndex> FindNode(const Fabric& fabric, Guid node);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWEEP_UNSEEN_H_
