// Walks a subnet from the local port by directed routes, asking many nodes at once.
//
//   NodeInfo --new node--> NodeDescription
//      ^                   switch:  PortInfo 0, 1, 2, ...
//      |                   adapter: PortInfo of the port that it was reached by
//      +--- a port's link is up and its cable not yet known: NodeInfo one hop further
//
// and then, if tables are wanted, of each switch SwitchInfo -> LinearForwardingTable blocks;
// between groups of switches whoever must look at the subnet in time may use the engine.
//
// A node is known by its GUID, so the several ports of an adapter and the many routes to a switch
// meet in one record; a cable is known once either end has named the other, and is followed once.
// To one node only a few requests are under way at a time: its management agent is a slow processor
// with a short queue.
//
// The walk is breadth first up to the order of answers. It ends: at most kMaxNodes nodes, each with
// at most 254 ports, each port asked once. Cost: three requests a node, one a port, one a cable,
// one for every 64 LIDs of each table.
//
// Nothing that a node says can fail the sweep; a contradiction becomes an UnansweredNode that says
// what was wrong, and the walk goes on.
#ifndef COPPICE_DAEMON_IB_DISCOVERY_H_
#define COPPICE_DAEMON_IB_DISCOVERY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/ib/mad_engine.h"
#include "daemon/ib/swept_subnet.h"

namespace coppice {

class Discovery {
 public:
  // Every node has a port with a LID of its own; a subnet has 49,151 unicast LIDs (IBA vol.
  // 1, 4.1.3).
  static constexpr size_t kMaxNodes = kTopUnicastLid;

  // The engine is not owned. One Discovery reads one subnet once.
  explicit Discovery(MadEngine& engine) : engine_(engine) {}

  // UNAVAILABLE: the local port does not answer, answers nonsense, or has no link.
  absl::StatusOr<SubnetRecord> Read(const SweepOptions& options);

 private:
  // How far the questions to a node have come.
  struct Progress {
    uint32_t next_port = 0;
    uint32_t next_block = 0, block_count = 0;
    int silences = 0;  // in a row
  };

  absl::Status RunAll();
  absl::Status ReadTables(const std::function<void()>& between);
  void OnOutcome(const MadRequest& request, const MadOutcome& outcome);
  void OnNodeInfo(const MadRequest& request, const MadOutcome& outcome);
  void OnNodeDescription(const MadRequest& request, const MadOutcome& outcome);
  void OnSwitchInfo(const MadRequest& request, const MadOutcome& outcome);
  void OnPortInfo(const MadRequest& request, const MadOutcome& outcome);
  void OnExtendedPortInfo(const MadRequest& request, const MadOutcome& outcome);
  void OnTableBlock(const MadRequest& request, const MadOutcome& outcome);

  uint32_t AddNode(const NodeInfoRecord& info, const DirectedRoute& route);
  bool Connect(const MadRequest& request, uint32_t node, PortNum port);
  void Ask(uint32_t node, const DirectedRoute& route, MadAttribute attribute, uint32_t modifier);
  void AskNextPort(uint32_t node);
  void AskNextBlock(uint32_t node);
  void FollowCable(uint32_t node, PortNum port, const DirectedRoute& route);
  bool CountSilence(const MadRequest& request, const MadOutcome& outcome);
  void Note(const MadRequest& request, absl::string_view what, bool is_silent = false);
  bool IsSwitch(uint32_t node) const;

  MadEngine& engine_;
  SubnetRecord subnet_;
  absl::flat_hash_map<Guid, uint32_t> by_guid_;
  std::vector<Progress> progress_;  // [node]
  bool local_link_up_ = false;
  std::string local_fault_;  // what the local node answered instead of itself
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_IB_DISCOVERY_H_
