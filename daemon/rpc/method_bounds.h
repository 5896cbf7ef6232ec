// The bounds of each method: which requests may be large, and where its answer is.
#ifndef COPPICE_DAEMON_RPC_METHOD_BOUNDS_H_
#define COPPICE_DAEMON_RPC_METHOD_BOUNDS_H_

#include <vector>

#include "daemon/rpc/bounded_service.h"

namespace coppice {

// All unary methods of the service, and of others those whose requests may be large or that change
// something.
std::vector<BoundedMethod> JobsBounds();
std::vector<BoundedMethod> TreesBounds();
std::vector<BoundedMethod> FabricBounds();
std::vector<BoundedMethod> MappingBounds();
std::vector<BoundedMethod> PlacementsBounds();
std::vector<BoundedMethod> AgentsBounds();
std::vector<BoundedMethod> AdminBounds();
std::vector<BoundedMethod> HealthBounds();

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_METHOD_BOUNDS_H_
