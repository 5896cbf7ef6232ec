// A set of open hosts and its exact cost without traffic, kept up to date host by host.
#ifndef COPPICE_DAEMON_PLACEMENT_HOST_SET_H_
#define COPPICE_DAEMON_PLACEMENT_HOST_SET_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "daemon/placement/count_state.h"

namespace coppice {

// What a set of hosts costs beyond its counts by leaf switch (CountState): every term that depends
// on which leaf switches are used together, or which of their hosts. Both searches over hosts ask
// here what one more costs. Shared links and load are those of the routes of JobChannels to every
// open host from every leaf switch, walked once and counted up and down. Not thread-safe.
class HostCost {
 public:
  // True if routes are few enough to be kept, and of any such set all are looked at.
  static bool IsAffordable(const PlacementQuestion& question, size_t open_hosts, size_t leaves);

  // IsAffordable for the field, if hosts matter.
  HostCost(const PlacementQuestion& question, const LeafField& field);

  // False: it depends on leaf switches alone, and Add and Remove need not be called.
  bool hosts_matter() const { return hosts_matter_; }
  // Host `host` (position in OpenHosts::hosts), on leaf switch `leaf` of the field, is reached from
  // all of `sources` but its own; or is so no longer.
  void Add(uint32_t host, uint32_t leaf, absl::Span<const uint32_t> sources) {
    Count(host, leaf, sources, 1);
  }
  void Remove(uint32_t host, uint32_t leaf, absl::Span<const uint32_t> sources) {
    Count(host, leaf, sources, -1);
  }

  // Of the leaf switches used, whichever hosts they give. O(SwitchesWithoutEntries).
  double OfLeaves(absl::Span<const uint32_t> used) const;
  // Of the hosts that have been added, beyond that.
  double OfHosts() const;
  // No set that holds these hosts has less OfHosts().
  double LeastOfHosts() const { return field_.objective.shared_links * shared_links_; }

 private:
  struct KeptChannel {
    uint32_t routes = 0;  // of the set
    uint32_t link = 0;
    float load = 0;
    bool has_users = false;
  };
  void Count(uint32_t host, uint32_t leaf, absl::Span<const uint32_t> sources, int32_t by);
  const std::vector<uint32_t>& RouteTo(uint32_t host, uint32_t source);
  uint32_t Keep(ChannelIndex c);
  void Use(KeptChannel& channel, int32_t by);

  const PlacementQuestion& question_;
  const LeafField& field_;
  const bool hosts_matter_;
  std::vector<std::optional<std::vector<uint32_t>>> routes_;  // [host][leaf] kept channels
  absl::flat_hash_map<uint32_t, uint32_t> channel_numbers_, link_numbers_;
  std::vector<KeptChannel> channels_;
  std::vector<uint32_t> shared_directions_;  // [link] used by the set and by others
  uint32_t shared_links_ = 0, used_ = 0;
  double load_ = 0;
};

// Hosts are positions in OpenHosts::hosts; those of the field's leaf switches. Not thread-safe.
class HostSet {
 public:
  // `field` has no penalties; HostCost::IsAffordable for it, if hosts matter.
  HostSet(const PlacementQuestion& question, const LeafField& field);

  void Assign(const std::vector<uint32_t>& hosts);
  void Insert(uint32_t host);
  void Erase(uint32_t host);

  bool contains(uint32_t host) const { return at_[host] != kNone; }
  const std::vector<uint32_t>& hosts() const { return hosts_; }
  // Index in the field.
  uint32_t leaf_of(uint32_t host) const { return leaf_of_[host]; }
  const CountState& counts() const { return counts_; }
  double cost();

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  CountState counts_;
  HostCost cost_;
  std::vector<uint32_t> leaf_of_;  // [host] kNone: not of the field
  std::vector<uint32_t> at_;       // [host] in hosts_
  std::vector<uint32_t> hosts_;
  std::optional<double> of_leaves_;  // cost of the present leaf switches, once asked for
};

// Swaps hosts and moves whole leaf switches until nothing is cheaper, or `patience` (one host in or
// out) is used up, which is counted down. Deterministic.
void ImproveHosts(const LeafField& field, HostSet& set, uint64_t& patience);

// Exchanges `count` hosts, if so many can be, for others at random, within the constraints.
void ShakeHosts(const LeafField& field, HostSet& set, uint32_t count, std::mt19937_64& rng);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_HOST_SET_H_
