// Random questions on small fabrics, and the answer by looking at every subset of hosts.
#ifndef COPPICE_TESTS_UNIT_PLACEMENT_PLACEMENT_ORACLE_H_
#define COPPICE_TESTS_UNIT_PLACEMENT_PLACEMENT_ORACLE_H_

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "daemon/placement/placement_index.h"
#include "daemon/placement/placer.h"

namespace coppice {

// A fabric with its index, and who holds what of it.
struct PlacementScene {
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const PlacementIndex> index;
  Occupancy occupancy;

  const Fabric& fabric() const { return *snapshot->fabric; }
};

// Of LoadFabric's "model:...", or of a fabric; everything free, nothing loaded. Aborts on an error.
PlacementScene MakeScene(const std::string& source);
PlacementScene MakeScene(std::shared_ptr<const Fabric> fabric);

// Gives about `share` of the hosts to a few holders, whose routes are counted, and puts some out.
void OccupyAtRandom(PlacementScene& scene, double share, std::mt19937_64& rng);
// Random load on all channels between switches, and random entries left in all switches.
void LoadAtRandom(PlacementScene& scene, std::mt19937_64& rng);

// Constraints of all kinds, each now and then, and random weights; at most `most` hosts.
PlacementRequest RandomPlacementRequest(const PlacementScene& scene, uint32_t most,
                                        std::mt19937_64& rng);

// Calls `visit` for every set of hosts that CheckPlacement lets pass.
void ForEachPlacement(const PlacementScene& scene, const PlacementConstraints& constraints,
                      const std::function<void(const std::vector<HostIndex>&)>& visit);

// The least cost of all sets of hosts that CheckPlacement lets pass; nullopt if none does.
std::optional<double> LeastCost(const PlacementScene& scene, const PlacementRequest& request);

// Names the fabric, the occupancy and the request, for messages of failures.
std::string Describe(const PlacementScene& scene, const PlacementRequest& request);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_PLACEMENT_PLACEMENT_ORACLE_H_
