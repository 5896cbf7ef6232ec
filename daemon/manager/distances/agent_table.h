// Which agent speaks for which host: the newest, whoever came before. Hosts whose agent has gone
// stay listed, as many as there is room for. Knows no tasks and no measurement.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_TABLE_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/strong_id.h"
#include "daemon/fabric/fabric.h"
#include "db/store.h"

namespace coppice {

// What the daemon knows of a node's agent, asks of it and hears from it, as plain values: the seam
// between who measures and the connections that carry it.
// What an agent says of its node.
struct AgentInfo {
  std::string host;         // as the fabric names it
  std::vector<Guid> ports;  // port GUIDs
  uint32_t cores = 0, packages = 0, numa_nodes = 0;
  std::string version;
  std::string measure_address;  // HOST:PORT; empty: it takes no part
  bool has_verbs = false;       // an InfiniBand port to measure over
  // Of the daemon that it was served by last; 0: of none, or it does not know.
  uint64_t last_database = 0;
};

// One side of a pair's ping-pong.
struct PingPong {
  uint64_t id = 0;    // of the pair
  std::string token;  // 32 hex digits
  bool active = false;
  std::string peer, peer_address;
  uint32_t latency_samples = 0, bandwidth_samples = 0, bandwidth_bytes = 0;
  absl::Duration timeout;
  Transport transport = Transport::kTcp;
  bool or_tcp = false;          // where verbs fail
  PartitionNum partition = {};  // over verbs; 0: that of the key of index 0
};

struct PingPongOutcome {
  uint64_t id = 0;
  std::string error;  // empty: measured
  double latency_us = 0, latency_spread_us = 0;
  double bandwidth_gbps = 0, bandwidth_spread_gbps = 0;
  uint32_t samples = 0;
  Transport transport = Transport::kTcp;
  std::string remark{};  // why it is TCP though verbs were wanted
};

// One connection of an agent. All are quick, may be called by any thread, also after the
// connection has ended, and do not call back.
struct AgentLink {
  std::function<void(const PingPong&)> send;
  std::function<void(const absl::Status&)> end;
  std::function<void(uint64_t id)> stop = {};  // a ping-pong that was sent; null: it cannot be told
};

// As whom an agent has come.
struct AgentIdentity {
  std::string name = {};    // "tls:agent-n1"
  std::string host = {};    // the only one that it may be the agent of; empty: any
  std::string origin = {};  // from where, for the account of deeds
};

// One connection, told from all others that there ever were; 0: none.
using AgentSession = uint64_t;

struct AgentView {
  AgentInfo info;
  bool connected = false;
  absl::Time since;  // of being connected, or of not being
};

// Not thread-safe.
class AgentTable final {
 public:
  static constexpr size_t kMaxGone = 1 << 16;  // hosts that are remembered without an agent

  struct Agent {
    AgentInfo info;
    AgentSession session = 0;  // 0: gone
    absl::Time since;
    std::shared_ptr<const AgentLink> link;  // null: gone
    std::string identity = {};              // its name
  };
  struct Entered {
    AgentSession session = 0;
    AgentSession replaced = 0;                  // 0: the host had none
    std::shared_ptr<const AgentLink> old_link;  // of the replaced
  };

  Entered Enter(AgentInfo info, std::shared_ptr<const AgentLink> link, absl::Time now,
                std::string identity = {});
  // False: that session is over already, or never was.
  bool Leave(AgentSession session, absl::Time now);

  // Null: none is connected for that host, or by that session.
  const Agent* Find(absl::string_view host) const;
  const Agent* Find(AgentSession session) const;
  // By host, those after `after`, connected or gone.
  std::vector<AgentView> List(absl::string_view after, size_t limit) const;
  // Names of the hosts that have one, in order.
  std::vector<std::string> Connected() const;
  size_t connected_count() const { return sessions_.size(); }

 private:
  void ForgetOldest();

  std::map<std::string, Agent, std::less<>> agents_;  // by host
  absl::flat_hash_map<AgentSession, std::string> sessions_;
  std::set<std::pair<absl::Time, std::string>> gone_;
  AgentSession last_session_ = 0;
};

// Whether what an agent says of its node can be true, and of which of the fabric's hosts it speaks.

// INVALID_ARGUMENT, naming the field: no host name, or one that is too long or has control
// characters or spaces; too many ports, cores, packages or NUMA nodes; a measure_address that is
// not HOST:PORT; a version that is too long.
absl::Status CheckAgentInfo(const AgentInfo& info);

// The host that has one of the ports, the one of that name before others; else the one of that
// name; else, for "node1.site.org", the one of the name up to the first dot. NOT_FOUND names both.
absl::StatusOr<std::string> HostOfAgent(const Fabric& fabric, const AgentInfo& info);

// PERMISSION_DENIED: `identity` is that of another host's agent than of the fabric's `host`. Names
// are the same up to a first dot where one of them has none, and no other host of the fabric is
// called so up to its dot: else nobody could tell whose it is. O(hosts) for those.
absl::Status CheckHostIsOf(const Fabric& fabric, const AgentIdentity& identity,
                           const std::string& host);

// INVALID_ARGUMENT, naming the number and its bounds: not a measurement that can be true of two
// nodes, and not an error either.
absl::Status CheckOutcome(const PingPongOutcome& outcome);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_TABLE_H_
