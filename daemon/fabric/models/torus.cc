// Grids of switches: torus, mesh and hypercube. The coordinates of a switch are in its description,
// where dimension-order routing and placement find them (hierarchy.h).
//
//     dims=3x2, torus      (0,1)--(1,1)--(2,1)--+     each switch: a cable to its upper neighbour
//     in
//                            |      |      |    |     every dimension, round the end if it wraps
//                          (0,0)--(1,0)--(2,0)--+     (an extent of 2 has one cable, not two)
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/fabric/models/model.h"

namespace coppice {
namespace {

// Switches on a grid, called name(coordinates), each with cables to about `degree` others: along
// every dimension to the places peers(own place, extent), one cable for each.
template <class Name, class Peers>
absl::StatusOr<std::shared_ptr<const Fabric>> GenerateOnGrid(const ModelArguments& arguments,
                                                             const std::vector<uint64_t>& extents,
                                                             double degree, const Name& name,
                                                             const Peers& peers) {
  const uint64_t hosts = arguments.Integer("hosts");
  double size = 1;
  for (const uint64_t extent : extents) size *= extent;
  RETURN_IF_ERROR(ModelBuilder::CheckSize(size, size * hosts, size * (hosts + degree / 2)));
  const auto switches = static_cast<uint32_t>(size);
  ModelBuilder builder(switches * hosts);
  std::vector<int32_t> at(extents.size());
  for (uint32_t s = 0; s < switches; ++s) {
    uint64_t rest = s;
    for (size_t d = 0; d < extents.size(); ++d) {
      at[d] = static_cast<int32_t>(rest % extents[d]);
      rest /= extents[d];
    }
    builder.AddLeaf(name(at), hosts, {arguments.Speed(0)});
  }
  uint64_t stride = 1;
  for (uint32_t d = 0; d < extents.size(); ++d) {
    for (uint32_t s = 0; s < switches; ++s) {
      const uint64_t place = s / stride % extents[d];
      for (const uint64_t peer : peers(place, extents[d])) {
        builder.Cable(s, static_cast<uint32_t>(s + (peer - place) * stride),
                      {arguments.Speed(d + 1)});
      }
    }
    stride *= extents[d];
  }
  return builder.Build(arguments);
}

absl::StatusOr<std::shared_ptr<const Fabric>> GenerateGrid(const std::vector<uint64_t>& extents,
                                                           GridKind kind,
                                                           const ModelArguments& arguments) {
  const std::vector<int32_t> stated(extents.begin(), extents.end());
  const auto name = [&](const std::vector<int32_t>& at) {
    return FormatPosition("sw", {at, stated, kind});
  };
  const auto peers = [&](uint64_t place, uint64_t extent) -> std::vector<uint64_t> {
    if (place + 1 < extent) return {place + 1};
    if (kind == GridKind::kMesh || extent <= 2) return {};
    return {0};
  };
  return GenerateOnGrid(arguments, extents, 2.0 * extents.size(), name, peers);
}

const ModelParameter kHosts = {"hosts", "1", 0, 254, "hosts on each switch"};
const ModelParameter kDims = {
    "dims", "4x4x4", 1, 65536, "switches along each dimension", ArgumentKind::kExtents};

// HyperX, J. H. Ahn et al., "HyperX: topology, routing, and packaging of efficient large-scale
// networks", SC 2009: switches on a grid, fully joined along every dimension.
//
//     dims=3x2     X0_1 -- X1_1 -- X2_1     and X0_1 -- X2_1
//                   |       |       |
//                  X0_0 -- X1_0 -- X2_0     and X0_0 -- X2_0
absl::StatusOr<std::shared_ptr<const Fabric>> GenerateHyperx(const ModelArguments& arguments) {
  const std::vector<uint64_t>& extents = arguments.Extents("dims");
  const uint64_t parallel = arguments.Integer("parallel");
  double degree = 0;
  for (const uint64_t extent : extents) degree += (extent - 1) * parallel;
  const auto name = [](const std::vector<int32_t>& at) {
    return absl::StrCat("X", absl::StrJoin(at, "_"));
  };
  const auto peers = [&](uint64_t place, uint64_t extent) {
    std::vector<uint64_t> all;
    while (++place < extent) all.insert(all.end(), parallel, place);
    return all;
  };
  return GenerateOnGrid(arguments, extents, degree, name, peers);
}

}  // namespace

Model TorusModel() {
  return {"torus",
          "grid of switches with wrap-around",
          {kDims, kHosts},
          [](const ModelArguments& arguments) {
            return GenerateGrid(arguments.Extents("dims"), GridKind::kTorus, arguments);
          }};
}

Model MeshModel() {
  return {"mesh",
          "grid of switches without wrap-around",
          {kDims, kHosts},
          [](const ModelArguments& arguments) {
            return GenerateGrid(arguments.Extents("dims"), GridKind::kMesh, arguments);
          }};
}

Model HypercubeModel() {
  return {"hypercube",
          "2^dims switches, joined where one bit differs",
          {{"dims", "6", 1, 16, "dimensions"}, kHosts},
          [](const ModelArguments& arguments) {
            return GenerateGrid(std::vector<uint64_t>(arguments.Integer("dims"), 2),
                                GridKind::kHypercube, arguments);
          }};
}

Model HyperxModel() {
  return {"hyperx",
          "switches X<x>_<y>.. on a grid, fully joined along every dimension",
          {{"dims", "4x4", 1, 255, "switches along each dimension", ArgumentKind::kExtents},
           {"hosts", "4", 0, 254, "hosts on each switch"},
           {"parallel", "1", 1, 64, "cables between two joined switches"}},
          &GenerateHyperx};
}

}  // namespace coppice
