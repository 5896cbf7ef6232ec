// What a placement may not have beyond what is held: nodes and switches outside its partition, and
// what reservations keep for other tenants.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_BARRED_PLACES_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_BARRED_PLACES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/fabric/partitions.h"
#include "daemon/manager/kept_entries.h"
#include "daemon/manager/placement/placement_snapshot.h"

namespace coppice {

class BarredPlaces {
 public:
  explicit BarredPlaces(const PlacementSnapshot& placing) : placing_(placing) {}

  // Hosts whose first ports are no full members and, for a job with trees, the entries of switches
  // whose ports 0 are none. Nothing for partition 0.
  void BarForeign(PartitionNum partition, bool has_trees);
  // The nodes, and of switches the entries, that reservations keep from the tenant.
  void BarKept(absl::string_view tenant, const KeptEntries& kept, const HeldEntries& held,
               bool has_trees);

  // The snapshot's, without these.
  const Occupancy& occupancy() const { return own_.has_value() ? *own_ : placing_.occupancy; }
  // What stands in the way of trees; "" or from "; " on.
  std::string WordsOfSwitches() const;
  // The same, and what stands in the way of nodes.
  std::string Words() const;

 private:
  Occupancy& Own();

  const PlacementSnapshot& placing_;
  std::optional<Occupancy> own_;  // none: nothing is barred
  PartitionNum partition_;
  uint32_t foreign_hosts_ = 0, foreign_switches_ = 0;
  std::string kept_hosts_, kept_switches_;  // in words
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_BARRED_PLACES_H_
