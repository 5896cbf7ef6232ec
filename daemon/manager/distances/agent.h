// What the daemon knows of a node's agent, asks of it and hears from it, as plain values: the seam
// between who measures and the connections that carry it.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/strong_id.h"
#include "db/store.h"

namespace coppice {

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
  bool or_tcp = false;  // where verbs fail
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_H_
