// What is asked of placements and what is answered, as plain structs with the names of nodes, where
// daemon/placement has indices of one fabric.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_VIEW_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_VIEW_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/manager/deed_log.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placer.h"
#include "db/store.h"

namespace coppice {

// Nodes are names of hosts, or lists of them (node_list.h).
struct PlacementTask {
  std::vector<std::string> candidates, include, avoid;
  PlacementConstraints constraints;  // but for its lists
  PlacementObjective objective;      // weighs nothing: as configured
  std::shared_ptr<const Pattern> pattern;
  std::string pattern_name;  // where the pattern is from; of the request's content
  uint32_t ranks_per_node = 1;
  uint32_t trees = 0;
  uint64_t seed = 1;
  absl::Duration budget;  // of a search with a pattern; zero: the default
};

struct CreatePlacementArgs {
  std::string request_id, display_name, owner;
  PlacementTask task;
  std::optional<absl::Duration> term;
  Actor actor = {};
};

// How a caller follows the planning; may be null. True: whoever asked has gone.
using PlacementCancelled = std::function<bool()>;

// A placement or, with an id of 0, advice. Immutable.
struct PlacementView {
  std::shared_ptr<const PlacementRecord> record;
  PlacementMeasures measures;
  bool is_optimal = false;
  absl::Duration term_left;  // zero unless held
  std::string why_not;       // of advice: there is no placement, and why
};

struct StartPlacementArgs {
  PlacementId id;
  std::string request_id, display_name;  // display_name empty: the placement's
  uint32_t ranks_per_node = 0;           // 0: the placement's
  std::optional<absl::Duration> lease;
  bool arrange_ranks = false;
  Actor actor = {};
};

// Row by row over `nodes`.
struct NodeDistancesView {
  std::vector<std::string> nodes;
  std::vector<uint32_t> hops, levels;  // levels: 0 the node, 1 leaf switch, 2 pod, 3 beyond
};

// Key of a payload on RESOURCE_EXHAUSTED statuses: who holds what is wanted, one line each,
// "SUBJECT DESCRIPTION"; rpc turns it into a google.rpc.QuotaFailure.
inline constexpr char kHoldersPayload[] = "coppice/holders";

// The measures of a placement as the JSON text that its record keeps. The reader takes only what
// the writer makes; of text that somebody edited by hand it reads what it finds.

// {"leaf_switches":2,...,"cost":4.5,"is_optimal":1}
std::string MeasuresJson(const PlacementMeasures& measures, bool is_optimal);

struct RecordedMeasures {
  PlacementMeasures measures;
  bool is_optimal = false;
};
RecordedMeasures ParseMeasures(absl::string_view json);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_VIEW_H_
