// Unix users behind the uids that the kernel names: what they are called, and whether they belong
// to the group of administrators. Answers are kept for a minute, because a directory service may
// stand behind them. Knows no connections and no calls.
#ifndef COPPICE_DAEMON_RPC_LISTEN_UNIX_USERS_H_
#define COPPICE_DAEMON_RPC_LISTEN_UNIX_USERS_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace coppice {

// What callers go by on the wire, and owners of jobs that are no Unix users. No Unix user is ever
// called so.
inline constexpr char kAnonymous[] = "anonymous";     // over TCP, without a client's certificate
inline constexpr char kUnknownOwner[] = "unknown";    // of jobs of a release that did not note it
inline constexpr char kTlsPrefix[] = "tls:";          // + common name of a client's certificate
inline constexpr char kRootOfNode[] = "root@";        // + host: root there, by its agent's word
inline constexpr char kRootByMunge[] = "root@munge";  // of any machine that has the key

// Metadata of a call in which an administrator or a node's agent says for whom it is: a login name,
// or a uid in digits.
inline constexpr char kUserMetadata[] = "coppice-user";
// Beside it, whatever its value: the user asks, by way of a node's agent. Without it the
// administrator asks, as a scheduler does, and answers for what the user gets.
inline constexpr char kByAgentMetadata[] = "coppice-by-agent";

// Where a connection over TCP comes from, as far as bounds go: its address without the port, which
// each connection has anew; of IPv6 the network of 64 bits, as a host may have every address of it
// (RFC 4291, section 2.5.1).

// "10.0.0.1", "2001:db8::/64". IPv4 in IPv6's clothes is IPv4.
std::string NetworkOf(const sockaddr_storage& address);
// The same of what gRPC says of a connection: "ipv4:10.0.0.1:4711", "ipv6:%5B2001:db8::1%5D:4711".
// Anything else as it is, up to its last colon.
std::string NetworkOf(absl::string_view connection);

struct UnixUser {
  std::string name;  // the login name, else the uid in digits; never one of another meaning
  bool is_administrator = false;
  bool is_root = false;  // uid 0, whatever it is called
};

// Answers of the system, each for a minute.
template <class Key, class Value>
class KeptAnswers final {
 public:
  std::optional<Value> Find(const Key& key) const {
    const auto found = answers_.find(key);
    if (found == answers_.end()) return std::nullopt;
    // A clock that was set back must not keep an answer for longer, either.
    const absl::Duration left = found->second.until - absl::Now();
    if (left <= absl::ZeroDuration() || left > kKept) return std::nullopt;
    return found->second.value;
  }
  void Put(const Key& key, Value value) {
    if (answers_.size() >= kMaxAnswers) answers_.clear();
    answers_[key] = {std::move(value), absl::Now() + kKept};
  }
  void Clear() { answers_.clear(); }

 private:
  static constexpr absl::Duration kKept = absl::Minutes(1);
  static constexpr size_t kMaxAnswers = 65'536;
  struct Answer {
    Value value;
    absl::Time until;
  };
  absl::flat_hash_map<Key, Answer> answers_;
};

// Thread-safe. A first look-up, or one after a minute, asks the system on the caller's thread.
class UnixUsers final {
 public:
  // Administrators are root, the user that this process runs as, and the members of `admin_group`,
  // if there is such a group: as their own, or as one of their further groups.
  explicit UnixUsers(std::string admin_group) : admin_group_(std::move(admin_group)) {}

  UnixUser Find(uid_t uid) ABSL_LOCKS_EXCLUDED(mutex_);
  // By login name, or by uid in digits, as another machine says it. A name that this system does
  // not know, as of a node with users of its own, is an ordinary user of that name. The user that
  // this process runs as is no administrator here: system accounts get their uids on each machine,
  // and the same one may be any service elsewhere. None: it cannot be the name of a user, or
  // `may_ask`, which is asked before the system is, says no.
  std::optional<UnixUser> FindNamed(
      const std::string& user, absl::FunctionRef<bool()> may_ask = [] { return true; })
      ABSL_LOCKS_EXCLUDED(mutex_);

  // From the next look-up on; forgets all answers.
  void SetAdminGroup(std::string group) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string admin_group() const ABSL_LOCKS_EXCLUDED(mutex_);

  // NOT_FOUND: the system knows no such group.
  static absl::Status CheckGroup(const std::string& group);
  // None: the system knows no such group.
  static std::optional<gid_t> FindGroup(const std::string& group);

 private:
  // Root and the members of the group are administrators.
  UnixUser Ask(uid_t uid) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<uid_t> Ask(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  std::string admin_group_ ABSL_GUARDED_BY(mutex_);
  KeptAnswers<uid_t, UnixUser> users_ ABSL_GUARDED_BY(mutex_);
  KeptAnswers<std::string, std::optional<uid_t>> uids_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_LISTEN_UNIX_USERS_H_
