// Extended generalised fat trees, S. R. Ohring et al., "On generalized fat trees", IPPS 1995.
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
#include "daemon/fabric/models/xgft.h"

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/models/model_builder.h"

namespace coppice {
namespace {

// Nodes of one level in one rail, as block * width + b: `width` = w1..wi, block = the a's as a
// number.
struct Level {
  uint64_t width = 1, blocks = 1;
  uint32_t first = 0;  // number of its first switch
};

absl::Status CheckXgft(const std::vector<uint64_t>& children, const std::vector<uint64_t>& parents,
                       uint32_t rails) {
  double below = rails, links = 0, switches = 0;  // `below`: nodes of the level below
  for (const uint64_t m : children) below *= static_cast<double>(m);
  const double endpoints = below * static_cast<double>(parents[0]);
  for (size_t i = 0; i < children.size(); ++i) {
    links += below * static_cast<double>(parents[i]);
    below = below * static_cast<double>(parents[i]) / static_cast<double>(children[i]);
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

}  // namespace

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
      for (uint64_t n = 0; n < high.width * high.blocks; ++n) {
        const std::string plane = rails > 1 ? absl::StrCat("P", rail) : "";
        const uint32_t s = builder.AddSwitch(absl::StrCat(plane, "S", i + 1, "_", n));
        if (n == 0) high.first = s;
      }
      const auto level = static_cast<uint32_t>(i);
      CableLevel(builder, low, high, children[i], parents[i], rail, i == 0,
                 {arguments.Speed(level)});
      low = high;
    }
  }
  return builder.Build(arguments);
}

const Model& XgftModel() {
  static const Model* const model = new Model{
      "xgft",
      "extended generalised fat tree XGFT(h; m; w); switches S<level>_<number>",
      {{"m", ArgumentKind::kExtents, "4x4", 1, 65536,
        "children of a node of each level, from level 1"},
       {"w", ArgumentKind::kExtents, "1x2", 1, 254, "parents of a node of the level below each"},
       {"rails", ArgumentKind::kInteger, "1", 1, 8,
        "separate planes; a host has an adapter in each"}},
      &GenerateXgft};
  return *model;
}

}  // namespace coppice
