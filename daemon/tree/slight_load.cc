#include "daemon/tree/slight_load.h"

#include <algorithm>
#include <memory>

namespace coppice {
namespace {

// w(u) of tree_metrics.h.
bool IsSlight(double u, double gbps, const CostProfile& profile) {
  if (u >= 0.5 || gbps <= 0) return u <= 0;
  return profile.mtu_bytes * 8e-3 / gbps * u / (2 * (1 - u)) < kLeastWaitUs;
}

}  // namespace

Snapshot ForPrediction(const Snapshot& snapshot, const CostProfile& profile) {
  static const auto* const kIdle =
      new std::shared_ptr<const LinkLoad>(std::make_shared<const LinkLoad>());
  Snapshot with = snapshot;
  if (snapshot.load->empty()) return with;
  double slowest = snapshot.fabric->least_capacity_gbps();
  if (slowest <= 0 || (profile.port_gbps > 0 && profile.port_gbps < slowest)) {
    slowest = profile.port_gbps;
  }
  if (IsSlight(snapshot.load->greatest(), slowest, profile)) with.load = *kIdle;
  return with;
}

}  // namespace coppice
