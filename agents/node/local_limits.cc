#include "agents/node/local_limits.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

// For the daemon, the hold file, the processes of /proc, and measuring.
constexpr size_t kKept = 64;

}  // namespace

LocalBounds WithinDescriptors(LocalBounds bounds, size_t descriptors) {
  const size_t most = descriptors - std::min(kKept, descriptors / 2);
  bounds.connections = std::min(bounds.connections, most);
  bounds.connections_of_user = std::min(bounds.connections_of_user, most - most / 4);
  return bounds;
}

size_t MostDescriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

bool LocalLimits::Connect(uid_t user) {
  const auto found = users_.find(user);
  const size_t own = found == users_.end() ? 0 : found->second.connections;
  if (whole_.connections >= bounds_.connections || own >= bounds_.connections_of_user) return false;
  ++whole_.connections;
  ++users_[user].connections;
  return true;
}

void LocalLimits::Disconnect(uid_t user) {
  --whole_.connections;
  if (--users_.at(user).connections == 0) users_.erase(user);
}

bool LocalLimits::MayBeginCall(uid_t user) const {
  return whole_.calls < bounds_.calls && users_.at(user).calls < bounds_.calls_of_user;
}

void LocalLimits::BeginCall(uid_t user) {
  ++whole_.calls;
  ++users_.at(user).calls;
}

void LocalLimits::EndCall(uid_t user) {
  --whole_.calls;
  --users_.at(user).calls;
}

bool LocalLimits::Change(uid_t user, size_t before, size_t now) {
  Share& own = users_.at(user);
  for (Share* share : {&whole_, &own}) share->bytes += now - before;
  return now <= before || (whole_.bytes <= bounds_.bytes && own.bytes <= bounds_.bytes_of_user);
}

absl::StatusOr<LocalCaller> IdentifyCaller(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return absl::InternalError("the kernel does not say who connected");
  }
  return LocalCaller{credentials.uid, credentials.pid, absl::StrCat(credentials.uid)};
}

}  // namespace coppice
