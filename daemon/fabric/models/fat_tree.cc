// Fat trees the way people order them, in three forms.
//
// ports, levels: the full tree of equal switches (k-ary n-tree with a double-width top):
// XGFT(n; k/2,..,k/2,k; 1,k/2,..,k/2), that is 2 (k/2)^n hosts on (2n - 1) (k/2)^(n-1) switches.
// Pruned by p, a leaf switch has k/(2p) uplinks, and every level above it a p-th of its switches.
//
// leaves, spines: two levels. Uplinks are dealt out to the spines leaf after leaf, moved on by one
// after each round, so that fewer uplinks than spines (pruning) load the spines evenly and yet
// leave one fabric, and more make parallel links.
//
//     spines    S0   S1   ..          names: leaf L<i>, spine S<i>
//               | \ / |
//     leaves    L0   L1   ..
//              hosts
//
// supernodes, tops: as many of the former side by side, named L<n>_<i> and S<n>_<i>; top switch
// T<t> is joined to spine t mod spines of every supernode (80 supernodes with 32 leaves of 16 hosts
// and 16 spines: T top switches carry the 40,960 ports of Chen 2024, section 6.2.2).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/models/model.h"

namespace coppice {
namespace {

// The wiring of extended generalised fat trees, S. R. Ohring et al., "On generalized fat trees",
// IPPS 1995, shared by the xgft model and the k-ary form of the fat-tree model.
//
// XGFT(h; m1..mh; w1..wh): hosts are level 0. A node of level i has m_i children at level i-1, a
// node of level i-1 has w_i parents at level i. Level i holds (w1..wi) * (m_{i+1}..mh) nodes, each
// named by (b_i..b_1; a_h..a_{i+1}) with b_j < w_j, a_j < m_j; its parent number b is the node of
// level i+1 with b in front of its b's and without its lowest a.
//
//     XGFT(2; 2,2; 1,2)    level 2   O   O        w2 = 2 parents
//                                    |\ /|
//                          level 1   O   O        m2 = 2 children, w1 = 1
//                                   / \ / \       m1 = 2
//                          level 0  h h h h
//
// Cost: linear in nodes and links.

// Nodes of one level in one rail, as block * width + b: `width` = w1..wi, block = the a's as a
// number.
struct Level {
  uint64_t width = 1, blocks = 1;
  uint32_t first = 0;  // number of its first switch
};

absl::Status CheckXgft(const std::vector<uint64_t>& children, const std::vector<uint64_t>& parents,
                       uint32_t rails) {
  double below = rails, links = 0, switches = 0;  // `below`: nodes of the level below
  for (const uint64_t m : children) below *= m;
  const double endpoints = below * parents[0];
  for (size_t i = 0; i < children.size(); ++i) {
    links += below * parents[i];
    below = below * parents[i] / children[i];
    switches += below;
  }
  return ModelBuilder::CheckSize(switches, endpoints, links);
}

// Joins every node of level i to its parents at level i + 1.
void CableLevel(ModelBuilder& builder, const Level& low, const Level& high, uint64_t children,
                uint64_t parents, uint32_t rail, bool hosts_below, ModelLink link) {
  for (uint64_t block = 0; block < low.blocks; ++block) {
    for (uint64_t b = 0; b < low.width; ++b) {
      for (uint64_t p = 0; p < parents; ++p) {
        const uint64_t above = block / children * high.width + p * low.width + b;
        const auto upper = static_cast<uint32_t>(high.first + above);
        if (hosts_below) {
          builder.CableHost(block, rail, upper, link);
        } else {
          builder.Cable(static_cast<uint32_t>(low.first + block * low.width + b), upper, link);
        }
      }
    }
  }
}

// XGFT(h; m1..mh; w1..wh). Each of `rails` planes has its own switches; a host has one adapter in
// every plane, with w1 ports on as many leaf switches. Both vectors have h >= 1 entries.
absl::StatusOr<std::shared_ptr<const Fabric>> GenerateXgft(const std::vector<uint64_t>& children,
                                                           const std::vector<uint64_t>& parents,
                                                           uint32_t rails,
                                                           const ModelArguments& arguments) {
  RETURN_IF_ERROR(CheckXgft(children, parents, rails));
  uint64_t hosts = 1;
  for (const uint64_t m : children) hosts *= m;
  ModelBuilder builder(hosts, rails);
  for (uint32_t rail = 0; rail < rails; ++rail) {
    Level low{1, hosts, 0};
    for (size_t i = 0; i < children.size(); ++i) {
      Level high{low.width * parents[i], low.blocks / children[i], 0};
      high.first = builder.switch_count();
      for (uint64_t n = 0; n < high.width * high.blocks; ++n) {
        const std::string plane = rails > 1 ? absl::StrCat("P", rail) : "";
        builder.AddSwitch(absl::StrCat(plane, "S", i + 1, "_", n));
      }
      CableLevel(builder, low, high, children[i], parents[i], rail, i == 0, {arguments.Speed(i)});
      low = high;
    }
  }
  return builder.Build(arguments);
}

absl::StatusOr<std::shared_ptr<const Fabric>> GenerateXgft(const ModelArguments& arguments) {
  const std::vector<uint64_t>& children = arguments.Extents("m");
  const std::vector<uint64_t>& parents = arguments.Extents("w");
  if (children.size() != parents.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("arguments m and w: ", children.size(), " and ", parents.size(),
                     " numbers; both need one number for each level"));
  }
  return GenerateXgft(children, parents, static_cast<uint32_t>(arguments.Integer("rails")),
                      arguments);
}

struct Shape {
  uint64_t supernodes, leaves, spines, hosts_per_leaf, ports_per_host, uplinks, tops;
};

// Adds one supernode; returns its first spine.
uint32_t AddSupernode(ModelBuilder& builder, const Shape& shape, uint64_t number,
                      const ModelArguments& arguments) {
  const std::string prefix = shape.supernodes > 1 ? absl::StrCat(number, "_") : "";
  const uint32_t first_leaf = builder.switch_count();
  for (uint64_t l = 0; l < shape.leaves; ++l) {
    builder.AddLeaf(absl::StrCat("L", prefix, l), shape.hosts_per_leaf, {arguments.Speed(0)},
                    shape.ports_per_host);
  }
  const uint32_t first_spine = builder.switch_count();
  for (uint64_t s = 0; s < shape.spines; ++s) builder.AddSwitch(absl::StrCat("S", prefix, s));
  for (uint64_t l = 0; l < shape.leaves; ++l) {
    for (uint64_t u = 0; u < shape.uplinks; ++u) {
      const uint64_t round = l * shape.uplinks / shape.spines;
      const uint64_t spine = (l * shape.uplinks + round + u) % shape.spines;
      builder.Cable(static_cast<uint32_t>(first_leaf + l),
                    static_cast<uint32_t>(first_spine + spine), {arguments.Speed(1)});
    }
  }
  return first_spine;
}

absl::StatusOr<std::shared_ptr<const Fabric>> GenerateLevels(const ModelArguments& arguments) {
  Shape shape{arguments.Integer("supernodes"),
              arguments.Integer("leaves"),
              arguments.Integer("spines"),
              arguments.Integer("hosts-per-leaf"),
              arguments.Integer("ports-per-host"),
              arguments.Integer("uplinks-per-leaf"),
              arguments.Integer("tops")};
  if (shape.uplinks == 0) shape.uplinks = shape.spines;
  if (shape.supernodes > 1 && shape.tops == 0) {
    return absl::InvalidArgumentError(
        "argument tops=0: several supernodes need at least one top switch to join them");
  }
  const double leaves = 1.0 * shape.supernodes * shape.leaves;
  const double hosts = leaves * shape.hosts_per_leaf, ports = hosts * shape.ports_per_host;
  RETURN_IF_ERROR(ModelBuilder::CheckSize(
      leaves + 1.0 * shape.supernodes * shape.spines + shape.tops, ports,
      ports + leaves * shape.uplinks + 1.0 * shape.tops * shape.supernodes));
  ModelBuilder builder(static_cast<uint64_t>(hosts));
  std::vector<uint32_t> first_spines;
  for (uint64_t n = 0; n < shape.supernodes; ++n) {
    first_spines.push_back(AddSupernode(builder, shape, n, arguments));
  }
  for (uint64_t t = 0; t < shape.tops; ++t) {
    const uint32_t top = builder.AddSwitch(absl::StrCat("T", t));
    for (const uint32_t first : first_spines) {
      builder.Cable(static_cast<uint32_t>(first + t % shape.spines), top, {arguments.Speed(2)});
    }
  }
  return builder.Build(arguments);
}

absl::StatusOr<std::shared_ptr<const Fabric>> GenerateFatTree(const ModelArguments& arguments) {
  const bool by_ports = arguments.Given("ports") || arguments.Given("levels");
  for (const char* name : {"leaves", "spines", "hosts-per-leaf", "ports-per-host",
                           "uplinks-per-leaf", "supernodes", "tops"}) {
    if (by_ports && arguments.Given(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "argument ", name, " does not go with ports and levels: give either those or these"));
    }
  }
  if (!by_ports) {
    for (const char* name : {"rails", "pruning"}) {
      if (!arguments.Given(name)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("argument ", name, " goes with ports and levels only"));
    }
    return GenerateLevels(arguments);
  }
  const uint64_t ports = arguments.Integer("ports"), levels = arguments.Integer("levels");
  if (ports % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("argument ports=", ports, ": expected an even number from 2 to 254"));
  }
  const uint64_t pruning = arguments.Integer("pruning");
  if (ports / 2 % pruning != 0) {
    return absl::InvalidArgumentError(absl::StrCat("argument pruning=", pruning,
                                                   ": expected a divisor of the ", ports / 2,
                                                   " ports that a leaf switch has upwards"));
  }
  std::vector<uint64_t> children(levels - 1, ports / 2), parents(levels, ports / 2);
  children.push_back(ports);
  if (levels > 1) parents[1] = ports / 2 / pruning;
  parents.front() = 1;
  return GenerateXgft(children, parents, static_cast<uint32_t>(arguments.Integer("rails")),
                      arguments);
}

}  // namespace

