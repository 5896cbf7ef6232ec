#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

absl::Status Malformed(absl::string_view object, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(object, ": ", problem));
}

// A value that occurs twice, if any does.
template <class Value>
std::optional<Value> FindTwice(std::vector<Value> values) {
  std::sort(values.begin(), values.end());
  const auto twice = std::adjacent_find(values.begin(), values.end());
  return twice == values.end() ? std::nullopt : std::optional(*twice);
}

template <class Record>
std::vector<Guid> GuidsOf(const std::vector<Record>& records) {
  std::vector<Guid> guids;
  for (const Record& record : records) guids.push_back(record.guid);
  return guids;
}

bool Storable(absl::Time time) { return time != absl::InfinitePast(); }
bool IsMoment(absl::Time time) { return Storable(time) && time != absl::InfiniteFuture(); }
bool IsLength(absl::Duration length) {
  return length >= absl::ZeroDuration() && length != absl::InfiniteDuration();
}

// 0, 1, 2 for "info", "warning", "error"; -1 for anything else.
int SeverityRank(absl::string_view severity) {
  if (severity == "info") return 0;
  if (severity == "warning") return 1;
  return severity == "error" ? 2 : -1;
}

absl::Status CheckTreeLists(const TreeRecord& tree, const std::string& name) {
  const size_t nodes = tree.ranks.size() + tree.switches.size();
  for (auto [size, list] : {std::pair(tree.parents.size(), "parents"),
                            std::pair(tree.edge_links_up.size(), "edge_links_up"),
                            std::pair(tree.edge_links_down.size(), "edge_links_down")}) {
    if (size != nodes) {
      return Malformed(name, absl::StrCat(size, " ", list, " for ", nodes,
                                          " nodes: give one per rank and switch"));
    }
  }
  for (int32_t parent : tree.parents) {
    if (parent < -1 || parent >= static_cast<int64_t>(nodes)) {
      return Malformed(name, absl::StrCat("parent ", parent, " is none of its ", nodes, " nodes"));
    }
  }
  const auto twice = FindTwice(GuidsOf(tree.switches));
  if (!twice) return absl::OkStatus();
  return Malformed(name, absl::StrCat("switch ", ToString(*twice), " serves twice: list it once"));
}

absl::Status CheckForestOf(const TreeRecord& tree, const std::string& name) {
  if (tree.forest.empty()) return absl::OkStatus();
  if (tree.type != 1 || tree.forest.size() < 2 || tree.forest[0].parents != tree.parents) {
    return Malformed(name, "its forest is no set of type 1 trees that begins with its own nodes");
  }
  const auto ranks = static_cast<int64_t>(tree.ranks.size());
  for (const ForestTreeRecord& one : tree.forest) {
    const bool fits = one.parents.size() == tree.ranks.size() && one.share > 0 && one.share <= 1;
    if (fits && std::all_of(one.parents.begin(), one.parents.end(),
                            [&](int32_t p) { return p >= -1 && p < ranks; })) {
      continue;
    }
    return Malformed(name,
                     "a tree of its forest does not fit its ranks, or has no share of 0 to 1");
  }
  return absl::OkStatus();
}

absl::Status CheckTree(const TreeRecord& tree) {
  const std::string name = absl::StrCat("tree ", tree.id.value());
  if (tree.id.value() < 1) return Malformed(name, "ids start at 1");
  if (tree.type != 1 && tree.type != 2) {
    return Malformed(name, absl::StrCat("type ", tree.type, " is neither 1 nor 2"));
  }
  if (tree.type == 1 && !tree.switches.empty()) {
    return Malformed(name, "only trees of type 2 have serving switches");
  }
  for (double time_us : {tree.aggregate_us, tree.distribute_us, tree.total_us}) {
    if (std::isnan(time_us)) return Malformed(name, "a predicted time is not a number");
  }
  const CarriageRecord& carriage = tree.carriage;
  if (!carriage.key.empty() && carriage.key.size() != CarriageRecord::kKeyBytes) {
    return Malformed(name, absl::StrCat("its key has ", carriage.key.size(), " bytes, not ",
                                        CarriageRecord::kKeyBytes));
  }
  if (!carriage.key.empty() &&
      (tree.switches.empty() || carriage.segment_bytes == 0 || carriage.window == 0)) {
    return Malformed(name, "it has a key, and no switches, segments or window to go with it");
  }
  if (absl::Status status = CheckTreeLists(tree, name); !status.ok()) return status;
  return CheckForestOf(tree, name);
}

