// HyperX, J. H. Ahn et al., "HyperX: topology, routing, and packaging of efficient large-scale
// networks", SC 2009: switches on a grid, fully joined along every dimension.
//
//     dims=3x2     X0_1 -- X1_1 -- X2_1     and X0_1 -- X2_1
//                   |       |       |
//                  X0_0 -- X1_0 -- X2_0     and X0_0 -- X2_0
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/models/model.h"
#include "daemon/fabric/models/model_builder.h"

namespace coppice {
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
