#include "daemon/rpc/calls/access_table.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

constexpr MethodAccess kTable[] = {
    {"/coppice.v1.Admin/GetStatus", Role::kReader},
    {"/coppice.v1.Admin/Reload", Role::kOperator, "a reload"},
    {"/coppice.v1.Admin/GetQuota", Role::kReader},
    {"/coppice.v1.Admin/ListQuotas", Role::kOperator, "the list of all quotas"},
    {"/coppice.v1.Admin/SetQuota", Role::kOperator, "a limit"},
    {"/coppice.v1.Admin/ListAccounts", Role::kReader},
    {"/coppice.v1.Admin/ImportAccounts", Role::kOperator, "the list of accounts"},
    {"/coppice.v1.Admin/SetTenant", Role::kOperator, "an account's tenant"},
    {"/coppice.v1.Admin/CreateReservation", Role::kOperator, "a reservation"},
    {"/coppice.v1.Admin/ListReservations", Role::kReader},
    {"/coppice.v1.Admin/DeleteReservation", Role::kOperator, "a reservation"},
    {"/coppice.v1.Admin/ListDeeds", Role::kOperator, "the account of deeds"},

    {"/coppice.v1.Agents/Connect", Role::kAgent},
    {"/coppice.v1.Agents/ListAgents", Role::kReader},
    // It loads the links that it measures, for as long as it was asked to.
    {"/coppice.v1.Agents/MeasureDistances", Role::kOperator, "a measurement"},
    {"/coppice.v1.Agents/ListDistances", Role::kReader},

    {"/coppice.v1.Fabric/GetFabric", Role::kReader},
    {"/coppice.v1.Fabric/ListPartitions", Role::kReader},
    {"/coppice.v1.Fabric/ListSwitches", Role::kReader},
    {"/coppice.v1.Fabric/ListLinks", Role::kReader},
    {"/coppice.v1.Fabric/ListNodes", Role::kReader},
    {"/coppice.v1.Fabric/GetRoute", Role::kReader},
    {"/coppice.v1.Fabric/Sweep", Role::kOperator, "a sweep"},
    {"/coppice.v1.Fabric/GetTypeTable", Role::kReader},
    {"/coppice.v1.Fabric/Calibrate", Role::kOperator, "calibration"},
    {"/coppice.v1.Fabric/ResetCalibration", Role::kOperator, "calibration"},
    {"/coppice.v1.Fabric/ListEvents", Role::kReader},
    {"/coppice.v1.Fabric/WatchEvents", Role::kReader},
    {"/coppice.v1.Fabric/ListPortCounters", Role::kReader},
    {"/coppice.v1.Fabric/GetPortHistory", Role::kReader},
    {"/coppice.v1.Fabric/ExportTopology", Role::kReader},

    {"/coppice.v1.Jobs/RegisterJob", Role::kUser},
    {"/coppice.v1.Jobs/GetJob", Role::kReader},
    {"/coppice.v1.Jobs/ListJobs", Role::kReader},
    {"/coppice.v1.Jobs/KeepAlive", Role::kUser},
    {"/coppice.v1.Jobs/EndJob", Role::kUser},

    // The first three, and the advice, placements and batches of other services may take minutes of
    // processors, or much memory: for callers only who can be told apart, and so be bounded.
    {"/coppice.v1.Mapping/MapRanks", Role::kNamed},
    {"/coppice.v1.Mapping/EvaluateMapping", Role::kNamed},
    {"/coppice.v1.Mapping/GetMappingProblem", Role::kNamed},
    {"/coppice.v1.Mapping/PutOrder", Role::kUser},
    {"/coppice.v1.Mapping/GetOrder", Role::kReader},
    {"/coppice.v1.Mapping/PutPattern", Role::kUser},
    {"/coppice.v1.Mapping/GetPattern", Role::kReader},
    {"/coppice.v1.Mapping/ListPatterns", Role::kReader},
    {"/coppice.v1.Mapping/DeletePattern", Role::kUser},
    {"/coppice.v1.Mapping/ListAlgorithms", Role::kReader},

    {"/coppice.v1.Placements/CreatePlacement", Role::kNamed},
    {"/coppice.v1.Placements/BatchCreatePlacements", Role::kNamed},
    {"/coppice.v1.Placements/AdvisePlacement", Role::kNamed},
    {"/coppice.v1.Placements/GetPlacement", Role::kReader},
    {"/coppice.v1.Placements/ListPlacements", Role::kReader},
    {"/coppice.v1.Placements/RenewPlacement", Role::kUser},
    {"/coppice.v1.Placements/StartPlacement", Role::kUser},
    {"/coppice.v1.Placements/ReleasePlacement", Role::kUser},
    {"/coppice.v1.Placements/GetNodeDistances", Role::kReader},

    {"/coppice.v1.Switches/Connect", Role::kAgent},
    {"/coppice.v1.Switches/ListSwitchAgents", Role::kReader},

    {"/coppice.v1.Trees/CreateTree", Role::kUser},
    {"/coppice.v1.Trees/AdviseTree", Role::kNamed},
    {"/coppice.v1.Trees/BatchCreateTrees", Role::kNamed},
    {"/coppice.v1.Trees/WatchTrees", Role::kReader},
    {"/coppice.v1.Trees/GetTree", Role::kReader},
    {"/coppice.v1.Trees/ListTrees", Role::kReader},
    {"/coppice.v1.Trees/ReleaseTree", Role::kUser},

    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::kOperator,
     "reflection"},
    // Asks nobody.
    {"/grpc.health.v1.Health/Check", Role::kReader},
    {"/grpc.health.v1.Health/Watch", Role::kReader},
};

}  // namespace

absl::Span<const MethodAccess> AccessTable() { return kTable; }

std::string ShortName(absl::string_view method) {
  const size_t slash = method.rfind('/');
  const absl::string_view service = method.substr(0, slash);
  return absl::StrCat(service.substr(service.rfind('.') + 1), ".", method.substr(slash + 1));
}

const MethodAccess* FindAccess(absl::string_view method) {
  static const auto* const by_method = [] {
    auto* const map = new absl::flat_hash_map<absl::string_view, const MethodAccess*>;
    for (const MethodAccess& access : kTable) map->emplace(access.method, &access);
    return map;
  }();
  const auto found = by_method->find(method);
  return found == by_method->end() ? nullptr : found->second;
}

}  // namespace coppice
