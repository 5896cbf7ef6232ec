#include "daemon/rpc/method_bounds.h"

#include "daemon/rpc/admin_service.h"
#include "daemon/rpc/agents_service.h"
#include "daemon/rpc/fabric_service.h"
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
      Bounded("RegisterJob", &S::RegisterJob, kBulk),
      Bounded("GetJob", &S::GetJob),
      Bounded("ListJobs", &S::ListJobs),
      Bounded("EndJob", &S::EndJob),
  };
}

std::vector<BoundedMethod> TreesBounds() {
  using S = TreesService;
  return {
      Bounded("CreateTree", &S::CreateTree, kBulk),
      Bounded("AdviseTree", &S::AdviseTree, kBulk),
      {"BatchCreateTrees", kBulk},
      Bounded("GetTree", &S::GetTree),
      Bounded("ListTrees", &S::ListTrees),
      Bounded("ReleaseTree", &S::ReleaseTree),
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
      Bounded("Sweep", &S::Sweep),
      Bounded("GetTypeTable", &S::GetTypeTable),
      Bounded("Calibrate", &S::Calibrate, kBulk),
      Bounded("ResetCalibration", &S::ResetCalibration),
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
      Bounded("PutOrder", &S::PutOrder, kBulk),
      Bounded("GetOrder", &S::GetOrder),
      Bounded("PutPattern", &S::PutPattern, kBulk),
      Bounded("GetPattern", &S::GetPattern),
      Bounded("ListPatterns", &S::ListPatterns),
      Bounded("DeletePattern", &S::DeletePattern),
      Bounded("ListAlgorithms", &S::ListAlgorithms),
  };
}

std::vector<BoundedMethod> PlacementsBounds() {
  using S = PlacementsService;
  return {
      Bounded("CreatePlacement", &S::CreatePlacement, kBulk),
      Bounded("BatchCreatePlacements", &S::BatchCreatePlacements, kBulk),
      Bounded("AdvisePlacement", &S::AdvisePlacement, kBulk),
      Bounded("GetPlacement", &S::GetPlacement),
      Bounded("ListPlacements", &S::ListPlacements),
      Bounded("RenewPlacement", &S::RenewPlacement),
      Bounded("StartPlacement", &S::StartPlacement),
      Bounded("ReleasePlacement", &S::ReleasePlacement),
      Bounded("GetNodeDistances", &S::GetNodeDistances),
  };
}

std::vector<BoundedMethod> AgentsBounds() {
  using S = AgentsService;
  return {
      Bounded("ListAgents", &S::ListAgents),
      Bounded("ListDistances", &S::ListDistances),
  };
}

std::vector<BoundedMethod> AdminBounds() {
  using S = AdminService;
  return {
      Bounded("GetStatus", &S::GetStatus), Bounded("Reload", &S::Reload),
      Bounded("GetQuota", &S::GetQuota),   Bounded("ListQuotas", &S::ListQuotas),
      Bounded("SetQuota", &S::SetQuota),   Bounded("ListDeeds", &S::ListDeeds),
  };
}

}  // namespace coppice
