// Dragonfly, J. Kim, W. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly
// topology", ISCA 2008; and dragonfly+, A. Shpiner et al., "Dragonfly+: low cost topology for
// scaling datacenters", HiPINEB 2017, whose groups are two-level trees with global links on the
// spines.
//
//     group 0            group 1       Every two routers of a group are joined, and every pair of
//     R--R--R   global   R--R--R       groups by the same number of links (model.h).
//      \ | / ------------ \ | /
//        R                  R
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/models/model.h"

namespace coppice {
namespace {

// The number of groups: as many as there can be if it is 0.
absl::StatusOr<uint64_t> Groups(const ModelArguments& arguments, uint64_t global_ports) {
  const uint64_t groups = arguments.Integer("g");
  RETURN_IF_ERROR(CheckGroups("g", groups, global_ports));
  return groups == 0 ? global_ports + 1 : groups;
}

// The global ports of a group whose carriers are `count` switches from `first` on.
std::vector<uint32_t> GlobalPorts(uint32_t first, uint64_t count, uint64_t per_switch) {
  std::vector<uint32_t> ports;
  for (uint64_t c = 0; c < count; ++c) {
    ports.insert(ports.end(), per_switch, static_cast<uint32_t>(first + c));
  }
  return ports;
}

absl::StatusOr<std::shared_ptr<const Fabric>> GenerateDragonfly(const ModelArguments& arguments) {
  const uint64_t p = arguments.Integer("p"), a = arguments.Integer("a"), h = arguments.Integer("h");
  ASSIGN_OR_RETURN(const uint64_t groups, Groups(arguments, a * h));
  const double routers = static_cast<double>(a) * static_cast<double>(groups);
  RETURN_IF_ERROR(
      ModelBuilder::CheckSize(routers, routers * static_cast<double>(p),
                              routers * (static_cast<double>(p + h) + static_cast<double>(a) / 2)));
  ModelBuilder builder(groups * a * p);
  std::vector<std::vector<uint32_t>> global_ports;
  for (uint64_t g = 0; g < groups; ++g) {
    const auto first = static_cast<uint32_t>(g * a);
    for (uint64_t r = 0; r < a; ++r) {
      const uint32_t s = builder.AddSwitch(absl::StrCat("G", g, "R", r));
      for (uint64_t n = 0; n < p; ++n) {
        builder.CableHost((g * a + r) * p + n, 0, s, {arguments.Speed(0)});
      }
    }
    CableEachPair(builder, first, a,
                  [&](uint64_t, uint64_t) { return ModelLink{arguments.Speed(1)}; });
    global_ports.push_back(GlobalPorts(first, a, h));
  }
  CableGroups(builder, global_ports, {arguments.Speed(2)});
  return builder.Build(arguments);
}

absl::StatusOr<std::shared_ptr<const Fabric>> GeneratePlus(const ModelArguments& arguments) {
  const uint64_t p = arguments.Integer("p"), leaves = arguments.Integer("leaves"),
                 spines = arguments.Integer("spines"), h = arguments.Integer("h");
  ASSIGN_OR_RETURN(const uint64_t groups, Groups(arguments, spines * h));
  const double all_leaves = static_cast<double>(leaves) * static_cast<double>(groups);
  const double all_spines = static_cast<double>(spines) * static_cast<double>(groups);
  RETURN_IF_ERROR(ModelBuilder::CheckSize(
      all_leaves + all_spines, all_leaves * static_cast<double>(p),
      all_leaves * static_cast<double>(p + spines) + all_spines * static_cast<double>(h)));
  ModelBuilder builder(groups * leaves * p);
  std::vector<std::vector<uint32_t>> global_ports;
  for (uint64_t g = 0; g < groups; ++g) {
    std::vector<uint32_t> leaf(leaves);
    for (uint64_t l = 0; l < leaves; ++l) {
      leaf[l] = builder.AddSwitch(absl::StrCat("G", g, "L", l));
      for (uint64_t n = 0; n < p; ++n) {
        builder.CableHost((g * leaves + l) * p + n, 0, leaf[l], {arguments.Speed(0)});
      }
    }
    const auto first_spine = static_cast<uint32_t>(leaf.back() + 1);
    for (uint64_t s = 0; s < spines; ++s) {
      const uint32_t spine = builder.AddSwitch(absl::StrCat("G", g, "S", s));
      for (const uint32_t l : leaf) builder.Cable(l, spine, {arguments.Speed(1)});
    }
    global_ports.push_back(GlobalPorts(first_spine, spines, h));
  }
  CableGroups(builder, global_ports, {arguments.Speed(2)});
  return builder.Build(arguments);
}

}  // namespace

const Model& DragonflyModel() {
  constexpr ArgumentKind kInteger = ArgumentKind::kInteger;
  static const Model* const model =
      new Model{"dragonfly",
                "groups of fully joined routers G<group>R<router>, every pair of groups joined",
                {{"p", kInteger, "2", 0, 254, "hosts on each router"},
                 {"a", kInteger, "4", 1, 254, "routers in each group"},
                 {"h", kInteger, "2", 0, 254, "global links of each router"},
                 {"g", kInteger, "0", 0, 65536, "groups; 0 = the most there can be, a h + 1"}},
                &GenerateDragonfly};
  return *model;
}

const Model& DragonflyPlusModel() {
  constexpr ArgumentKind kInteger = ArgumentKind::kInteger;
  static const Model* const model = new Model{
      "dragonfly-plus",
      "groups of leaf switches G<group>L<n> and spines G<group>S<n>, every pair of groups joined",
      {{"p", kInteger, "4", 0, 254, "hosts on each leaf switch"},
       {"leaves", kInteger, "4", 1, 254, "leaf switches in each group"},
       {"spines", kInteger, "4", 1, 254, "spine switches in each group"},
       {"h", kInteger, "4", 0, 254, "global links of each spine"},
       {"g", kInteger, "0", 0, 65536, "groups; 0 = the most there can be, spines h + 1"}},
      &GeneratePlus};
  return *model;
}

// IBM PERCS, as T. Hoefler and M. Snir model it in "Generic topology mapping strategies for
// large-scale parallel architectures", ICS 2011, section 5.3.2.
//
// A node is a hub (switch SN<supernode>D<drawer>N<node>) with its hosts. 8 nodes are a drawer,
// fully joined by LL links of 24 GiB/s; 4 drawers are a supernode, whose nodes of different drawers
// are fully joined by LR links of 5 GiB/s; supernodes are joined by D links of 10 GiB/s.
//
//     drawer 0: n0==n1==..==n7    == LL    Every pair of supernodes has the same number of D links
//                \  |  /           |  LR    (model.h); which D port of a supernode takes
//                which
//     drawer 1: n8==n9==..==n15    ~  D    of them is random and depends on `seed` only. 289
//                ~                         supernodes with d = 9: one each.
//
// A host's own link is 96 GiB/s, the hub's connection to its node (B. Arimilli et al., "The PERCS
// high-performance interconnect", HOTI 2010: 192 GB/s, both directions together).
// No InfiniBand width and speed gives these, so rates stay unknown and capacities are stated.

namespace {

constexpr uint32_t kNodesPerDrawer = 8;
constexpr uint32_t kDrawers = 4;
constexpr uint32_t kNodes = kNodesPerDrawer * kDrawers;  // of a supernode

constexpr ModelLink GibPerSecond(double gib) {
  return {LinkRate{}, static_cast<float>(gib * 1073741824.0 * 8 / 1e9)};
}

// The node that each D port of a supernode is on, in random order: port i serves the i-th cable.
// The generator and this shuffle are the same on every machine; std::shuffle is not.
std::vector<uint32_t> ShuffledPorts(uint32_t first, uint64_t per_node, std::mt19937_64& random) {
  std::vector<uint32_t> ports;
  for (uint32_t n = 0; n < kNodes; ++n) ports.insert(ports.end(), per_node, first + n);
  for (size_t i = ports.size(); i > 1; --i) std::swap(ports[i - 1], ports[random() % i]);
  return ports;
}

void AddSupernode(ModelBuilder& builder, uint64_t number, uint64_t hosts) {
  const auto first = static_cast<uint32_t>(number * kNodes);
  for (uint32_t n = 0; n < kNodes; ++n) {
    builder.AddSwitch(
        absl::StrCat("SN", number, "D", n / kNodesPerDrawer, "N", n % kNodesPerDrawer));
    for (uint64_t h = 0; h < hosts; ++h) {
      builder.CableHost((first + n) * hosts + h, 0, first + n, GibPerSecond(96));
    }
  }
  CableEachPair(builder, first, kNodes, [](uint64_t n, uint64_t m) {
    return GibPerSecond(n / kNodesPerDrawer == m / kNodesPerDrawer ? 24 : 5);
  });
}

absl::StatusOr<std::shared_ptr<const Fabric>> GeneratePercs(const ModelArguments& arguments) {
  const uint64_t supernodes = arguments.Integer("supernodes"), hosts = arguments.Integer("hosts");
  const uint64_t d = arguments.Integer("d");
  if (arguments.Given("speeds")) {
    return absl::InvalidArgumentError(
        "argument speeds: the capacities of PERCS are fixed, and no rates have them; leave it out");
  }
  RETURN_IF_ERROR(CheckGroups("supernodes", supernodes, kNodes * d));
  const double nodes = static_cast<double>(supernodes) * kNodes;
  RETURN_IF_ERROR(ModelBuilder::CheckSize(
      nodes, nodes * static_cast<double>(hosts),
      nodes * (static_cast<double>(hosts + d) + static_cast<double>(kNodes) / 2)));
  ModelBuilder builder(supernodes * kNodes * hosts);
  std::mt19937_64 random(arguments.Integer("seed"));
  std::vector<std::vector<uint32_t>> ports(supernodes);
  for (uint64_t s = 0; s < supernodes; ++s) {
    AddSupernode(builder, s, hosts);
    ports[s] = ShuffledPorts(static_cast<uint32_t>(s * kNodes), d, random);
  }
  CableGroups(builder, ports, GibPerSecond(10));
  return builder.Build(arguments);
}

}  // namespace

const Model& PercsModel() {
  constexpr ArgumentKind kInteger = ArgumentKind::kInteger;
  static const Model* const model = new Model{
      "percs",
      "IBM PERCS: supernodes of 4 drawers of 8 nodes; capacities are fixed, speeds is refused",
      {{"supernodes", kInteger, "289", 1, 7073, "supernodes of 32 nodes"},
       {"d", kInteger, "9", 0, 221, "D links of each node"},
       {"hosts", kInteger, "1", 0, 200, "hosts on each node"},
       {"seed", kInteger, "1", 0, UINT64_MAX, "where the D links end"}},
      &GeneratePercs};
  return *model;
}

}  // namespace coppice
