// Which agent speaks for which host: the newest, whoever came before. Hosts whose agent has gone
// stay listed, as many as there is room for. Knows no tasks and no measurement.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_TABLE_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_TABLE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/manager/distances/agent.h"

namespace coppice {

// Not thread-safe.
class AgentTable final {
 public:
  static constexpr size_t kMostGone = 1 << 16;  // hosts that are remembered without an agent

  struct Agent {
    AgentInfo info;
    AgentSession session = 0;  // 0: gone
    absl::Time since;
    std::shared_ptr<const AgentLink> link;  // null: gone
    std::string identity = {};              // its name
  };
  struct Entered {
    AgentSession session = 0;
    AgentSession replaced = 0;                  // 0: the host had none
    std::shared_ptr<const AgentLink> old_link;  // of the replaced
  };

  Entered Enter(AgentInfo info, std::shared_ptr<const AgentLink> link, absl::Time now,
                std::string identity = {});
  // False: that session is over already, or never was.
  bool Leave(AgentSession session, absl::Time now);

  // Null: none is connected for that host, or by that session.
  const Agent* Find(absl::string_view host) const;
  const Agent* Find(AgentSession session) const;
  // By host, those after `after`, connected or gone.
  std::vector<AgentView> List(absl::string_view after, size_t limit) const;
  // Names of the hosts that have one, in order.
  std::vector<std::string> Connected() const;
  size_t connected_count() const { return sessions_.size(); }

 private:
  void ForgetOldest();

  std::map<std::string, Agent, std::less<>> agents_;  // by host
  absl::flat_hash_map<AgentSession, std::string> sessions_;
  std::set<std::pair<absl::Time, std::string>> gone_;
  AgentSession last_session_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_TABLE_H_
