// What the agent must not forget when it is started anew: the jobs that it holds. A small file of
// JSON, replaced as a whole.
#ifndef COPPICE_AGENTS_NODE_HOLD_FILE_H_
#define COPPICE_AGENTS_NODE_HOLD_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/node/process_identity.h"

namespace coppice {

struct HeldJob {
  std::string id;    // "7"
  std::string user;  // in whose name it is renewed
  std::vector<ProcessIdentity> processes;
  bool end_job = false;  // when the last process is gone

  friend bool operator==(const HeldJob&, const HeldJob&) = default;
};

// Processes of another start of the node are gone: `boot_id` tells, unless one of the two is empty.
std::string FormatHolds(const std::vector<HeldJob>& jobs, const std::string& boot_id);
// INVALID_ARGUMENT: it is no such text.
absl::StatusOr<std::vector<HeldJob>> ParseHolds(absl::string_view text, const std::string& boot_id);

class HoldFile final {
 public:
  explicit HoldFile(std::string path) : path_(std::move(path)) {}

  // Empty if there is no file. DATA_LOSS: it holds something else; it is moved aside, and the
  // message says where to. UNAVAILABLE: nobody can tell what it holds, so it must not be replaced.
  absl::StatusOr<std::vector<HeldJob>> Load() const;
  // Durable when it returns. UNAVAILABLE: it cannot be written, and the old one is still there.
  absl::Status Save(const std::vector<HeldJob>& jobs) const;

 private:
  const std::string path_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_HOLD_FILE_H_
