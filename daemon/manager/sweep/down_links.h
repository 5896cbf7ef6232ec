// Links that were up since the daemon's start and are not any more: what an administrator has to
// look at. One leaves the list when it is up again, or when either of its ports has another cable.
#ifndef COPPICE_DAEMON_MANAGER_SWEEP_DOWN_LINKS_H_
#define COPPICE_DAEMON_MANAGER_SWEEP_DOWN_LINKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

struct DownLink {
  struct End {
    Guid node;
    uint8_t port = 0;
    std::string name = {};  // description of the switch, name of the host
    bool is_switch = false;
  };
  std::array<End, 2> ends;  // in order of GUID and port
  std::string rate;         // "4xHDR", when it was up
  absl::Time since;
};

// Thread-safe.
class DownLinks final {
 public:
  static constexpr size_t kMax = 1024;  // that are kept; the newest go when there are more

  // One fabric came after another at `when`. O(links log links).
  void Compare(const Fabric& before, const Fabric& now, absl::Time when);
  // By ends.
  std::vector<DownLink> All() const;

 private:
  mutable std::mutex mu_;
  std::vector<DownLink> links_;  // by ends; guarded by mu_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWEEP_DOWN_LINKS_H_
