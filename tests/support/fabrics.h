// Small fabrics for tests, each in one readable line. All have LIDs (switches first, then
// endpoints, from 1) and HDR links unless said otherwise; equal arguments give equal fabrics. They
// abort on impossible arguments: a test that builds nonsense is itself wrong.
#ifndef COPPICE_TESTS_SUPPORT_FABRICS_H_
#define COPPICE_TESTS_SUPPORT_FABRICS_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

using FabricPtr = std::shared_ptr<const Fabric>;

// Switch i has GUID 0x1000 + i and description "S<i>", host j "n<j>" has the adapter 0x200000 + 256
// j with port GUIDs +1, +2, ...; ports are taken in the order of the cables.
struct FabricPlan {
  uint32_t switches = 0;
  std::vector<std::pair<uint32_t, uint32_t>> cables;  // between switches
  std::vector<std::vector<uint32_t>> hosts;           // [host][port] the switch it is cabled to
  std::vector<std::string> descriptions;              // of switches; empty: "S<i>"
};
// `order`, if given, shuffles the order in which nodes and cables reach the builder, which must not
// change the result.
FabricPtr MakeFabric(const FabricPlan& plan, std::mt19937_64* order = nullptr);

//        S4   S5         spines, numbered after the leaves; one cable between each leaf and spine
//       /  \ /  \.
//     S0 S1  S2 S3       leaves; hosts n0.. on S0, then on S1, ...
//     hh hh  hh hh       ports_per_host cables from each host to its leaf
FabricPlan TwoLevelFatTreePlan(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                               uint32_t ports_per_host = 1);
FabricPtr TwoLevelFatTree(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                          uint32_t ports_per_host = 1);

// The same with two ports on each host: the first on its leaf, the second on the next one.
FabricPlan HostsOnTwoLeavesPlan(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf);
FabricPtr HostsOnTwoLeaves(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf);

//       top 0    top 1          each top is joined to one spine of every pod: top t to spine
//       /    \  /    \          t % spines; pods are two-level fat trees
//     pod 0  pod 1  ...         switches: the pods one after another (leaves, spines), then the
//     tops
FabricPlan ThreeLevelFatTreePlan(uint32_t pods, uint32_t leaves, uint32_t spines, uint32_t tops,
                                 uint32_t hosts_per_leaf);
FabricPtr ThreeLevelFatTree(uint32_t pods, uint32_t leaves, uint32_t spines, uint32_t tops,
                            uint32_t hosts_per_leaf);

//     S0 -- S1 -- S2 -- ...     a chain, `hosts_per_switch` on each
FabricPtr Chain(uint32_t switches, uint32_t hosts_per_switch);

//     S0 -- S1 -- ... -- S0     a ring, `hosts_per_switch` on each; at least 3 switches
FabricPtr Ring(uint32_t switches, uint32_t hosts_per_switch);

// Random cables between `switches` switches (parallel ones, loopback cables and several components
// included) and `hosts` hosts of one to three ports on random switches.
FabricPlan RandomFabricPlan(std::mt19937_64& rng, uint32_t switches, uint32_t cables,
                            uint32_t hosts);
FabricPtr RandomFabric(std::mt19937_64& rng, uint32_t switches, uint32_t cables, uint32_t hosts);

// All endpoints of a fabric in order of their index: members for a tree.
std::vector<EndpointIndex> AllEndpoints(const Fabric& fabric);

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_FABRICS_H_
