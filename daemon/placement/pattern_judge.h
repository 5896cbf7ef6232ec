// What a set of hosts is worth to a pattern, told in milliseconds: a multisection of the pattern
// along the fabric's groups, or the present order or one that is given where that is better.
#ifndef COPPICE_DAEMON_PLACEMENT_PATTERN_JUDGE_H_
#define COPPICE_DAEMON_PLACEMENT_PATTERN_JUDGE_H_

#include "absl/status/statusor.h"
#include "daemon/mapping/search_control.h"
#include "daemon/placement/pattern_search.h"

namespace coppice {

// Of hosts and their traffic, as placement_cost.h weighs it.
double CostWithTraffic(const PlacementQuestion& question, double hosts_cost, double max_congestion);

// `known` is an order to try, too, or empty. Errors as those of the mapping engine.
absl::StatusOr<PatternChoice> JudgeHosts(const PlacementQuestion& question,
                                         const std::vector<HostIndex>& hosts, double hosts_cost,
                                         const Mapping& known);

// Exchanges hosts of `best` for other open ones, one at a time, as long as judges find that to cost
// less: every pair where they are few, else some hosts of the leaf switches in use, drawn by the
// request's seed. Ends after `most_judged` sets, or by `control`.
absl::Status ExchangeHosts(const PlacementQuestion& question, uint32_t most_judged,
                           const SearchControl& control, PatternChoice& best);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PATTERN_JUDGE_H_
