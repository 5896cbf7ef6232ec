// Between the readers of topology texts and FabricBuilder: a text states every cable twice, once at
// either end, and this checks that both ends agree before the cable becomes a link.
//
//        Switch 36 "S-a"                    line 7: port 3 of a -> port 9 of b  \  one cable
//        [3]  "S-b"[9]                      line 9: port 9 of b -> port 3 of a  /
//        Switch 36 "S-b"
//        [9]  "S-a"[3]                      a line without its counterpart is an error
//
// Every message names origin, line and node. Cost: one hash lookup and one search of the other
// node's lines a cable. Knows no syntax.
#ifndef COPPICE_DAEMON_FABRIC_TOPOLOGY_ASSEMBLER_H_
#define COPPICE_DAEMON_FABRIC_TOPOLOGY_ASSEMBLER_H_

#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/fabric_builder.h"

namespace coppice {

// One end of a cable, as a line of the node that was started last states it.
struct PortLine {
  uint32_t line = 0;
  PortNum port;
  Guid remote;
  PortNum remote_port;
  LinkRate rate;
  float capacity_gbps = 0;  // 0 = from the rate
  Guid port_guid;           // of adapters; 0 = node GUID + port
  Lid lid;                  // of adapters
  uint8_t lmc = 0;
};

// Not thread-safe. Every error is INVALID_ARGUMENT.
class TopologyAssembler {
 public:
  // `origin` names the text in messages: a path.
  explicit TopologyAssembler(absl::string_view origin) : origin_(origin) {}

  // Start a node, whose port lines follow. Errors: a GUID of 0 or a GUID seen before.
  absl::Status StartSwitch(SwitchInfo info, uint32_t line);
  absl::Status StartAdapter(AdapterInfo info, uint32_t line);
  bool HasNode() const { return !nodes_.empty(); }

  // Errors: no node was started, a port beyond the node's count, a port named twice.
  absl::Status AddPort(const PortLine& port);

  // Pairs the lines and builds. Errors: no node at all, a cable to a node that has no header, to a
  // port beyond its count, to itself, one whose other end names another cable or none, and what
  // FabricBuilder::Build finds.
  absl::StatusOr<std::shared_ptr<const Fabric>> Finish();

  // "net.txt:12: `what`".
  absl::Status Error(uint32_t line, absl::string_view what) const;

 private:
  struct Node {
    Guid guid;
    uint32_t line;
    uint32_t first_end;  // into ends_; the next node's first_end is the end
    uint8_t port_count;
    bool is_switch;
  };
  struct End {
    Guid remote;
    uint32_t line;
    float capacity_gbps;
    PortNum port, remote_port;
    LinkRate rate;
  };

  absl::Status StartNode(Guid guid, bool is_switch, uint8_t port_count, uint32_t line);
  absl::Status PairEnds(uint32_t node, bool late, size_t& waiting);
  const End* FindEnd(uint32_t node, PortNum port) const;
  absl::Status OneSided(uint32_t node, const End& end, uint32_t other, const End* found) const;
  std::string PortName(uint32_t node, PortNum port) const;

  std::string origin_;
  FabricBuilder builder_;
  std::vector<Node> nodes_;  // numbered as the builder numbers them
  std::vector<End> ends_;
  std::bitset<256> named_;  // ports of the last node
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_TOPOLOGY_ASSEMBLER_H_
