#include "daemon/rpc/method_bounds.h"

#include "daemon/rpc/admin_service.h"
#include "daemon/rpc/agents_service.h"
#include "daemon/rpc/fabric_service.h"
#include "daemon/rpc/health_service.h"
#include "daemon/rpc/jobs_service.h"
#include "daemon/rpc/mapping_service.h"
#include "daemon/rpc/placements_service.h"
#include "daemon/rpc/trees_service.h"

namespace coppice {
namespace {

constexpr size_t kBulk = BoundedMethod::kBulkRequest;

}  // namespace

std::vector<BoundedMethod> JobsBounds() {
  using S = JobsService;
  return {
      Change(Bounded("RegisterJob", &S::RegisterJob, kBulk)),
      Bounded("GetJob", &S::GetJob),
      Bounded("ListJobs", &S::ListJobs),
      Change(Bounded("EndJob", &S::EndJob)),
  };
}

std::vector<BoundedMethod> TreesBounds() {
  using S = TreesService;
  return {
      Change(Bounded("CreateTree", &S::CreateTree, kBulk)),
      Bounded("AdviseTree", &S::AdviseTree, kBulk),
      Change({"BatchCreateTrees", kBulk}),
      Bounded("GetTree", &S::GetTree),
      Bounded("ListTrees", &S::ListTrees),
      Change(Bounded("ReleaseTree", &S::ReleaseTree)),
  };
}

std::vector<BoundedMethod> FabricBounds() {
  using S = FabricService;
  return {
      Bounded("GetFabric", &S::GetFabric),
      Bounded("ListSwitches", &S::ListSwitches),
      Bounded("ListLinks", &S::ListLinks),
      Bounded("ListNodes", &S::ListNodes),
      Bounded("GetRoute", &S::GetRoute),
      Change(Bounded("Sweep", &S::Sweep)),
      Bounded("GetTypeTable", &S::GetTypeTable),
      Change(Bounded("Calibrate", &S::Calibrate, kBulk)),
      Change(Bounded("ResetCalibration", &S::ResetCalibration)),
      Bounded("ListEvents", &S::ListEvents),
      Bounded("ListPortCounters", &S::ListPortCounters),
      Bounded("GetPortHistory", &S::GetPortHistory),
      Bounded("ExportTopology", &S::ExportTopology),
  };
}

std::vector<BoundedMethod> MappingBounds() {
  using S = MappingService;
  return {
      {"MapRanks", kBulk},
      Bounded("EvaluateMapping", &S::EvaluateMapping, kBulk),
      Bounded("GetMappingProblem", &S::GetMappingProblem, kBulk),
      Change(Bounded("PutOrder", &S::PutOrder, kBulk)),
      Bounded("GetOrder", &S::GetOrder),
      Change(Bounded("PutPattern", &S::PutPattern, kBulk)),
      Bounded("GetPattern", &S::GetPattern),
      Bounded("ListPatterns", &S::ListPatterns),
      Change(Bounded("DeletePattern", &S::DeletePattern)),
      Bounded("ListAlgorithms", &S::ListAlgorithms),
  };
}

std::vector<BoundedMethod> PlacementsBounds() {
  using S = PlacementsService;
  return {
      Change(Bounded("CreatePlacement", &S::CreatePlacement, kBulk)),
      Change(Bounded("BatchCreatePlacements", &S::BatchCreatePlacements, kBulk)),
      Bounded("AdvisePlacement", &S::AdvisePlacement, kBulk),
      Bounded("GetPlacement", &S::GetPlacement),
      Bounded("ListPlacements", &S::ListPlacements),
      Change(Bounded("RenewPlacement", &S::RenewPlacement)),
      Change(Bounded("StartPlacement", &S::StartPlacement)),
      Change(Bounded("ReleasePlacement", &S::ReleasePlacement)),
      Bounded("GetNodeDistances", &S::GetNodeDistances),
  };
}

std::vector<BoundedMethod> AgentsBounds() {
  using S = AgentsService;
  return {
      Bounded("ListAgents", &S::ListAgents),
      Change({"MeasureDistances"}),
      Bounded("ListDistances", &S::ListDistances),
  };
}

std::vector<BoundedMethod> HealthBounds() { return {Bounded("Check", &HealthService::Check)}; }

std::vector<BoundedMethod> AdminBounds() {
  using S = AdminService;
  return {
      Bounded("GetStatus", &S::GetStatus),       Change(Bounded("Reload", &S::Reload)),
      Bounded("GetQuota", &S::GetQuota),         Bounded("ListQuotas", &S::ListQuotas),
      Change(Bounded("SetQuota", &S::SetQuota)), Bounded("ListDeeds", &S::ListDeeds),
  };
}

}  // namespace coppice