absl::Status CheckSlot(HistoryResolution resolution, int64_t slot) {
  const std::string name = absl::StrCat("history slot ", slot);
  const int place = static_cast<int>(resolution);
  if (place < 1 || place > 3) return Malformed(name, "unknown resolution");
  if (slot < 1 || slot >= int64_t{1} << 39)
    return Malformed(name, "slots are numbered from 1 to 2^39 - 1");
  return absl::OkStatus();
}

// Of each mutation: a new one has its own here.
absl::Status Check(const PutJob& put) {
  const std::string name = absl::StrCat("job ", put.job->id.value());
  if (put.job->id.value() < 1) return Malformed(name, "ids start at 1");
  if (put.job->state != JobState::kActive) return Malformed(name, "a new job must be active");
  if (!Storable(put.job->created)) return Malformed(name, "set the time of its creation");
  if (put.job->lease <= absl::ZeroDuration()) return Malformed(name, "its lease must be positive");
  return absl::OkStatus();
}

absl::Status Check(const EndJob& end) {
  const std::string name = absl::StrCat("job ", end.job.value());
  if (end.state != JobState::kEnded && end.state != JobState::kExpired) {
    return Malformed(name, "a job ends as ended or expired");
  }
  return IsMoment(end.time) ? absl::OkStatus() : Malformed(name, "set the time of its end");
}

absl::Status Check(const GrantTree& grant) { return CheckTree(*grant.tree); }
absl::Status Check(const ReleaseTree&) { return absl::OkStatus(); }
absl::Status Check(const PutProfile&) { return absl::OkStatus(); }
absl::Status Check(const PruneHistory&) { return absl::OkStatus(); }
absl::Status Check(const DropPatternParts&) { return absl::OkStatus(); }
absl::Status Check(const DropPattern&) { return absl::OkStatus(); }
absl::Status Check(const DropReservation&) { return absl::OkStatus(); }

absl::Status Check(const ChangeTrees& change) {
  std::vector<TreeId> named;
  for (const auto* trees : {&change.granted, &change.revised}) {
    for (const std::shared_ptr<const TreeRecord>& tree : *trees) {
      RETURN_IF_ERROR(CheckTree(*tree));
      named.push_back(tree->id);
    }
  }
  for (const auto& [tree, job] : change.revoked) named.push_back(tree);
  const auto twice = FindTwice(std::move(named));
  if (!twice) return absl::OkStatus();
  return Malformed(absl::StrCat("tree ", twice->value()),
                   "is named twice: grant, revise or revoke it, once");
}

absl::Status Check(const PutCapabilities& put) {
  const auto twice = FindTwice(GuidsOf(put.capabilities));
  if (!twice) return absl::OkStatus();
  return Malformed(absl::StrCat("switch ", ToString(*twice)),
                   "has two capability records: give one");
}

