// A set of open hosts and its exact cost without traffic, kept up to date host by host.
#ifndef COPPICE_DAEMON_PLACEMENT_HOST_SET_H_
#define COPPICE_DAEMON_PLACEMENT_HOST_SET_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "daemon/placement/count_state.h"
#include "daemon/placement/link_tally.h"
#include "daemon/placement/placement_question.h"

namespace coppice {

// Hosts are positions in OpenHosts::hosts; those of the field's leaf switches. Not thread-safe.
class HostSet {
 public:
  // `field` has no penalties; LinkTally::IsAffordable for it, if hosts matter.
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
  const PlacementQuestion& question_;
  const LeafField& field_;
  CountState counts_;
  std::optional<LinkTally> tally_;
  std::vector<uint32_t> leaf_of_;  // [host] kNone: not of the field
  std::vector<uint32_t> at_;       // [host] in hosts_
  std::vector<uint32_t> hosts_;
  std::optional<uint32_t> without_entries_;  // of the present leaf switches, once asked for
};

// Swaps hosts and moves whole leaf switches until nothing is cheaper, or `patience` (one host in or
// out) is used up, which is counted down. Deterministic.
void ImproveHosts(const LeafField& field, HostSet& set, uint64_t& patience);

// Exchanges `count` hosts, if so many can be, for others at random, within the constraints.
void ShakeHosts(const LeafField& field, HostSet& set, uint32_t count, std::mt19937_64& rng);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_HOST_SET_H_
