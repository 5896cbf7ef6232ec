#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_metrics.h"

namespace coppice {
namespace {

class PlacementVerifier {
 public:
  PlacementVerifier(const Snapshot& snapshot, const Occupancy& occupancy,
                    const PlacementConstraints& c, absl::Span<const HostIndex> hosts)
      : fabric_(*snapshot.fabric),
        levels_(snapshot.hierarchy->levels),
        pod_level_(PodLevel(*snapshot.hierarchy)),
        occupancy_(occupancy),
        c_(c),
        hosts_(hosts),
        chosen_(hosts.begin(), hosts.end()),
        candidates_(c.candidates.begin(), c.candidates.end()) {}

  absl::Status Check() {
    if (hosts_.size() != c_.host_count) {
      return Wrong(absl::StrCat(hosts_.size(), " hosts instead of ", c_.host_count));
    }
    if (chosen_.size() != hosts_.size()) return Wrong("a host is taken twice");
    for (const HostIndex h : hosts_) RETURN_IF_ERROR(CheckHost(h));
    for (const HostIndex h : c_.include) {
      if (!chosen_.contains(h)) return Wrong(h, "is to be included and is not");
    }
    for (const HostIndex h : c_.avoid) {
      if (chosen_.contains(h)) return Wrong(h, "is to be avoided and is taken");
    }
    return CheckGroups();
  }

 private:
  absl::Status Wrong(const std::string& what) const {
    return absl::InternalError(absl::StrCat("wrong placement: ", what));
  }
  absl::Status Wrong(HostIndex h, const std::string& what) const {
    return Wrong(absl::StrCat("host ", fabric_.host_name(h), " ", what));
  }
  bool IsCandidate(HostIndex h) const { return candidates_.contains(h); }
  bool IsPlaced(HostIndex h) const {
    return !occupancy_.is_placed.empty() && occupancy_.is_placed[h.value()];
  }
  bool IsOut(HostIndex h) const {
    return !occupancy_.is_out.empty() && occupancy_.is_out[h.value()];
  }

  absl::Status CheckHost(HostIndex h) const {
    if (h.value() >= fabric_.host_count()) return Wrong("a host that the fabric does not have");
    if (fabric_.endpoints_of_host(h).empty()) return Wrong(h, "has no cabled port");
    if (IsOut(h)) return Wrong(h, "is out");
    if (IsPlaced(h)) return Wrong(h, "is held by another placement");
    if (c_.candidates.empty()) {
      if (occupancy_.holder[h.value()] != Occupancy::kFree) return Wrong(h, "is held");
    } else if (!IsCandidate(h)) {
      return Wrong(h, "is no candidate");
    }
    return absl::OkStatus();
  }

  uint32_t GroupOf(HostIndex h, size_t level) const {
    return levels_[level].group[fabric_.endpoints_of_host(h).front().value()];
  }

  absl::Status CheckGroups() {
    std::set<uint32_t> pods, components;
    std::map<uint32_t, uint32_t> leaves;  // and how many hosts
    for (const HostIndex h : hosts_) {
      ++leaves[GroupOf(h, 1)];
      pods.insert(GroupOf(h, pod_level_));
      components.insert(GroupOf(h, levels_.size() - 1));
    }
    if (components.size() > 1) return Wrong("hosts that are not connected");
    if (c_.same_pod && pods.size() > 1) return Wrong("several pods instead of one");
    if (pods.size() < c_.min_pods) return Wrong("fewer pods than asked for");
    if (leaves.size() < c_.min_leaf_switches) return Wrong("fewer leaf switches than asked for");
    if (c_.max_leaf_switches > 0 && leaves.size() > c_.max_leaf_switches) {
      return Wrong("more leaf switches than allowed");
    }
    uint32_t lesser = 0;
    for (const auto& [leaf, count] : leaves) {
      if (c_.max_hosts_per_leaf > 0 && count > c_.max_hosts_per_leaf) {
        return Wrong("more hosts on a leaf switch than allowed");
      }
      if (c_.hosts_per_leaf == 0 || count == c_.hosts_per_leaf) continue;
      if (count > c_.hosts_per_leaf || ++lesser > 1) {
        return Wrong("another number of hosts on a leaf switch than asked for");
      }
    }
    return c_.exclusive_switches ? CheckExclusive(leaves) : absl::OkStatus();
  }

  absl::Status CheckExclusive(const std::map<uint32_t, uint32_t>& leaves) const {
    for (uint32_t i = 0; i < fabric_.host_count(); ++i) {
      const HostIndex h(i);
      if (fabric_.endpoints_of_host(h).empty() || IsOut(h)) continue;
      const bool held =
          IsPlaced(h) || (occupancy_.holder[i] != Occupancy::kFree && !IsCandidate(h));
      if (held && leaves.contains(GroupOf(h, 1))) {
        return Wrong(h, "is held and on a leaf switch that is to be exclusive");
      }
    }
    return absl::OkStatus();
  }

  const Fabric& fabric_;
  const std::vector<Hierarchy::Level>& levels_;
  const size_t pod_level_;
  const Occupancy& occupancy_;
  const PlacementConstraints& c_;
  absl::Span<const HostIndex> hosts_;
  absl::flat_hash_set<HostIndex> chosen_, candidates_;
};

}  // namespace

absl::Status CheckPlacement(const Snapshot& snapshot, const Occupancy& occupancy,
                            const PlacementConstraints& constraints,
                            absl::Span<const HostIndex> hosts) {
  return PlacementVerifier(snapshot, occupancy, constraints, hosts).Check();
}

}  // namespace coppice
