#include "agents/node/passed_methods.h"

#include <algorithm>
#include <iterator>

namespace coppice {
namespace {

constexpr absl::string_view kMethods[] = {
    "/coppice.v1.Admin/GetQuota",
    "/coppice.v1.Admin/GetStatus",
    "/coppice.v1.Agents/ListAgents",
    "/coppice.v1.Agents/ListDistances",
    "/coppice.v1.Fabric/ExportTopology",
    "/coppice.v1.Fabric/GetFabric",
    "/coppice.v1.Fabric/GetPortHistory",
    "/coppice.v1.Fabric/GetRoute",
    "/coppice.v1.Fabric/GetTypeTable",
    "/coppice.v1.Fabric/ListEvents",
    "/coppice.v1.Fabric/ListLinks",
    "/coppice.v1.Fabric/ListNodes",
    "/coppice.v1.Fabric/ListPortCounters",
    "/coppice.v1.Fabric/ListSwitches",
    "/coppice.v1.Fabric/WatchEvents",
    "/coppice.v1.Jobs/EndJob",
    "/coppice.v1.Jobs/GetJob",
    "/coppice.v1.Jobs/KeepAlive",
    "/coppice.v1.Jobs/ListJobs",
    "/coppice.v1.Jobs/RegisterJob",
    "/coppice.v1.Mapping/DeletePattern",
    "/coppice.v1.Mapping/EvaluateMapping",
    "/coppice.v1.Mapping/GetMappingProblem",
    "/coppice.v1.Mapping/GetOrder",
    "/coppice.v1.Mapping/GetPattern",
    "/coppice.v1.Mapping/ListAlgorithms",
    "/coppice.v1.Mapping/ListPatterns",
    "/coppice.v1.Mapping/MapRanks",
    "/coppice.v1.Mapping/PutOrder",
    "/coppice.v1.Mapping/PutPattern",
    "/coppice.v1.Placements/AdvisePlacement",
    "/coppice.v1.Placements/BatchCreatePlacements",
    "/coppice.v1.Placements/CreatePlacement",
    "/coppice.v1.Placements/GetNodeDistances",
    "/coppice.v1.Placements/GetPlacement",
    "/coppice.v1.Placements/ListPlacements",
    "/coppice.v1.Placements/ReleasePlacement",
    "/coppice.v1.Placements/RenewPlacement",
    "/coppice.v1.Placements/StartPlacement",
    "/coppice.v1.Trees/AdviseTree",
    "/coppice.v1.Trees/BatchCreateTrees",
    "/coppice.v1.Trees/CreateTree",
    "/coppice.v1.Trees/GetTree",
    "/coppice.v1.Trees/ListTrees",
    "/coppice.v1.Trees/ReleaseTree",
    "/coppice.v1.Trees/WatchTrees",
};

}  // namespace

bool IsPassedOn(absl::string_view method) {
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

}  // namespace coppice
