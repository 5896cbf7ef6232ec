// Keeps a second agent off the folder of the first: they would write one file of held jobs in
// turns. The kernel lets go of it however the process ends; the file stays.
#ifndef COPPICE_AGENTS_NODE_STATE_LOCK_H_
#define COPPICE_AGENTS_NODE_STATE_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace coppice {

class StateLock final {
 public:
  // FAILED_PRECONDITION: another agent has the folder. UNAVAILABLE: there is no such folder, or
  // nothing can be written there.
  static absl::StatusOr<StateLock> Take(const std::string& folder);
  StateLock(StateLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~StateLock();

 private:
  explicit StateLock(int fd) : fd_(fd) {}
  int fd_;  // -1: moved from
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_STATE_LOCK_H_
