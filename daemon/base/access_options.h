// Who may connect and who is who, as the configuration says it.
#ifndef COPPICE_DAEMON_BASE_ACCESS_OPTIONS_H_
#define COPPICE_DAEMON_BASE_ACCESS_OPTIONS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace coppice {

struct TlsFiles {                // all PEM; no certificate: no TLS
  std::string certificate = {};  // the server's own first, then the chain up to its authority
  std::string key = {};          // of that certificate
  std::string client_ca = {};    // who may sign clients' certificates; empty: nobody shows one
  // Who shows no certificate may connect, too. Without `client_ca` nobody could connect otherwise.
  bool open_reading = false;

  bool has_any() const { return !certificate.empty(); }
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
  bool insecure_tcp = false;  // TCP addresses without TLS: anybody there may do what users may
  std::string admin_group = "coppice-admin";         // need not exist
  std::vector<std::string> tls_administrators = {};  // common names of clients' certificates
  AgentRules agents = {};
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_ACCESS_OPTIONS_H_
