// What users call an endpoint: from what is typed to a place in the fabric, with a hint when it is
// not there. Knows nothing of requests, jobs and files.
#ifndef COPPICE_DAEMON_FABRIC_ENDPOINT_NAMES_H_
#define COPPICE_DAEMON_FABRIC_ENDPOINT_NAMES_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// What an endpoint is called, each otherwise: "host/port"; "host/port@device" if two adapters of
// the host have that port cabled ("n14/1@mlx5_1"), with the port's GUID for an adapter whose
// description names no device. O(endpoints of the host).
std::string EndpointName(const Fabric& fabric, EndpointIndex endpoint);

// Finds the endpoint that a user names: host name (its first cabled port), "host/port",
// "host/port@device" (or @ and the port's GUID), or a port GUID: 16 hex digits, or 0x and up to 16
// of them, as ibnetdiscover leaves out leading zeros. NOT_FOUND names it and suggests up to three
// hosts that are called similarly; INVALID_ARGUMENT: empty, or host/port of two adapters.
absl::StatusOr<EndpointIndex> ResolveEndpoint(const Fabric& fabric, absl::string_view name);

// Names as requests hold them, of which each may be a list (node_list.h): "n[001-128,130]/1", a. A
// name that a host or one of its ports has is that, whatever letters it is made of.
// INVALID_ARGUMENT: a list that cannot be read, named as "FIELD[POSITION]", or more than `limit`
// names in all. Whether the fabric has them is not looked at.
absl::StatusOr<std::vector<std::string>> ExpandEndpointNames(const Fabric& fabric,
                                                             absl::Span<const std::string> names,
                                                             size_t limit, absl::string_view field);

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

#endif  // COPPICE_DAEMON_FABRIC_ENDPOINT_NAMES_H_
