// Who acts: as far as quotas, events and the account of deeds must know. Whoever calls the manager
// fills it in; one that is left as it is stands for the daemon itself, or a test.
#ifndef COPPICE_DAEMON_MANAGER_ACTOR_H_
#define COPPICE_DAEMON_MANAGER_ACTOR_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "db/store.h"

namespace coppice {

struct Actor {
  std::string user;               // for whom: whose rights the call has
  bool is_administrator = false;  // exempt from quotas
  std::string caller;             // who connected
  std::string origin;             // from where
  std::string method;             // "Jobs.EndJob"; empty: no deed is noted
  // A scheduler's decision for its user: the nodes that it places are counted and not limited.
  bool is_scheduled = false;
};

// A deed that went well, to go with its change to the store. Null: none is noted.
inline DeedPtr DeedOf(const Actor& actor, std::string object, absl::Time now) {
  if (actor.method.empty()) return nullptr;
  auto deed = std::make_shared<DeedRecord>();
  deed->time = now;
  deed->share = actor.is_administrator ? DeedShare::kAdministrator : DeedShare::kUser;
  deed->caller = actor.caller;
  deed->user = actor.user;
  deed->origin = actor.origin;
  deed->method = actor.method;
  deed->object = std::move(object);
  deed->outcome = "OK";
  return deed;
}

// How events name it.
inline std::string NameOf(const Actor& actor) {
  if (actor.caller.empty() || actor.caller == actor.user) return actor.user;
  return actor.caller + " for " + actor.user;
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_ACTOR_H_
