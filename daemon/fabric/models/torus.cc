// Grids of switches: torus, mesh and hypercube. The coordinates of a switch are in its description,
// where dimension-order routing and placement find them (hierarchy.h).
//
//     dims=3x2, torus      (0,1)--(1,1)--(2,1)--+     each switch: a cable to its upper neighbour
//     in
//                            |      |      |    |     every dimension, round the end if it wraps
//                          (0,0)--(1,0)--(2,0)--+     (an extent of 2 has one cable, not two)
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/fabric/models/model.h"

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

// HyperX, J. H. Ahn et al., "HyperX: topology, routing, and packaging of efficient large-scale
// networks", SC 2009: switches on a grid, fully joined along every dimension.
//
//     dims=3x2     X0_1 -- X1_1 -- X2_1     and X0_1 -- X2_1
//                   |       |       |
//                  X0_0 -- X1_0 -- X2_0     and X0_0 -- X2_0

namespace {

std::string Name(const std::vector<uint64_t>& extents, uint64_t number) {
  std::string name = "X";
  for (size_t d = 0; d < extents.size(); ++d) {
    absl::StrAppend(&name, d > 0 ? "_" : "", number % extents[d]);
    number /= extents[d];
  }
  return name;
}

absl::StatusOr<std::shared_ptr<const Fabric>> GenerateHyperx(const ModelArguments& arguments) {
  const std::vector<uint64_t>& extents = arguments.Extents("dims");
  const uint64_t hosts = arguments.Integer("hosts"), parallel = arguments.Integer("parallel");
  double size = 1, degree = 0;
  for (const uint64_t extent : extents) {
    size *= static_cast<double>(extent);
    degree += static_cast<double>((extent - 1) * parallel);
  }
  RETURN_IF_ERROR(ModelBuilder::CheckSize(size, size * static_cast<double>(hosts),
                                          size * (static_cast<double>(hosts) + degree / 2)));
  const auto switches = static_cast<uint32_t>(size);
  ModelBuilder builder(switches * hosts);
  for (uint32_t s = 0; s < switches; ++s) {
    builder.AddSwitch(Name(extents, s));
    for (uint64_t h = 0; h < hosts; ++h) {
      builder.CableHost(s * hosts + h, 0, s, {arguments.Speed(0)});
    }
  }
  uint64_t stride = 1;
  uint32_t level = 0;
  for (const uint64_t extent : extents) {
    ++level;
    for (uint32_t s = 0; s < switches; ++s) {
      for (uint64_t x = s / stride % extent + 1; x < extent; ++x) {
        const uint64_t other = s + (x - s / stride % extent) * stride;
        for (uint64_t k = 0; k < parallel; ++k) {
          builder.Cable(s, static_cast<uint32_t>(other), {arguments.Speed(level)});
        }
      }
    }
    stride *= extent;
  }
  return builder.Build(arguments);
}

}  // namespace

const Model& HyperxModel() {
  constexpr ArgumentKind kInteger = ArgumentKind::kInteger;
  static const Model* const model =
      new Model{"hyperx",
                "switches X<x>_<y>.. on a grid, fully joined along every dimension",
                {{"dims", ArgumentKind::kExtents, "4x4", 1, 255, "switches along each dimension"},
                 {"hosts", kInteger, "4", 0, 254, "hosts on each switch"},
                 {"parallel", kInteger, "1", 1, 64, "cables between two joined switches"}},
                &GenerateHyperx};
  return *model;
}

}  // namespace coppice
