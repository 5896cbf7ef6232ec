#include "daemon/manager/distances/agent_table.h"

namespace coppice {

AgentTable::Entered AgentTable::Enter(AgentInfo info, std::shared_ptr<const AgentLink> link,
                                      absl::Time now, std::string identity) {
  Entered entered;
  entered.session = ++last_session_;
  std::string host = info.host;
  Agent& agent = agents_[host];
  if (agent.session != 0) {
    entered.replaced = agent.session;
    entered.old_link = std::move(agent.link);
    sessions_.erase(agent.session);
  } else {
    gone_.erase({agent.since, host});
  }
  agent = {std::move(info), entered.session, now, std::move(link), std::move(identity)};
  sessions_.emplace(entered.session, std::move(host));
  return entered;
}

bool AgentTable::Leave(AgentSession session, absl::Time now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return false;
  Agent& agent = agents_.find(found->second)->second;
  agent.session = 0;
  agent.link = nullptr;
  agent.since = now;
  gone_.emplace(now, std::move(found->second));
  sessions_.erase(found);
  ForgetOldest();
  return true;
}

void AgentTable::ForgetOldest() {
  while (gone_.size() > kMostGone) {
    agents_.erase(gone_.begin()->second);
    gone_.erase(gone_.begin());
  }
}

const AgentTable::Agent* AgentTable::Find(absl::string_view host) const {
  const auto found = agents_.find(host);
  return found == agents_.end() || found->second.session == 0 ? nullptr : &found->second;
}

const AgentTable::Agent* AgentTable::Find(AgentSession session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &agents_.find(found->second)->second;
}

std::vector<AgentView> AgentTable::List(absl::string_view after, size_t limit) const {
  std::vector<AgentView> views;
  for (auto next = agents_.upper_bound(after); next != agents_.end() && views.size() < limit;
       ++next) {
    const Agent& agent = next->second;
    views.push_back({agent.info, agent.session != 0, agent.since});
  }
  return views;
}

std::vector<std::string> AgentTable::Connected() const {
  std::vector<std::string> hosts;
  for (const auto& [host, agent] : agents_) {
    if (agent.session != 0) hosts.push_back(host);
  }
  return hosts;
}

}  // namespace coppice
