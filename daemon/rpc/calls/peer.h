// Who calls, and what the caller may do: the one place where a service learns its caller, and where
// access_table.h is asked.
//
//   connection           owner of what it registers   is
//   Unix socket          user name, else the uid      a user; an administrator: root, the daemon's
//                                                     user, the admin group; this machine's agent
//   TLS, certificate     "tls:" + its first name      a user; an administrator if a name of it is
//                                                     listed; a node's agent if one says so
//                                                     (agents)
//   TLS, MUNGE           user name, else the uid      a user, root is "root@munge"; or what he is
//   at
//                                                     the Unix socket (munge.trust_root)
//   TLS, neither         -                            a reader (tls.open_reading), else nobody
//   TCP, insecure        "anonymous"                  a user without a name
//   in process           whom this process runs as    an administrator
//
// An administrator may do everything; who is one is never only an agent.
//
// An administrator may call for somebody else, whom the metadata kUserMetadata names: the call is
// then that user's, with the user's own rights and not the administrator's. The daemon's user is an
// administrator at the daemon's socket only, as its uid may be another's on the machine that names
// it. An agent calls so for the users of its node: none of them is an administrator that way, and
// the node's root is "root@" + host, unless agents.trust_root. Somebody else who names a user, and
// an administrator who names nobody, may only read: what they meant to do for one user must not be
// done as another.
//
// The names of a certificate are its common name and its alternative ones (RFC 5280,
// section 4.2.1.6) that are URIs, e-mail addresses or names in DNS, in this order; addresses are no
// names.
//
// gRPC hands a connection to calls as text only: "fd:N" for a descriptor that was given to it,
// whose user is noted here before. N cannot come to mean another connection while a call of this
// one lives: each call holds a reference to its transport, which closes N with the last one
// (chttp2_transport.cc, ~grpc_chttp2_transport and grpc_chttp2_stream::Reffer;
// tests/unit/rpc/owners_test.cc holds gRPC to it).
#ifndef COPPICE_DAEMON_RPC_CALLS_PEER_H_
#define COPPICE_DAEMON_RPC_CALLS_PEER_H_

#include <grpcpp/server_context.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/base/caller_bounds.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/store_calls.h"
#include "daemon/rpc/calls/access_table.h"
#include "daemon/rpc/calls/munge_callers.h"
#include "daemon/rpc/listen/tls_credentials.h"
#include "daemon/rpc/listen/unix_users.h"
#include "db/store.h"

namespace coppice {

struct Peer {
  std::string user;
  bool may_change = false;
  bool is_administrator = false;
  std::string why_not = {};   // may_change is false; empty: callers without a name may not
  std::string caller = {};    // who connected, whomever the call is for
  std::string origin = {};    // from where: "uid:1000", "ipv4:10.0.0.7:40112"
  bool is_agent = false;      // and calls in its own name
  std::string host = {};      // of an agent: the one that it is the agent of
  bool is_scheduled = false;  // an administrator that is no agent calls for the user
  bool is_by_agent = false;   // by the word of `caller`, an agent that is no administrator
  bool is_anonymous = false;  // may change, and cannot be told from others who may
  std::string method = {};    // that it was authorised for: "Jobs.EndJob"
  std::string object = {};    // what the call is about: "job:7"; empty: several, which it names
  std::optional<int> descriptor = {};  // of the connection, if that is a Unix socket's
  absl::Status refusal = {};           // why it may not even read
};

// The peer, as whoever does what it asks for must know it.
inline Actor ActorOf(const Peer& peer) {
  return {peer.user,   peer.is_administrator, peer.caller,
          peer.origin, peer.method,           peer.is_scheduled};
}

// Thread-safe.
class Peers final {
 public:
  // `are_own`: all callers are this process. `deeds`, where they are noted, and `shown`, the
  // certificates of this daemon, outlive it.
  Peers(const AccessOptions& options, bool are_own, DeedLog* deeds, const ShownCertificates* shown);

  // Descriptor `fd` is about to be given to gRPC; `uid` is at the other end.
  void NoteConnection(int fd, uid_t uid) ABSL_LOCKS_EXCLUDED(mutex_);

