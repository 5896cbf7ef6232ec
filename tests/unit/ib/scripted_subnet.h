// A subnet of values behind MadTransport: nodes that answer from a table, and hooks for everything
// that a real node should not do. Time is its own: a wait without an answer turns the clock
// forward, so timeouts cost nothing.
#ifndef COPPICE_TESTS_UNIT_IB_SCRIPTED_SUBNET_H_
#define COPPICE_TESTS_UNIT_IB_SCRIPTED_SUBNET_H_

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/ib/mad_engine.h"

namespace coppice {

class ScriptedSubnet final : public MadTransport, public Clock {
 public:
  struct Port {
    int peer = -1;  // node
    int peer_port = 0;
    uint16_t lid = 0;
    uint8_t lmc = 0;
    uint8_t width = 2, speed = 4;           // 4x QDR, as PortInfo says it
    std::vector<uint16_t> keys = {0xFFFF};  // of partitions
    bool enforces_inbound = false, enforces_outbound = false;
    MadData counters{}, extended_counters{};  // what the two attributes answer
  };
  struct Node {
    uint8_t type = 2;  // 1 adapter, 2 switch, 3 router
    uint8_t told_ports = 0;
    uint64_t guid = 0;
    uint16_t partition_capacity = 32, enforced_capacity = 32;
    std::string description;
    std::vector<Port> ports;  // [0..port count]
    std::vector<uint8_t> table;
    MadData class_port_info{};  // of performance management
  };

  int Add(uint8_t type, int ports, std::string description, uint16_t lid = 0);
  void Cable(int a, int a_port, int b, int b_port);
  Node& node(int index) { return nodes_[index]; }

  uint16_t manager_lid = 1;  // that every port was told
  bool manages = true;       // a subnet manager answers there

  // Sees every answer before it is queued, with the node and port that the request came to; may
  // change it. How many copies arrive: 0 = lost.
  std::function<int(int node, int port, Mad& reply)> on_reply;
  // Fails sends: the status, or OK.
  std::function<absl::Status()> on_send;
  // Answers come this much later; they overtake each other if `reorder`.
  absl::Duration latency;
  bool reorder = false;
  bool gives_back = false;  // like the kernel: what is lost comes back as timed out

  uint64_t sends = 0;
  size_t most_under_way = 0;
  void Inject(const Mad& mad, absl::Duration after) {
    queue_.push_back({now_ + after, mad, MadEvent::kReceived});
  }

  absl::Status Send(const Mad& mad, Lid lid, absl::Duration timeout) override;
  absl::StatusOr<MadEvent> Receive(absl::Duration wait, Mad& mad) override;
  absl::Time Now() const override { return absl::UnixEpoch() + now_; }
  absl::Duration Monotonic() const override { return now_; }

 private:
  struct Arrival {
    absl::Duration at;
    Mad mad;
    MadEvent event = MadEvent::kReceived;
  };

  // Follows the directed route; nullopt: it leads nowhere. {node, port it came in by}.
  std::optional<std::pair<int, int>> Walk(const Mad& mad) const;
  // The port that has the LID.
  std::optional<std::pair<int, int>> Find(Lid lid) const;
  bool Fill(int node, int port, Mad& reply) const;  // false: attribute refused
  bool FindsManager(int index, int in) const;
  bool FillPerformance(int node, Mad& reply) const;

  std::vector<Node> nodes_;
  std::deque<Arrival> queue_;
  absl::Duration now_ = absl::Seconds(1);
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_IB_SCRIPTED_SUBNET_H_
