// Grids of switches: torus, mesh and hypercube. The coordinates of a switch are in its description,
// where dimension-order routing and placement find them (coordinates.h).
//
//     dims=3x2, torus      (0,1)--(1,1)--(2,1)--+     each switch: a cable to its upper neighbour
//     in
//                            |      |      |    |     every dimension, round the end if it wraps
//                          (0,0)--(1,0)--(2,0)--+     (an extent of 2 has one cable, not two)
#include "daemon/base/status_macros.h"
#include "daemon/fabric/coordinates.h"
#include "daemon/fabric/models/model.h"
#include "daemon/fabric/models/model_builder.h"

namespace coppice {
namespace {

absl::StatusOr<std::shared_ptr<const Fabric>> GenerateGrid(const std::vector<uint64_t>& extents,
                                                           GridKind kind,
                                                           const ModelArguments& arguments) {
  const uint64_t hosts_per_switch = arguments.Integer("hosts");
  double size = 1;
  for (const uint64_t extent : extents) size *= static_cast<double>(extent);
  const double hosts = size * static_cast<double>(hosts_per_switch);
  RETURN_IF_ERROR(
      ModelBuilder::CheckSize(size, hosts, hosts + size * static_cast<double>(extents.size())));
  const auto switches = static_cast<uint32_t>(size);
  ModelBuilder builder(static_cast<uint64_t>(hosts));
  GridPosition position;
  position.kind = kind;
  position.extents.assign(extents.begin(), extents.end());
  position.at.resize(extents.size());
  for (uint32_t s = 0; s < switches; ++s) {
    uint64_t rest = s;
    for (size_t d = 0; d < extents.size(); ++d) {
      position.at[d] = static_cast<int32_t>(rest % extents[d]);
      rest /= extents[d];
    }
    builder.AddSwitch(FormatPosition("sw", position));
    for (uint64_t h = 0; h < hosts_per_switch; ++h) {
      builder.CableHost(s * hosts_per_switch + h, 0, s, {arguments.Speed(0)});
    }
  }
  uint64_t stride = 1;
  uint32_t level = 0;
  for (const uint64_t extent : extents) {
    ++level;
    for (uint32_t s = 0; s < switches; ++s) {
      const uint64_t x = s / stride % extent;
      const bool last = x + 1 == extent;
      if (last && (kind == GridKind::kMesh || extent <= 2)) continue;
      const uint64_t next = last ? s - x * stride : s + stride;
      builder.Cable(s, static_cast<uint32_t>(next), {arguments.Speed(level)});
    }
    stride *= extent;
  }
  return builder.Build(arguments);
}

ModelParameter Hosts() {
  return {"hosts", ArgumentKind::kInteger, "1", 0, 254, "hosts on each switch"};
}

ModelParameter Extents() {
  return {"dims", ArgumentKind::kExtents, "4x4x4", 1, 65536, "switches along each dimension"};
}

}  // namespace

const Model& TorusModel() {
  static const Model* const model =
      new Model{"torus",
                "grid of switches with wrap-around",
                {Extents(), Hosts()},
                [](const ModelArguments& arguments) {
                  return GenerateGrid(arguments.Extents("dims"), GridKind::kTorus, arguments);
                }};
  return *model;
}

const Model& MeshModel() {
  static const Model* const model =
      new Model{"mesh",
                "grid of switches without wrap-around",
                {Extents(), Hosts()},
                [](const ModelArguments& arguments) {
                  return GenerateGrid(arguments.Extents("dims"), GridKind::kMesh, arguments);
                }};
  return *model;
}

const Model& HypercubeModel() {
  static const Model* const model =
      new Model{"hypercube",
                "2^dims switches, joined where one bit differs",
                {{"dims", ArgumentKind::kInteger, "6", 1, 16, "dimensions"}, Hosts()},
                [](const ModelArguments& arguments) {
                  return GenerateGrid(std::vector<uint64_t>(arguments.Integer("dims"), 2),
                                      GridKind::kHypercube, arguments);
                }};
  return *model;
}

}  // namespace coppice
