// What the agent spends on its processes, by user: connections, and bytes that it holds for them.
// One user's processes can use up their own share, never another's.
#ifndef COPPICE_AGENTS_NODE_LOCAL_LIMITS_H_
#define COPPICE_AGENTS_NODE_LOCAL_LIMITS_H_

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"

namespace coppice {

struct LocalBounds {
  size_t connections = 16'384;
  size_t connections_of_user = 8'192;
  // Half of what the unit gives the agent (deploy/systemd/coppice-agent.service): a request that is
  // on its way through has copies that are not counted. A user may send the longest frame there is.
  size_t bytes = size_t{512} << 20;
  size_t bytes_of_user = size_t{128} << 20;
  size_t calls = 32'768;  // in flight
  size_t calls_of_user = 16'384;
};

// Less connections where the process may have fewer descriptors: some are kept for the agent.
LocalBounds WithinDescriptors(LocalBounds bounds, size_t descriptors);
// That this process may have (RLIMIT_NOFILE).
size_t MostDescriptors();

// Belongs to the loop.
class LocalLimits final {
 public:
  explicit LocalLimits(const LocalBounds& bounds) : bounds_(bounds) {}

  // False: there are too many, and it does not count.
  bool Connect(uid_t user);
  void Disconnect(uid_t user);
  // So many bytes are held for a connection in the place of `before`. False: that is too much; it
  // counts all the same.
  bool Change(uid_t user, size_t before, size_t now);
  // Of a user who is connected. False: too many calls are in flight.
  bool MayBeginCall(uid_t user) const;
  void BeginCall(uid_t user);
  void EndCall(uid_t user);

 private:
  struct Share {
    size_t connections = 0, bytes = 0, calls = 0;
  };

  const LocalBounds bounds_;
  Share whole_;
  std::unordered_map<uid_t, Share> users_;  // that are connected
};

// Who is at the other end of a local connection.
struct LocalCaller {
  uid_t uid = 0;
  pid_t process = 0;  // that connected
  // As the daemon is told: the uid in digits, never a login name. Names may be no ASCII, may be
  // digits that are another's uid, and are asked of a service that may hang; the daemon finds out
  // who the number is.
  std::string user;
};

// By SO_PEERCRED. INTERNAL: the kernel does not say.
absl::StatusOr<LocalCaller> IdentifyCaller(int fd);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_LOCAL_LIMITS_H_