absl::Status Check(const PutInventory& put) {
  for (const NodeRecord& node : put.nodes) {
    const int kind = static_cast<int>(node.kind);
    if (kind < 1 || kind > 3) {
      return Malformed(absl::StrCat("node ", ToString(node.guid)), "unknown kind");
    }
  }
  for (const LinkRecord& link : put.links) {
    if (std::isnan(link.capacity_gbps)) {
      return Malformed(absl::StrCat("link ", ToString(link.node_a), "/", link.port_a),
                       "its capacity is not a number");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKept(const char* what, int64_t number) {
  return number >= 0 ? absl::OkStatus() : Malformed(what, "their number must not be negative");
}
absl::Status Check(const PruneEvents& prune) { return CheckKept("kept events", prune.keep); }
absl::Status Check(const PruneJobs& prune) { return CheckKept("kept jobs", prune.keep); }
absl::Status Check(const PrunePlacements& prune) {
  return CheckKept("kept placements", prune.keep);
}

absl::Status Check(const AppendEvents& append) {
  RETURN_IF_ERROR(CheckKept("kept events", append.keep));
  for (const EventRecord& event : append.events) {
    const std::string name = absl::StrCat("event ", event.kind, " of ", event.object);
    if (event.id < 0) return Malformed(name, "ids start at 1; 0 has one assigned");
    if (SeverityRank(event.severity) < 0) {
      return Malformed(
          name, absl::StrCat("severity \"", event.severity, "\" is none of info, warning, error"));
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const PutCounters& put) {
  for (const PortCounterRecord& port : put.counters) {
    if (port.sent_bytes_per_second >= 0 && port.received_bytes_per_second >= 0) continue;
    return Malformed(PortName(port.node, port.port), "a rate is negative or not a number");
  }
  for (const LinkLoadRecord& load : put.loads) {
    if (load.average >= 0 && load.peak >= 0) continue;
    return Malformed(absl::StrCat("link ", load.link), "its load is negative or not a number");
  }
  for (const HistoryPart& part : put.history) {
    RETURN_IF_ERROR(CheckSlot(part.resolution, part.slot));
    for (const HistoryRow& row : part.rows) {
      if (IsLength(row.length)) continue;
      return Malformed(PortName(row.node, row.port), "the length of its history is no length");
    }
  }
  for (const HistorySlot& slot : put.closed) {
    RETURN_IF_ERROR(CheckSlot(slot.resolution, slot.slot));
    if (IsLength(slot.length)) continue;
    return Malformed(absl::StrCat("history slot ", slot.slot), "its length is no length");
  }
  return absl::OkStatus();
}

absl::Status Check(const PutPatternPart& put) {
  if (put.pattern >= 1) return absl::OkStatus();
  return Malformed(absl::StrCat("pattern ", put.pattern), "ids start at 1");
}

absl::Status Check(const PutPattern& put) {
  const PatternRecord& pattern = put.pattern;
  const std::string name = absl::StrCat("pattern ", pattern.id, " \"", pattern.name, "\"");
  if (pattern.id < 1) return Malformed(name, "ids start at 1");
  if (pattern.name.empty()) return Malformed(name, "it has no name");
  if (pattern.rank_count == 0) return Malformed(name, "it has no ranks");
  if (pattern.total_bytes >= 0 && pattern.total_messages >= 0) return absl::OkStatus();
  return Malformed(name, "a total is negative or not a number");
}

absl::Status Check(const PutDistances& put) {
  const auto is_measure = [](double x) { return std::isfinite(x) && x > 0; };
  const auto is_spread = [](double x) { return std::isfinite(x) && x >= 0; };
  for (const DistanceRecord& d : put.put) {
    const std::string name = absl::StrCat("distance from ", d.host_a, " to ", d.host_b);
    if (d.host_a.empty() || d.host_a >= d.host_b) {
      return Malformed(name, "its hosts have no names, or are not in order");
    }
    if (!is_measure(d.latency_us) || !is_measure(d.bandwidth_gbps)) {
      return Malformed(name, "latency and bandwidth must be above 0");
    }
    if (!is_spread(d.latency_spread_us) || !is_spread(d.bandwidth_spread_gbps)) {
      return Malformed(name, "a spread is negative or not a number");
    }
    if (d.samples == 0) return Malformed(name, "it has no samples");
  }
  return absl::OkStatus();
}

absl::Status Check(const PutPlacements& put) {
  for (const PlacementRecord& placement : put.placements) {
    const std::string name = absl::StrCat("placement ", placement.id.value());
    if (placement.id.value() < 1) return Malformed(name, "ids start at 1");
    if (placement.state != PlacementState::kHeld) return Malformed(name, "a new one must be held");
    if (!Storable(placement.created)) return Malformed(name, "set the time of its creation");
    if (placement.term <= absl::ZeroDuration()) return Malformed(name, "its term must be positive");
    if (placement.nodes.empty()) return Malformed(name, "it has no nodes");
    if (placement.ranks_per_node == 0) return Malformed(name, "its nodes have no ranks");
    const auto twice = FindTwice(placement.nodes);
    if (twice) return Malformed(name, absl::StrCat("it has node ", *twice, " twice"));
  }
  return absl::OkStatus();
}

absl::Status Check(const EndPlacement& end) {
  const std::string name = absl::StrCat("placement ", end.placement.value());
  if (end.state != PlacementState::kReleased && end.state != PlacementState::kExpired) {
    return Malformed(name, "a placement ends as released or expired");
  }
  return IsMoment(end.time) ? absl::OkStatus() : Malformed(name, "set the time of its end");
}

absl::Status Check(const StartPlacement& start) { return Check(PutJob(start.job)); }

absl::Status Check(const PutOrder& put) {
  const std::string name = absl::StrCat("order of job ", put.order.job.value());
  if (put.order.job.value() < 1) return Malformed(name, "ids start at 1");
  if (put.order.positions.empty()) return Malformed(name, "it has no positions");
  if (IsMoment(put.order.created)) return absl::OkStatus();
  return Malformed(name, "set the time of its creation");
}

absl::Status Check(const PutQuota& put) {
  const QuotaRecord& quota = put.quota;
  const std::string name = absl::StrCat("quota ", quota.limit, " of ", quota.holder);
  const int kind = static_cast<int>(quota.kind);
  if (kind < 1 || kind > 3) return Malformed(name, "unknown kind of holder");
  if (quota.holder.empty() || quota.limit.empty()) {
    return Malformed(name, "name its holder and its limit");
  }
  return quota.value >= 0 ? absl::OkStatus() : Malformed(name, "its value must not be negative");
}

absl::Status Check(const PutAccounts& put) {
  absl::flat_hash_map<std::string, std::string> parents;
  for (const AccountRecord& account : put.accounts) {
    if (account.name.empty()) return absl::InvalidArgumentError("accounts: one has no name");
    if (!parents.emplace(account.name, account.parent).second) {
      return Malformed(absl::StrCat("account ", account.name), "it is named twice");
    }
  }
  for (const AccountRecord& account : put.accounts) {
    std::string at = account.parent;
    for (size_t steps = 0; !at.empty(); ++steps) {
      const auto found = parents.find(at);
      const std::string name = absl::StrCat("account ", account.name);
      if (found == parents.end()) return Malformed(name, absl::StrCat("no account is named ", at));
      if (steps >= kMaxAccountDepth) {
        return Malformed(name, absl::StrCat("it is within itself, or more than ", kMaxAccountDepth,
                                            " accounts are above it"));
      }
      at = found->second;
    }
  }
  absl::flat_hash_set<std::pair<std::string, std::string>> seen;
  absl::flat_hash_set<std::string> have_default;
  for (const AccountUserRecord& user : put.users) {
    const std::string name = absl::StrCat("user ", user.user, " of account ", user.account);
    if (user.user.empty()) return Malformed(name, "the user has no name");
    if (!parents.contains(user.account)) return Malformed(name, "there is no such account");
    if (!seen.emplace(user.user, user.account).second) return Malformed(name, "it is there twice");
    if (user.is_default && !have_default.insert(user.user).second) {
      return Malformed(name, "the user has two default accounts");
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const PutReservation& put) {
  const ReservationRecord& r = put.reservation;
  const std::string name = absl::StrCat("reservation ", r.id.value());
  if (r.id.value() < 1) return Malformed(name, "ids start at 1");
  if (r.tenant.empty()) return Malformed(name, "it has no tenant");
  const bool has_entries = r.entries > 0 && !r.switches.empty();
  if (!has_entries && r.nodes.empty()) {
    return Malformed(name, "it keeps neither entries of switches nor nodes");
  }
  if (const auto twice = FindTwice(r.switches)) {
    return Malformed(name, absl::StrCat("it has switch ", ToString(*twice), " twice"));
  }
  if (const auto twice = FindTwice(r.nodes)) {
    return Malformed(name, absl::StrCat("it has node ", *twice, " twice"));
  }
  if (!IsMoment(r.from) || !IsMoment(r.until) || !IsMoment(r.created)) {
    return Malformed(name, "set the times of its beginning, its end and its creation");
  }
  if (r.until > r.from) return absl::OkStatus();
  return Malformed(name, "it ends before it begins");
}

absl::Status Check(const PutWayTimes& put) {
  if (put.record.times.empty() && !put.drop.empty()) return absl::OkStatus();
  const WayTimesOf& of = put.record.of;
  const std::string name =
      absl::StrCat("times of ", of.application, " of ", of.owner, " on ", of.layout);
  if (of.owner.empty() || of.application.empty() || of.layout.empty()) {
    return Malformed(name, "name owner, application and layout");
  }
  if (of.tree_type != 1 && of.tree_type != 2) {
    return Malformed(name, absl::StrCat("tree type ", of.tree_type, " is neither 1 nor 2"));
  }
  if (put.record.times.empty()) return Malformed(name, "there are none");
  if (!Storable(put.record.measured)) return Malformed(name, "say when they were measured");
  std::vector<std::tuple<Operation, uint8_t, CollectiveWay>> named;
  for (const WayTime& time : put.record.times) {
    if (!std::isfinite(time.us) || time.us <= 0) return Malformed(name, "times must be above 0");
    if (!std::isfinite(time.spread) || time.spread < 0) {
      return Malformed(name, "a spread is negative or not a number");
    }
    if (time.length_bits > 64 || time.runs == 0) {
      return Malformed(name, "one has no runs, or a length of more than 64 bits");
    }
    named.emplace_back(time.operation, time.length_bits, time.way);
  }
  if (!FindTwice(std::move(named))) return absl::OkStatus();
  return Malformed(name, "operation, length and way are named twice: give one time of them");
}

absl::Status Check(const AppendDeeds& append) {
  if (append.limits.singly < 1 || append.limits.per_share < 1) {
    return Malformed("kept deeds", "their number must be at least 1");
  }
  for (const DeedRecord& deed : append.deeds) {
    const std::string name = absl::StrCat("deed ", deed.method, " of ", deed.caller);
    const int share = static_cast<int>(deed.share);
    if (share < 1 || share > 3) return Malformed(name, "unknown share");
    if (deed.count == 0) return Malformed(name, "it counts none");
    if (!IsMoment(deed.time) || !Storable(deed.first)) return Malformed(name, "set its time");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckShape(const Mutation& mutation) {
  return std::visit([](const auto& what) { return Check(what); }, mutation);
}

absl::Status CheckFilter(const EventFilter& filter) {
  if (!filter.min_severity.empty() && SeverityRank(filter.min_severity) < 0) {
    return absl::InvalidArgumentError(absl::StrCat("minimum severity \"", filter.min_severity,
                                                   "\" is none of info, warning, error"));
  }
  return absl::OkStatus();
}

bool Matches(const EventFilter& filter, const EventRecord& event) {
  return event.time >= filter.start && event.time < filter.end &&
         absl::StartsWith(event.kind, filter.kind_prefix) &&
         (filter.object.empty() || event.object == filter.object) &&
         (filter.min_severity.empty() ||
          SeverityRank(event.severity) >= SeverityRank(filter.min_severity));
}

std::string PortName(Guid node, uint8_t port) {
  return absl::StrCat("port ", ToString(node), "/", port);
}

}  // namespace coppice
