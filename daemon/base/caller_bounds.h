// What the configuration says of callers: who may connect, who is who, and what one may have of the
// daemon at once.
#ifndef COPPICE_DAEMON_BASE_CALLER_BOUNDS_H_
#define COPPICE_DAEMON_BASE_CALLER_BOUNDS_H_

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace coppice {

struct TlsFiles {                // all PEM; no certificate: no TLS
  std::string certificate = {};  // the server's own first, then the chain up to its authority
  std::string key = {};          // of that certificate
  std::string client_ca = {};    // who may sign clients' certificates; empty: nobody shows one
  std::string client_crl = {};   // what they have revoked; empty: nothing
  // Who shows no certificate may connect, too. Without `client_ca` nobody could connect otherwise.
  bool open_reading = false;

  bool has_any() const { return !certificate.empty(); }
};

// Who calls over TLS without a certificate says by MUNGE which user he is.
struct MungeRules {
  std::string socket = {};  // of munged; "default": libmunge's own; empty: nobody comes so
  std::string realm = {};   // that credentials must be of
  // Root and administrators are what they are at the socket.
  bool trust_root = false;
};

// Who is a node's agent, and not an administrator.
struct AgentRules {
  // Names in certificates, the common one or an alternative one, with "{host}" where the host's
  // stands: "agent-{host}".
  std::vector<std::string> certificates = {};
  // Users at the Unix socket: agents of the machine that the daemon runs on.
  std::vector<std::string> users = {};
  std::string own_host = {};  // that machine's name
  // The roots of nodes and the administrators among their users are what they are at the socket.
  bool trust_root = false;
};

struct AccessOptions {
  mode_t socket_mode = 0660;        // of Unix sockets' files
  std::string socket_group = {};    // theirs; empty: that of this process
  bool needs_socket_group = false;  // else, where it cannot be, they are their owner's alone
  TlsFiles tls = {};                // for TCP addresses
  MungeRules munge = {};
  bool insecure_tcp = false;  // TCP addresses without TLS: anybody there may do what users may
  std::string admin_group = "coppice-admin";         // need not exist
  std::vector<std::string> tls_administrators = {};  // names in clients' certificates
  AgentRules agents = {};

  // Over TLS.
  bool takes_certificates_only() const { return !tls.open_reading && munge.socket.empty(); }
};

struct CallerBounds {
  uint32_t calls = 64;               // that run, but for streams
  uint32_t waiting = 1024;           // that wait for that
  uint32_t streams = 1024;           // watches, searches, leases that are kept alive
  uint32_t calls_per_second = 2000;  // over two seconds
  // In memory: of requests under way, and of answers that it has not read. Where a caller has no
  // other, one may take more, of one caller at a time.
  int64_t request_memory = int64_t{64} << 20;
  int64_t answer_memory = int64_t{64} << 20;
  friend bool operator==(const CallerBounds&, const CallerBounds&) = default;
};

struct AdmissionBounds {
  CallerBounds caller;
  CallerBounds administrator = {256, 4096, 4096, 50'000, int64_t{96} << 20, int64_t{96} << 20};
  // Of all callers together, but administrators, who have their own only.
  uint32_t calls = 4096;
  uint32_t waiting = 32'768;
  uint32_t streams = 65'536;
  // The same, of administrators, too; and the most that one request may take.
  int64_t request_memory = int64_t{192} << 20;
  int64_t answer_memory = int64_t{192} << 20;
  absl::Duration longest_reading = absl::Seconds(30);  // of a request, and of a large answer
  friend bool operator==(const AdmissionBounds&, const AdmissionBounds&) = default;
};

struct ConnectionBounds {
  // At Unix sockets.
  uint32_t of_user = 256;
  uint32_t of_all = 4096;
  absl::Duration longest_silence = absl::Seconds(10);  // before the first call
  // Over TCP.
  uint32_t tcp_of_address = 256;
  uint32_t tcp_of_all = 32'768;
  friend bool operator==(const ConnectionBounds&, const ConnectionBounds&) = default;
};

// What one of many may have of what all share: its own bound, and never more than half of what the
// others leave. So whoever comes finds something, however many have come before.
constexpr int64_t ShareOf(int64_t own_most, int64_t all_most, int64_t of_others) {
  return std::min(own_most, (all_most - of_others + 1) / 2);
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_CALLER_BOUNDS_H_