  // What is to be asked of others before a call is identified, if its connection is new: as
  // MungeCallers::Learn. Identify tells of who had no success what he is without.
  void Learn(const grpc::CallbackServerContext& context, MungeCallers::Then then) {
    munge_.Learn(context, std::move(then));
  }
  // For whom the call is; with `whoever_for`, who connected. Cheap, unless the user was not seen
  // for a minute (UnixUsers).
  Peer Identify(const grpc::CallbackServerContext& context, bool whoever_for = false)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For whom the call of `method` ("/coppice.v1.Jobs/EndJob") is; of an agents' method who
  // connected, whomever it is for. `object`: what it is about, as deeds name it. PERMISSION_DENIED,
  // with whom to ask: access_table.h asks for more, or does not know the method.
  // All that is denied is noted in the account of deeds, by who denies it: here and in MayChange.
  absl::StatusOr<Peer> Authorise(const grpc::CallbackServerContext& context,
                                 absl::string_view method, absl::string_view object);
  // PERMISSION_DENIED, naming the owner, unless `job` is the peer's or the peer an administrator.
  absl::Status MayChange(const Peer& peer, const JobRecord& job) const;
  // The same of what else has an owner: "placement 7", and what to do without it.
  absl::Status MayChange(const Peer& peer, const std::string& object, const std::string& owner,
                         absl::string_view otherwise) const;
  // Whether it is the peer's, or the peer an administrator; asks, and notes, nothing.
  static bool Owns(const Peer& peer, const JobRecord& job) {
    return peer.is_administrator || (peer.may_change && job.owner == peer.user);
  }
  // Notes that it was denied by somebody else.
  void NoteDenied(const Peer& peer, absl::string_view object) const;

  // Notes that a call which it was authorised for went well, if that changes something and no
  // change to the store brings its deed. Cheap for others.
  void NoteDone(const Peer& peer, absl::string_view object) const;
  // Several times a second.
  void Tick() { munge_.Tick(); }
  // Reads what is revoked, if that has changed. About once a second.
  void Look() { revocations_.Look(); }
  // From the next call on.
  void SetAdministrators(std::string group, std::vector<std::string> tls_names)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr uid_t kNobodyYet = static_cast<uid_t>(-1);

  // Who connected, without the origin.
  Peer Caller(const grpc::CallbackServerContext& context, std::optional<int> descriptor)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The user that the metadata of a call by `caller` names; `caller` if it names none, or so many
  // that we would ask the system for each.
  Peer InTheNameOf(Peer caller, const grpc::CallbackServerContext& context)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayAskFor(const Peer& agent) ABSL_LOCKS_EXCLUDED(mutex_);
  // A user by the word of others; `root`: what that of their machines is called.
  static Peer UserByWord(bool trust_root, std::string root, UnixUser user);
  Peer FromDescriptor(uid_t uid);
  uid_t UidOf(int descriptor) ABSL_LOCKS_EXCLUDED(mutex_);
  Peer FromTransport(const grpc::CallbackServerContext& context) ABSL_LOCKS_EXCLUDED(mutex_);
  Peer FromCertificate(const grpc::AuthContext& auth) const ABSL_LOCKS_EXCLUDED(mutex_);
  Peer FromMunge(const MungeUser& munge);
  // Whether the peer may call the method at all; `access` null: the table has none.
  absl::Status Judge(const MethodAccess* access, absl::string_view method, const Peer& peer) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsTlsAdministrator(const std::vector<std::string>& names) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::string WhoAdministers() const ABSL_LOCKS_EXCLUDED(mutex_);

  const bool anonymous_may_change_, are_own_, is_name_needed_;
  const bool is_munge_root_trusted_;
  const AgentRules agents_;
  DeedLog* const deeds_;
  UnixUsers users_;
  MungeCallers munge_;
  Revocations revocations_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> tls_administrators_ ABSL_GUARDED_BY(mutex_);
  std::vector<uid_t> uids_ ABSL_GUARDED_BY(mutex_);  // [descriptor]
  // Users that the system may be asked for, of those that an agent names.
  struct Questions {
    double left = 0;
    absl::Time filled;
  };
  absl::flat_hash_map<std::string, Questions> questions_ ABSL_GUARDED_BY(mutex_);  // by agent
};

// Whose a job or a tree is, against who calls.

// PERMISSION_DENIED, naming the owner: the job, or the job of the tree, is another's and the peer
// is no administrator. OK for what does not exist: whoever is asked next says so. Cheap, except for
// a job that is over: that asks the store.
absl::Status MayChangeJob(Manager& manager, const Peers& peers, const Peer& peer, JobId id);
absl::Status MayChangeTree(const Manager& manager, const Peers& peers, const Peer& peer, TreeId id);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_PEER_H_
