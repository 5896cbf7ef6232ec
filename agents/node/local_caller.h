// Who is at the other end of a local connection.
#ifndef COPPICE_AGENTS_NODE_LOCAL_CALLER_H_
#define COPPICE_AGENTS_NODE_LOCAL_CALLER_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace coppice {

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

#endif  // COPPICE_AGENTS_NODE_LOCAL_CALLER_H_
