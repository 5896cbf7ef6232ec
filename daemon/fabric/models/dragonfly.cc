// Dragonfly, J. Kim, W. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly
// topology", ISCA 2008; and dragonfly+, A. Shpiner et al., "Dragonfly+: low cost topology for
// scaling datacenters", HiPINEB 2017, whose groups are two-level trees with global links on the
// spines.
//
//     group 0            group 1       Every two routers of a group are joined, and every pair of
//     R--R--R   global   R--R--R       groups by the same number of links (AddGroups).
//      \ | / ------------ \ | /
//        R                  R
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/models/model.h"

namespace coppice {
namespace {

using FabricOr = absl::StatusOr<std::shared_ptr<const Fabric>>;

// INVALID_ARGUMENT if `groups`, the value of the argument `name`, are more than `global_ports` of
// each can join.
absl::Status CheckGroups(absl::string_view name, uint64_t groups, uint64_t global_ports) {
  if (groups <= global_ports + 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "argument ", name, "=", groups, ": the ", global_ports, " global links of a group reach at ",
      "most ", global_ports + 1, " groups: ask for fewer groups or for more links"));
}

// The number of groups: as many as there can be if it is 0.
absl::StatusOr<uint64_t> Groups(const ModelArguments& arguments, uint64_t global_ports) {
  const uint64_t groups = arguments.Integer("g");
  RETURN_IF_ERROR(CheckGroups("g", groups, global_ports));
  return groups == 0 ? global_ports + 1 : groups;
}

// The switch that each global port of a group is on: `per_switch` on each from `first` on.
std::vector<uint32_t> GlobalPorts(uint32_t first, uint64_t count, uint64_t per_switch) {
  std::vector<uint32_t> ports;
  for (uint64_t c = 0; c < count; ++c) {
    ports.insert(ports.end(), per_switch, static_cast<uint32_t>(first + c));
  }
  return ports;
}

// Joins every two of the `count` switches from `first` on. `link_of(i, j)` is the link between the
// i-th and the j-th, i < j.
template <class LinkOf>
void CableEachPair(ModelBuilder& builder, uint32_t first, uint64_t count, LinkOf link_of) {
  for (uint64_t i = 0; i < count; ++i) {
    for (uint64_t j = i + 1; j < count; ++j) {
      builder.Cable(static_cast<uint32_t>(first + i), static_cast<uint32_t>(first + j),
                    link_of(i, j));
    }
  }
}

// Adds `groups` groups, of which add_group(g) gives the GlobalPorts, all as many, and joins every
// pair of them by the same number of cables, the most that these allow.
//
// Round k of the ports goes once to every other group in order: port k (groups - 1) + i of a group
// is its k-th cable to its i-th other group. Ports left over by an incomplete round stay free.
template <class AddGroup>
void AddGroups(ModelBuilder& builder, uint64_t groups, ModelLink link, AddGroup add_group) {
  std::vector<std::vector<uint32_t>> ports;
  for (uint64_t g = 0; g < groups; ++g) ports.push_back(add_group(g));
  const size_t rounds = groups < 2 ? 0 : ports.front().size() / (groups - 1);
  const auto carrier = [&](size_t group, size_t other, size_t round) {
    return ports[group][round * (groups - 1) + (other < group ? other : other - 1)];
  };
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < groups; ++i) {
      for (size_t j = i + 1; j < groups; ++j) {
        builder.Cable(carrier(i, j, round), carrier(j, i, round), link);
      }
    }
  }
}

FabricOr GenerateDragonfly(const ModelArguments& arguments) {
  const uint64_t p = arguments.Integer("p"), a = arguments.Integer("a"), h = arguments.Integer("h");
  ASSIGN_OR_RETURN(const uint64_t groups, Groups(arguments, a * h));
  const double routers = 1.0 * a * groups;
  RETURN_IF_ERROR(ModelBuilder::CheckSize(routers, routers * p, routers * (p + h + 0.5 * a)));
  ModelBuilder builder(groups * a * p);
  AddGroups(builder, groups, {arguments.Speed(2)}, [&](uint64_t g) {
    const uint32_t first = builder.switch_count();
    for (uint64_t r = 0; r < a; ++r) {
      builder.AddLeaf(absl::StrCat("G", g, "R", r), p, {arguments.Speed(0)});
    }
    CableEachPair(builder, first, a,
                  [&](uint64_t, uint64_t) { return ModelLink{arguments.Speed(1)}; });
    return GlobalPorts(first, a, h);
  });
  return builder.Build(arguments);
}

FabricOr GeneratePlus(const ModelArguments& arguments) {
  const uint64_t p = arguments.Integer("p"), leaves = arguments.Integer("leaves"),
                 spines = arguments.Integer("spines"), h = arguments.Integer("h");
  ASSIGN_OR_RETURN(const uint64_t groups, Groups(arguments, spines * h));
  const double all_leaves = 1.0 * leaves * groups, all_spines = 1.0 * spines * groups;
  RETURN_IF_ERROR(ModelBuilder::CheckSize(all_leaves + all_spines, all_leaves * p,
                                          all_leaves * (p + spines) + all_spines * h));
  ModelBuilder builder(groups * leaves * p);
  AddGroups(builder, groups, {arguments.Speed(2)}, [&](uint64_t g) {
    const uint32_t first_leaf = builder.switch_count();
    for (uint64_t l = 0; l < leaves; ++l) {
      builder.AddLeaf(absl::StrCat("G", g, "L", l), p, {arguments.Speed(0)});
    }
    const uint32_t first_spine = builder.switch_count();
    for (uint64_t s = 0; s < spines; ++s) {
      const uint32_t spine = builder.AddSwitch(absl::StrCat("G", g, "S", s));
      for (uint32_t l = first_leaf; l < first_spine; ++l) {
        builder.Cable(l, spine, {arguments.Speed(1)});
      }
    }
    return GlobalPorts(first_spine, spines, h);
  });
  return builder.Build(arguments);
}

