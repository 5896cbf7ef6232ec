// Who is behind connections over TLS that bring a MUNGE credential instead of a certificate. What a
// credential says is noted at its connection, once, and holds as long as that: later calls cost no
// question, and a client that connects again brings another one.
//
//   call --of a known connection-----------------------------> on it goes
//        --the first: worker asks munged, others wait for it--> on it goes, or why not
//
// The note is a property of the connection's AuthContext, which gRPC makes for each connection and
// shares among its calls (server_auth_filter.cc of 1.51), and which goes with it: so nothing here
// has to learn when a connection ends. gRPC itself looks at no property of a call once the
// handshake is over, and ours are only looked at here, under a lock.
#ifndef COPPICE_DAEMON_RPC_CALLS_MUNGE_CALLERS_H_
#define COPPICE_DAEMON_RPC_CALLS_MUNGE_CALLERS_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/rpc/calls/worker_pool.h"
#include "daemon/rpc/listen/connections.h"
#include "daemon/rpc/listen/tls_credentials.h"
#include "proto/munge/credential.h"

namespace coppice {

// Thread-safe.
class MungeCallers final {
 public:
  using Then = absl::AnyInvocable<void(const absl::Status&)>;

  // Without a socket nobody comes so. `shown`, the certificates of this daemon, outlives it.
  MungeCallers(Munge munge, const ShownCertificates* shown)
      : munge_(std::move(munge)), shown_(shown) {
    if (!munge_.socket.empty()) workers_.emplace(kWorkers);
  }

  // Reads the credential that the call brings, unless its connection is known, or is none over TLS
  // without a certificate. `then` is called once, by this or by another thread: OK also where there
  // is none. UNAUTHENTICATED: it is not good. UNAVAILABLE: munged does not answer in
  // kLongestReading, or too many others wait.
  void Learn(const grpc::CallbackServerContext& context, Then then) ABSL_LOCKS_EXCLUDED(mutex_);
  // None: the connection has brought no credential that was good.
  std::optional<MungeUser> UserOf(const grpc::AuthContext& connection) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives up what has waited for too long. To be called several times a second.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

  static constexpr absl::Duration kLongestReading = absl::Seconds(5);

 private:
  static constexpr int kWorkers = 2;  // as many threads munged has, unless it is told otherwise

  using Connection = std::shared_ptr<const grpc::AuthContext>;
  struct Waiter {
    Then then;
    absl::Time since;
  };

  // OK: it waits from now on. `is_first`, of its connection: its credential is to be read.
  absl::Status Line(const void* key, Then& then, bool& is_first)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Waiter> TakeLine(const void* key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Read(const void* key, const Connection& connection, const std::string& credential,
            const std::string& from) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<MungeUser> UserNow(const grpc::AuthContext& connection) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Munge munge_;
  const ShownCertificates* const shown_;
  mutable absl::Mutex mutex_;  // also of our property of every connection
  // By connection, as long as its credential waits to be read or is read.
  absl::flat_hash_map<const void*, std::vector<Waiter>> lines_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // in all lines
  RareWarning refused_;
  std::optional<WorkerPool> workers_;  // ends first
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_MUNGE_CALLERS_H_
