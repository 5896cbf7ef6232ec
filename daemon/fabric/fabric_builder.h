// Collects nodes and cables in any order and makes a Fabric of them, checking everything that a
// reader of a foreign file or of a live subnet must not be trusted with.
#ifndef COPPICE_DAEMON_FABRIC_FABRIC_BUILDER_H_
#define COPPICE_DAEMON_FABRIC_FABRIC_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// Not thread-safe. Every error is INVALID_ARGUMENT and names the node (GUID) and port.
class FabricBuilder {
 public:
  // Adds a switch. Duplicate node GUIDs are an error.
  absl::Status AddSwitch(SwitchInfo info);

  // Adds a channel adapter or router. `info.host` is ignored: hosts are derived in Build() from the
  // descriptions. Duplicate node GUIDs are an error.
  absl::Status AddAdapter(AdapterInfo info);

  // States port GUID, LID and LMC of an adapter's port. A port that no cable names is dropped.
  absl::Status SetAdapterPort(Guid adapter, PortNum port, Guid port_guid, Lid lid, uint8_t lmc = 0);

  // Adds one cable. Naming the same cable again, from either end, is allowed if both agree (the
  // first known rate is kept); a port with two different cables, a port number above the node's
  // count and an unknown node are errors. `capacity_gbps` 0 = from the rate.
  absl::Status AddLink(Guid a, PortNum a_port, Guid b, PortNum b_port, LinkRate rate = {},
                       float capacity_gbps = 0);

  bool HasNode(Guid guid) const { return nodes_.contains(guid); }

  // Sorts, indexes and checks the whole: duplicate port GUIDs and LIDs are errors, an empty fabric
  // is legal. O(n log n). The builder is empty afterwards.
  //
  // Hosts: adapters whose descriptions are "HOST DEVICE" with equal HOST and different DEVICE are
  // one host named HOST; two adapters that give the same HOST and DEVICE are two hosts, named
  // HOST#GUID each, because a duplicate description must not merge two machines. A description
  // without a device part names its host alone; an empty one names it by the adapter's GUID.
  absl::StatusOr<std::shared_ptr<const Fabric>> Build();

 private:
  struct Node {
    bool is_switch = false;
    uint32_t index = 0;  // into switches_ or adapters_
    uint8_t port_count = 0;
  };
  struct PortKey {
    Guid node;
    PortNum port;
    friend bool operator==(const PortKey&, const PortKey&) = default;
    friend auto operator<=>(const PortKey&, const PortKey&) = default;
    template <class H>
    friend H AbslHashValue(H h, const PortKey& key) {
      return H::combine(std::move(h), key.node, key.port);
    }
  };
  struct AdapterPort {
    Guid port_guid;
    Lid lid;
    uint8_t lmc = 0;
  };
  struct Cable {
    PortKey a, b;  // a <= b
    LinkRate rate;
    float capacity_gbps = 0;
  };

  absl::Status CheckPort(const PortKey& key) const;
  void SortNodes(Fabric& fabric);
  void NameHosts(Fabric& fabric) const;
  void AddEndpoints(Fabric& fabric) const;
  absl::Status AddLinks(Fabric& fabric) const;
  static void IndexChannels(Fabric& fabric);
  static void FindComponents(Fabric& fabric);
  static absl::Status IndexNames(Fabric& fabric);

  absl::flat_hash_map<Guid, Node> nodes_;
  std::vector<SwitchInfo> switches_;
  std::vector<AdapterInfo> adapters_;
  absl::flat_hash_map<PortKey, AdapterPort> adapter_ports_;
  absl::flat_hash_map<PortKey, uint32_t> cabled_;  // port -> cables_
  std::vector<Cable> cables_;
};

// Splits a NodeDescription into host and device: "node17 mlx5_0" -> {"node17", "mlx5_0"},
// "bonobo020 HCA-1" -> {"bonobo020", "HCA-1"}, "node17" -> {"node17", ""}. A last word counts as a
// device if it starts with HCA, mlx, hfi, qib, ib, mthca, nes, cxgb, hns, bnxt, irdma, erdma, efa
// or rxe, and ends in a digit.
std::pair<absl::string_view, absl::string_view> SplitNodeDescription(absl::string_view description);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_FABRIC_BUILDER_H_