Model XgftModel() {
  return {
      "xgft",
      "extended generalised fat tree XGFT(h; m; w); switches S<level>_<number>",
      {{"m", "4x4", 1, 65536, "children of a node of each level, from level 1",
        ArgumentKind::kExtents},
       {"w", "1x2", 1, 254, "parents of a node of the level below each", ArgumentKind::kExtents},
       {"rails", "1", 1, 8, "separate planes; a host has an adapter in each"}},
      &GenerateXgft};
}

Model FatTreeModel() {
  return {
      "fat-tree",
      "ports and levels: the full tree of equal switches S<level>_<n>; else leaves L, spines S and "
      "tops T; the standard is the 512-port fabric of 32 leaf and 16 spine switches",
      {{"ports", "64", 2, 254, "ports of every switch, half of them upwards; even"},
       {"levels", "3", 1, 16, "levels of switches"},
       {"rails", "1", 1, 8, "separate planes; a host has an adapter in each"},
       {"pruning", "1", 1, 127,
        "hosts on a leaf switch for each of its uplinks; with ports and levels"},
       {"leaves", "32", 1, 65536, "leaf switches (of each supernode)"},
       {"spines", "16", 1, 65536, "spine switches (of each supernode)"},
       {"hosts-per-leaf", "16", 0, 254, "hosts on each leaf switch"},
       {"ports-per-host", "1", 1, 16, "ports of a host's adapter, all on its leaf switch"},
       {"uplinks-per-leaf", "0", 0, 254, "cables from a leaf to the spines; 0 = spines"},
       {"supernodes", "1", 1, 65536, "two-level trees side by side"},
       {"tops", "0", 0, 65536, "switches joined to one spine of every supernode"}},
      &GenerateFatTree};
}

}  // namespace coppice
