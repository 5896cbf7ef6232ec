// Where a fabric comes from, as a seam: a live subnet (daemon/ib/umad_subnet_port.h) or a file or
// model (daemon/fabric/fabric_source.h). Speaks plain values; MADs stay behind it.
#ifndef COPPICE_DAEMON_FABRIC_SUBNET_PORT_H_
#define COPPICE_DAEMON_FABRIC_SUBNET_PORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/port_counters.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/forwarding_tables.h"
#include "daemon/fabric/partitions.h"
#include "daemon/fabric/snapshot.h"

namespace coppice {

struct SweepOptions {
  bool read_forwarding_tables = true;  // and tables of partitions
  // In haste: the tables of the sweep before instead, as far as their switches are still there;
  // read if there are none.
  bool keep_forwarding_tables = false;
  // Called now and then while a long sweep goes on, for whoever must look in between: it may call
  // LightSweep. Null: nobody.
  std::function<void()> between = nullptr;
};

// A node that did not answer, however often it was asked, or not with what can be.
struct UnansweredNode {
  std::string path;  // directed route from the local port: "0,1,17"
  Guid neighbour;    // node at the other end of the cable
  PortNum neighbour_port;
  std::string what;       // the attribute: "NodeInfo", "LinearForwardingTable block 3"
  Guid node = Guid(0);    // its own; 0: it did not say who it is
  bool is_silent = true;  // false: it refused, or contradicts itself or others, and may for ever
};

struct SweepCost {
  uint64_t mads_sent = 0, mads_resent = 0, mads_timed_out = 0;
  absl::Duration elapsed;
};

struct SweepResult : SweepCost {
  std::shared_ptr<const Fabric> fabric;            // never null, version 0
  std::shared_ptr<const ForwardingTables> tables;  // null: not asked for, or the source has none
  std::shared_ptr<const Partitions> partitions;    // null: as the tables
  bool is_dimension_ordered = false;     // without tables: routes go so, else over shortest paths
  std::shared_ptr<const LinkLoad> load;  // of a source that knows it; null: counters tell it
  bool has_subnet_manager = true;        // false: no LIDs are assigned
  // Where the local port sends what is for the subnet manager. Another LID than the last sweep's:
  // another manager has taken over, or has moved. 0: there is none, or this is no live subnet.
  Lid subnet_manager_lid;
  // LIDs are assigned, but who is at that LID does not answer as a subnet manager any more.
  bool is_subnet_manager_silent = false;
  std::vector<UnansweredNode> unanswered;  // empty: the sweep is complete
  bool are_tables_kept = false;            // they are of an earlier sweep
};

struct CounterReading {
  Guid node;
  PortNum port;
  PortCounters values;
  // 64-bit counts of data; else 32 bits that stop at their greatest value.
  bool is_extended = false;
  absl::Duration when;  // monotonic time of the answer
  // 64-bit counts of errors and of waiting; else 4 to 32 bits that stop at their greatest values.
  bool has_extended_errors = false;
};

struct CounterSweep : SweepCost {
  std::vector<CounterReading> readings;    // by order of answers, each port at most once
  std::vector<UnansweredNode> unanswered;  // ports that did not answer, or with nonsense
};

// Of a link, at a switch, that is not as the last full sweep saw it.
struct LinkChange {
  Guid node;
  PortNum port;
  bool is_up = false;  // it was down; false: it was up
  friend bool operator==(const LinkChange&, const LinkChange&) = default;
};

struct LightSweepResult : SweepCost {
  bool has_changed = false;  // something is not as the last full sweep saw it: sweep again
  std::string what;          // the first change, in words: "switch leaf3 port 7: the link is down"
  // Each end of a link that is up or down now and was not. All that can be reached, unless a node
  // has changed, too.
  std::vector<LinkChange> links;
  bool has_only_links = true;              // nothing else has changed
  std::vector<UnansweredNode> unanswered;  // not counted as a change if the last sweep lacked them
};

class SubnetPort {
 public:
  virtual ~SubnetPort() = default;
  // What this reads, as the configuration names it: "umad:mlx5_0:1", "file:net.txt".
  virtual std::string Describe() const = 0;
  // Reads the whole fabric. Not thread-safe: one call of this object at a time. UNAVAILABLE: the
  // local port does not answer (it names the device); INVALID_ARGUMENT: the source is malformed (it
  // names the object); NOT_FOUND: no such file or device.
  virtual absl::StatusOr<SweepResult> Sweep(const SweepOptions& options) = 0;
  // Looks whether the last full sweep of this port still holds: state and rate of every port of
  // every switch, its LID and its subnet manager's. Links that are lost are gone around, so that
  // one does not hide another. Errors as Sweep; FAILED_PRECONDITION: no sweep came before.
  virtual absl::StatusOr<LightSweepResult> LightSweep() = 0;
  // Counters of every cabled port of every switch of the last full sweep, or UNIMPLEMENTED: this
  // source has none, and never will. Other errors as LightSweep.
  virtual absl::StatusOr<CounterSweep> ReadCounters() = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_SUBNET_PORT_H_
