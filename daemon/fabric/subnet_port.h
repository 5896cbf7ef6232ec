// Where a fabric comes from, as a seam: a live subnet (daemon/ib/umad_subnet_port.h) or a file or
// model (daemon/fabric/offline_subnet_port.h). Speaks plain values; MADs stay behind it.
#ifndef COPPICE_DAEMON_FABRIC_SUBNET_PORT_H_
#define COPPICE_DAEMON_FABRIC_SUBNET_PORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/forwarding_tables.h"

namespace coppice {

struct SweepOptions {
  bool read_forwarding_tables = true;
};

// A node that did not answer, however often it was asked.
struct UnansweredNode {
  std::string path;  // directed route from the local port: "0,1,17"
  Guid neighbour;    // node at the other end of the cable
  PortNum neighbour_port;
  std::string what;  // the attribute: "NodeInfo", "LinearForwardingTable block 3"
};

struct SweepResult {
  std::shared_ptr<const Fabric> fabric;            // never null, version 0
  std::shared_ptr<const ForwardingTables> tables;  // null: not asked for, or the source has none
  bool has_subnet_manager = true;                  // false: no LIDs are assigned
  std::vector<UnansweredNode> unanswered;          // empty: the sweep is complete
  uint64_t mads_sent = 0, mads_resent = 0, mads_timed_out = 0;
  absl::Duration elapsed;
};

class SubnetPort {
 public:
  virtual ~SubnetPort() = default;
  // What this reads, as the configuration names it: "umad:mlx5_0:1", "file:net.txt".
  virtual std::string Describe() const = 0;
  // Reads the whole fabric. Not thread-safe: one sweep at a time. UNAVAILABLE: the local port does
  // not answer (it names the device); INVALID_ARGUMENT: the source is malformed (it names the
  // object); NOT_FOUND: no such file or device.
  virtual absl::StatusOr<SweepResult> Sweep(const SweepOptions& options) = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_SUBNET_PORT_H_
