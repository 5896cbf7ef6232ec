// Collects nodes and cables in any order and makes a Fabric of them, checking everything that a
// reader of a foreign file or of a live subnet must not be trusted with. Descriptions are cleaned
// of control characters and of bytes that are no UTF-8: nodes with uninitialised memory in their
// NodeDescription exist.
#ifndef COPPICE_DAEMON_FABRIC_FABRIC_BUILDER_H_
#define COPPICE_DAEMON_FABRIC_FABRIC_BUILDER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// IBA vol. 1, 14.2.5.3 NodeInfo: NumPorts has 8 bits, 255 is reserved.
inline constexpr uint32_t kMaxNodePorts = 254;

// A node of any kind, as a text or a live subnet tells it.
struct StatedNode {
  Guid guid;
  std::optional<AdapterKind> adapter{};  // nullopt: a switch
  uint8_t port_count = 0;
  Lid lid{};  // of switches; adapters' are their ports'
  uint16_t device_id = 0;
  uint32_t vendor_id = 0;
  std::string description{};
  bool is_switch() const { return !adapter; }
};

// Not thread-safe. Every error is INVALID_ARGUMENT and names the node (GUID) and port.
class FabricBuilder {
 public:
  // Duplicate node GUIDs are an error. The host of an adapter is ignored: hosts are derived in
  // Build() from the descriptions.
  absl::Status AddSwitch(SwitchInfo info);
  absl::Status AddAdapter(AdapterInfo info);
  absl::Status AddNode(StatedNode record);

  // States port GUID, LID and LMC of an adapter's port. A port that no cable names is dropped.
  absl::Status SetAdapterPort(Guid adapter, PortNum port, Guid port_guid, Lid lid, uint8_t lmc = 0);

  // Adds one cable. Naming the same cable again, from either end, is allowed if both agree (the
  // first known rate is kept); a port with two different cables, a port number above the node's
  // count and an unknown node are errors. `capacity_gbps` 0 = from the rate.
  absl::Status AddLink(Guid a, PortNum a_port, Guid b, PortNum b_port, LinkRate rate = {},
                       float capacity_gbps = 0);

  // The same by number, for readers that know their nodes already: nodes are numbered from 0 in the
  // order in which they were added. The numbers must exist.
  std::optional<uint32_t> FindNode(Guid guid) const;
  absl::Status SetAdapterPort(uint32_t adapter, PortNum port, Guid port_guid, Lid lid, uint8_t lmc);
  absl::Status AddLink(uint32_t a, PortNum a_port, uint32_t b, PortNum b_port, LinkRate rate,
                       float capacity_gbps);

  // Sorts, indexes and checks the whole: duplicate port GUIDs and LIDs are errors, an empty fabric
  // is legal. O(n log n). The builder is empty afterwards.
  // Hosts: endpoint_names.h.
  absl::StatusOr<std::shared_ptr<const Fabric>> Build();

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  struct Node {
    Guid guid;
    uint32_t index;               // into switches_ or adapters_
    uint32_t first_port;          // into cabled_: the place of its port 1
    uint32_t first_adapter_port;  // into adapter_ports_, of adapters
    uint8_t port_count;
    bool is_switch;
  };
  struct AdapterPort {
    Guid port_guid;
    Lid lid;
    uint8_t lmc = 0;
  };
  struct Cable {
    uint32_t a, b;  // nodes_
    PortNum a_port, b_port;
    LinkRate rate;
    float capacity_gbps;
  };

  absl::Status Number(Guid guid, uint32_t index, bool is_switch, uint8_t port_count);
  absl::StatusOr<uint32_t> NodeAt(Guid guid) const;
  absl::Status CheckPort(uint32_t node, PortNum port) const;
  absl::Status CabledTwice(const Cable& known, uint32_t node, PortNum port, const Cable& now) const;
  uint32_t& CableAt(uint32_t node, PortNum port) {
    return cabled_[nodes_[node].first_port + port.value() - 1];
  }
  class Assembly;  // of fabric_builder.cc: what Build does

  absl::flat_hash_map<Guid, uint32_t> by_guid_;  // into nodes_
  std::vector<Node> nodes_;
  std::vector<SwitchInfo> switches_;
  std::vector<AdapterInfo> adapters_;
  std::vector<AdapterPort> adapter_ports_;  // [adapter][port - 1]
  std::vector<uint32_t> cabled_;            // [node][port - 1] into cables_, or kNone
  std::vector<Cable> cables_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_FABRIC_BUILDER_H_
