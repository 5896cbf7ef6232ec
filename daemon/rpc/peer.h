// Who calls, and what the caller may do: the one place where a service learns its caller.
//
//   connection          owner of what it registers   may change          administrator
//   Unix socket         user name, else the uid      its own             root, the daemon's user,
//                                                                        members of the admin group
//   TLS, certificate    "tls:" + common name         its own             if listed
//   TLS, none           -                            nothing             no
//   TCP, insecure       "anonymous"                  what is anonymous's no
//
// Everybody who can connect may read. Administrators may do everything.
//
// An administrator may call for somebody else, whom the metadata kUserMetadata names, as the agent
// of a node does for the node's users: the call is then that user's, with the user's own rights and
// not the administrator's. The daemon's user is an administrator at the daemon's socket only, as
// its uid may be another's on the machine that names it. Somebody else who names a user, and an
// administrator who names nobody, may only read: what they meant to do for one user must not be
// done as another.
//
// gRPC hands a connection to calls as text only: "fd:N" for a descriptor that was given to it. The
// user of each N is noted here before gRPC gets it. N cannot come to mean another connection while
// a call of this one lives: each call holds a reference to its transport, and the transport closes
// N when the last reference goes (chttp2_transport.cc, ~grpc_chttp2_transport and
// grpc_chttp2_stream::Reffer; tests/unit/rpc/owners_test.cc holds gRPC to it).
#ifndef COPPICE_DAEMON_RPC_PEER_H_
#define COPPICE_DAEMON_RPC_PEER_H_

#include <grpcpp/server_context.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/rpc/unix_users.h"
#include "db/store.h"

namespace coppice {

struct Peer {
  std::string user;
  bool may_change = false;
  bool is_administrator = false;
  std::string why_not = {};  // may_change is false; empty: callers without a name may not
};

struct PeerOptions {
  std::string admin_group = "coppice-admin";    // need not exist
  std::vector<std::string> tls_administrators;  // common names
  bool anonymous_may_change = false;            // callers over TCP without a certificate
};

// Thread-safe.
class Peers final {
 public:
  explicit Peers(PeerOptions options);

  // Descriptor `fd` is about to be given to gRPC; `uid` is at the other end.
  void NoteConnection(int fd, uid_t uid) ABSL_LOCKS_EXCLUDED(mutex_);

  // For whom the call is. Cheap, unless the user was not seen for a minute (UnixUsers).
  Peer Identify(const grpc::CallbackServerContext& context) ABSL_LOCKS_EXCLUDED(mutex_);

  // The caller, who may register jobs. PERMISSION_DENIED: it may only read.
  absl::StatusOr<Peer> MayRegister(const grpc::CallbackServerContext& context);
  // PERMISSION_DENIED unless the caller is an administrator; `what` begins the message: "a sweep".
  absl::Status MayAdminister(const grpc::CallbackServerContext& context, absl::string_view what);
  // PERMISSION_DENIED unless who connected is an administrator, whomever the call is for.
  absl::Status MayBeAgent(const grpc::CallbackServerContext& context);
  // PERMISSION_DENIED, naming the owner, unless `job` is the peer's or the peer an administrator.
  absl::Status MayChange(const Peer& peer, const JobRecord& job) const;
  // The same of what else has an owner: "placement 7", and what to do without it.
  absl::Status MayChange(const Peer& peer, const std::string& object, const std::string& owner,
                         absl::string_view otherwise) const;

  // From the next call on.
  void SetAdministrators(std::string group, std::vector<std::string> tls_names)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr uid_t kNobodyYet = static_cast<uid_t>(-1);

  // Who connected, whomever the call is for.
  Peer Caller(const grpc::CallbackServerContext& context) ABSL_LOCKS_EXCLUDED(mutex_);
  // The user that the metadata of a call by `caller` names; `caller` if it names none.
  Peer InTheNameOf(Peer caller, const grpc::CallbackServerContext& context);
  Peer FromDescriptor(absl::string_view number);
  Peer FromTransport(const grpc::CallbackServerContext& context) const;
  absl::Status NotAdministrator(const Peer& peer, absl::string_view what) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsTlsAdministrator(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::string WhoAdministers() const ABSL_LOCKS_EXCLUDED(mutex_);

  const bool anonymous_may_change_;
  UnixUsers users_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> tls_administrators_ ABSL_GUARDED_BY(mutex_);
  std::vector<uid_t> uids_ ABSL_GUARDED_BY(mutex_);  // [descriptor]
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_PEER_H_
