#include "daemon/ib/port_selection.h"

#include <infiniband/umad.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// Kernel's port states and physical states (IBA vol. 1, 14.2.5.6).
constexpr unsigned kActive = 4, kLinkUp = 5;

bool IsInfiniBand(const umad_port_t& port) {
  const absl::string_view layer(port.link_layer);
  return layer.empty() || layer == "InfiniBand" || layer == "IB";
}

absl::StatusOr<PortSelection> FindNamedPort(const PortSelection& wanted) {
  umad_port_t port;
  if (umad_get_port(wanted.adapter.c_str(), wanted.port, &port) < 0) {
    return absl::NotFoundError(absl::StrCat(
        ToString(wanted), ": no such adapter and port; ibstat lists those that exist"));
  }
  const bool usable = IsInfiniBand(port);
  umad_release_port(&port);
  if (!usable) {
    return absl::FailedPreconditionError(
        absl::StrCat(ToString(wanted), ": the port's link layer is not InfiniBand"));
  }
  return wanted;
}

std::vector<std::string> AdapterNames() {
  char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
  const int count = umad_get_cas_names(names, UMAD_MAX_DEVICES);
  std::vector<std::string> adapters;
  for (int i = 0; i < count; ++i) adapters.emplace_back(names[i]);
  std::sort(adapters.begin(), adapters.end());
  return adapters;
}

absl::StatusOr<PortSelection> FindFirstPort() {
  PortSelection up, down;
  for (const std::string& adapter : AdapterNames()) {
    umad_ca_t ca;
    if (umad_get_ca(adapter.c_str(), &ca) < 0) continue;
    PortSelection active;
    for (const umad_port_t* port : ca.ports) {
      if (port == nullptr || !IsInfiniBand(*port)) continue;
      const PortSelection here{adapter, port->portnum};
      if (port->state == kActive && active.adapter.empty()) active = here;
      PortSelection& other = port->phys_state == kLinkUp ? up : down;
      if (other.adapter.empty()) other = here;
    }
    umad_release_ca(&ca);
    if (!active.adapter.empty()) return active;
  }
  if (!up.adapter.empty()) return up;
  if (!down.adapter.empty()) return down;
  return absl::NotFoundError(
      "umad: no InfiniBand port on this machine; ibstat lists the adapters that the kernel knows");
}

}  // namespace

std::string ToString(const PortSelection& selection) {
  if (selection.adapter.empty()) return "umad";
  return absl::StrCat("umad:", selection.adapter, ":", selection.port);
}

absl::StatusOr<PortSelection> ParsePortSelection(absl::string_view spec) {
  if (spec == "umad") return PortSelection();
  const std::vector<std::string> parts = absl::StrSplit(spec, ':');
  PortSelection selection;
  if (parts.size() != 3 || parts[0] != "umad" || parts[1].empty() ||
      parts[1].size() >= UMAD_CA_NAME_LEN || parts[1].find('/') != std::string::npos ||
      !absl::SimpleAtoi(parts[2], &selection.port) || selection.port < 1 || selection.port > 254) {
    return absl::InvalidArgumentError(absl::StrCat(
        "port \"", spec,
        "\" is neither umad nor umad:ADAPTER:PORT with a port of 1-254, such as umad:mlx5_0:1"));
  }
  selection.adapter = parts[1];
  return selection;
}

absl::StatusOr<PortSelection> FindPort(const PortSelection& selection) {
  if (umad_init() < 0) {
    return absl::NotFoundError(
        "umad: no InfiniBand management on this machine; load the kernel module ib_umad");
  }
  return selection.adapter.empty() ? FindFirstPort() : FindNamedPort(selection);
}

}  // namespace coppice
