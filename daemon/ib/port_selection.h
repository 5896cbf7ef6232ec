// Which port of this machine to speak through: `umad` or `umad:CA:PORT`.
#ifndef COPPICE_DAEMON_IB_PORT_SELECTION_H_
#define COPPICE_DAEMON_IB_PORT_SELECTION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

struct PortSelection {
  std::string adapter;  // empty: the first usable port
  int port = 0;
  friend bool operator==(const PortSelection&, const PortSelection&) = default;
};

// "umad" or "umad:mlx5_0:1".
std::string ToString(const PortSelection& selection);

// Inverse of ToString. INVALID_ARGUMENT: anything else; the message quotes it.
absl::StatusOr<PortSelection> ParsePortSelection(absl::string_view spec);

// Asks libibumad for the port and returns it with its name and number filled in. Of several ports
// takes the first, by adapter name, whose link is active, else the first whose link is up, else the
// first. NOT_FOUND: no such adapter or port; FAILED_PRECONDITION: it is no InfiniBand port.
absl::StatusOr<PortSelection> FindPort(const PortSelection& selection);

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_PORT_SELECTION_H_
