// Which adapters are in one host, by their node descriptions. Knows no cables.
#ifndef COPPICE_DAEMON_FABRIC_HOST_NAMES_H_
#define COPPICE_DAEMON_FABRIC_HOST_NAMES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// Gives every adapter its host, and returns the names of the hosts, sorted. O(n log n).
//
// Adapters whose descriptions are "HOST DEVICE" with equal HOST and different DEVICE are
// one host named HOST; two adapters that give the same HOST and DEVICE are two hosts, named
// HOST#GUID each, because a duplicate description must not merge two machines. A description
// without a device part names its host alone; an empty one names it by the adapter's GUID.
std::vector<std::string> NameHosts(std::vector<AdapterInfo>& adapters);

// Splits a NodeDescription into host and device: "node17 mlx5_0" -> {"node17", "mlx5_0"},
// "bonobo020 HCA-1" -> {"bonobo020", "HCA-1"}, "node17" -> {"node17", ""}. A last word counts as a
// device if it starts with HCA, mlx, hfi, qib, ib, mthca, nes, cxgb, hns, bnxt, irdma, erdma, efa
// or rxe, and ends in a digit.
std::pair<absl::string_view, absl::string_view> SplitNodeDescription(absl::string_view description);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_HOST_NAMES_H_