// IBM PERCS, as T. Hoefler and M. Snir model it in "Generic topology mapping strategies for
// large-scale parallel architectures", ICS 2011, section 5.3.2.
//
// A node is a hub (switch SN<supernode>D<drawer>N<node>) with its hosts. 8 nodes are a drawer,
// fully joined by LL links of 24 GiB/s; 4 drawers are a supernode, whose nodes of different drawers
// are fully joined by LR links of 5 GiB/s; supernodes are joined by D links of 10 GiB/s.
//
//     drawer 0: n0==n1==..==n7    == LL    Every pair of supernodes has the same number of D links
//                \  |  /           |  LR    (AddGroups); which D port of a supernode takes
//     drawer 1: n8==n9==..==n15    ~  D    which of them is random and depends on `seed` only. 289
//                ~                         supernodes with d = 9: one each.
//
// A host's own link is 96 GiB/s, the hub's connection to its node (B. Arimilli et al., "The PERCS
// high-performance interconnect", HOTI 2010: 192 GB/s, both directions together).
// No InfiniBand width and speed gives these, so rates stay unknown and capacities are stated.

constexpr uint32_t kNodesPerDrawer = 8;
constexpr uint32_t kDrawers = 4;
constexpr uint32_t kNodes = kNodesPerDrawer * kDrawers;  // of a supernode

constexpr ModelLink GibPerSecond(double gib) {
  return {LinkRate{}, static_cast<float>(gib * 1073741824.0 * 8 / 1e9)};
}

FabricOr GeneratePercs(const ModelArguments& arguments) {
  const uint64_t supernodes = arguments.Integer("supernodes"), hosts = arguments.Integer("hosts");
  const uint64_t d = arguments.Integer("d");
  if (arguments.Given("speeds")) {
    return absl::InvalidArgumentError(
        "argument speeds: the capacities of PERCS are fixed, and no rates have them; leave it out");
  }
  RETURN_IF_ERROR(CheckGroups("supernodes", supernodes, kNodes * d));
  const double nodes = 1.0 * supernodes * kNodes;
  RETURN_IF_ERROR(
      ModelBuilder::CheckSize(nodes, nodes * hosts, nodes * (hosts + d + 0.5 * kNodes)));
  ModelBuilder builder(supernodes * kNodes * hosts);
  std::mt19937_64 random(arguments.Integer("seed"));
  AddGroups(builder, supernodes, GibPerSecond(10), [&](uint64_t number) {
    const uint32_t first = builder.switch_count();
    for (uint32_t n = 0; n < kNodes; ++n) {
      builder.AddLeaf(
          absl::StrCat("SN", number, "D", n / kNodesPerDrawer, "N", n % kNodesPerDrawer), hosts,
          GibPerSecond(96));
    }
    CableEachPair(builder, first, kNodes, [](uint64_t n, uint64_t m) {
      return GibPerSecond(n / kNodesPerDrawer == m / kNodesPerDrawer ? 24 : 5);
    });
    // The generator and this shuffle are the same on every machine; std::shuffle is not.
    std::vector<uint32_t> ports = GlobalPorts(first, kNodes, d);
    for (size_t i = ports.size(); i > 1; --i) std::swap(ports[i - 1], ports[random() % i]);
    return ports;
  });
  return builder.Build(arguments);
}

}  // namespace

Model DragonflyModel() {
  return {"dragonfly",
          "groups of fully joined routers G<group>R<router>, every pair of groups joined",
          {{"p", "2", 0, 254, "hosts on each router"},
           {"a", "4", 1, 254, "routers in each group"},
           {"h", "2", 0, 254, "global links of each router"},
           {"g", "0", 0, 65536, "groups; 0 = the most there can be, a h + 1"}},
          &GenerateDragonfly};
}

Model DragonflyPlusModel() {
  return {
      "dragonfly-plus",
      "groups of leaf switches G<group>L<n> and spines G<group>S<n>, every pair of groups joined",
      {{"p", "4", 0, 254, "hosts on each leaf switch"},
       {"leaves", "4", 1, 254, "leaf switches in each group"},
       {"spines", "4", 1, 254, "spine switches in each group"},
       {"h", "4", 0, 254, "global links of each spine"},
       {"g", "0", 0, 65536, "groups; 0 = the most there can be, spines h + 1"}},
      &GeneratePlus};
}

Model PercsModel() {
  return {"percs",
          "IBM PERCS: supernodes of 4 drawers of 8 nodes; capacities are fixed, speeds is refused",
          {{"supernodes", "289", 1, 7073, "supernodes of 32 nodes"},
           {"d", "9", 0, 221, "D links of each node"},
           {"hosts", "1", 0, 200, "hosts on each node"},
           {"seed", "1", 0, UINT64_MAX, "where the D links end"}},
          &GeneratePercs};
}

}  // namespace coppice
