// What a fabric tells once for all placements on it: its hosts by leaf switch, leaf switches by pod
// and component, and how far hosts of two leaf switches are from each other.
//
//     pod        0             1            leaf switches are numbered so that those of a pod, and
//     leaf     0   1         2   3          hosts so that those of a leaf switch, are consecutive
//     host    h h  h h      h h  h h
//
// A host counts where its first endpoint is; other rails are not looked at. Knows not who holds
// hosts (placement_request.h).
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_INDEX_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_INDEX_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"

namespace coppice {

// The level of the hierarchy that pods are of: the one above the leaf switch. Lines, planes and
// blocks of a grid are no pods, because hosts of two lines may be neighbours: there, and where
// nothing is between leaf switch and component, it is the component.
size_t PodLevel(const Hierarchy& hierarchy);

// Immutable; thread-safe.
class PlacementIndex final {
 public:
  static constexpr uint32_t kNone = 0xffffffff;
  static constexpr uint32_t kUnreachable = 255;

  // Total. O(endpoints + leaf switches * levels + squared classes of leaf switches), the latter up
  // to kMaxClasses of them; beyond, distances are those that the snapshot's routes keep.
  static std::shared_ptr<const PlacementIndex> Make(const Snapshot& snapshot);

  uint32_t leaf_count() const { return static_cast<uint32_t>(switch_of_.size()); }
  uint32_t host_count() const { return static_cast<uint32_t>(leaf_of_.size()); }
  // kNone for a host without a cabled port, which is never placed.
  uint32_t leaf_of(HostIndex h) const { return leaf_of_[h.value()]; }
  // By index.
  absl::Span<const HostIndex> hosts(uint32_t leaf) const {
    return absl::MakeConstSpan(hosts_).subspan(host_begin_[leaf],
                                               host_begin_[leaf + 1] - host_begin_[leaf]);
  }
  // All hosts, leaf switch by leaf switch.
  absl::Span<const HostIndex> hosts_by_leaf() const { return hosts_; }
  // None where hosts are cabled back to back.
  std::optional<SwitchIndex> switch_of(uint32_t leaf) const { return switch_of_[leaf]; }

  // Pods and components are runs of leaf switches, numbered from 0 in their order.
  uint32_t pod_of(uint32_t leaf) const { return pod_of_[leaf]; }
  uint32_t pod_count() const { return pod_of_.empty() ? 0 : pod_of_.back() + 1; }
  uint32_t component_of(uint32_t leaf) const { return component_of_[leaf]; }

  // Links on a shortest path between two hosts of a leaf switch.
  uint32_t hops_within(uint32_t leaf) const { return switch_of_[leaf] ? 2 : 1; }
  // The same between hosts of two leaf switches, or of one; kUnreachable if there is no path.
  uint32_t Hops(uint32_t a, uint32_t b) const {
    if (a == b) return hops_within(a);
    if (!matrix_.empty()) return matrix_[size_t{class_of_[a]} * class_count_ + class_of_[b]];
    return FarHops(a, b);
  }
  // No less than this between hosts of different leaf switches.
  uint32_t least_hops() const { return least_hops_; }
  // Leaf switches of one class are equally far from all others. Numbered by their first leaf.
  uint32_t class_of(uint32_t leaf) const { return class_of_[leaf]; }
  // Most hosts on any leaf switch.
  uint32_t largest_leaf() const { return largest_leaf_; }

  // "leaf switch "L3"", as messages name it.
  std::string Describe(uint32_t leaf) const;

  const Fabric& fabric() const { return *fabric_; }

 private:
  static constexpr uint32_t kMaxClasses = 2048;
  PlacementIndex() = default;
  void NumberLeaves(const Hierarchy& hierarchy);
  void MeasureDistances();
  uint32_t FarHops(uint32_t a, uint32_t b) const;

  std::shared_ptr<const Fabric> fabric_;
  std::shared_ptr<const Routes> routes_;
  std::vector<uint32_t> leaf_of_;                      // [host]
  std::vector<HostIndex> hosts_;                       // by leaf
  std::vector<uint32_t> host_begin_;                   // [leaf + 1] into hosts_
  std::vector<std::optional<SwitchIndex>> switch_of_;  // [leaf]
  std::vector<uint32_t> pod_of_, component_of_;        // [leaf]
  std::vector<uint32_t> class_of_;                     // [leaf]
  uint32_t class_count_ = 0;
  std::vector<uint8_t> matrix_;  // [class][class], or empty: too many
  uint32_t least_hops_ = 3;
  uint32_t largest_leaf_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_INDEX_H_
