// What the server does now and then: ends calls and connections that keep others waiting.
#ifndef COPPICE_DAEMON_RPC_SERVER_UPKEEP_H_
#define COPPICE_DAEMON_RPC_SERVER_UPKEEP_H_

#include <thread>

#include "absl/synchronization/notification.h"
#include "daemon/rpc/admission.h"
#include "daemon/rpc/unix_connections.h"

namespace coppice {

// A thread, from here until it is destroyed. What it is given outlives it.
class ServerUpkeep final {
 public:
  ServerUpkeep(Admission* admission, UnixConnections* connections);
  ~ServerUpkeep();
  ServerUpkeep(const ServerUpkeep&) = delete;
  ServerUpkeep& operator=(const ServerUpkeep&) = delete;

 private:
  void Run(Admission* admission, UnixConnections* connections);

  absl::Notification stop_;
  std::thread thread_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_SERVER_UPKEEP_H_
