// Creations that their callers named with a request_id, so that a retry finds the first try whether
// it is done or still under way, instead of creating twice.
//
//   (none) --Begin--> under way --Succeed--> done --Forget--> (none)
//                         |  ^ Begin, same content: the callback waits
//                         +--Fail--> (none)
//
// An empty request_id names nothing: it always begins anew. Not thread-safe; the manager's lock
// guards it.
#ifndef COPPICE_DAEMON_MANAGER_NAMED_REQUESTS_H_
#define COPPICE_DAEMON_MANAGER_NAMED_REQUESTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/fingerprint.h"
#include "daemon/manager/requests.h"

namespace coppice {

// The name of a request among all owners': each has names of his own, which others neither find nor
// take away.
inline std::string OwnName(const std::string& owner, const std::string& name) {
  return name.empty() ? name : absl::StrCat(owner, "\n", name);
}

// `View` is what creation answers with, `Id` what names it afterwards; ids are 1 or more.
template <class Id, class View>
class NamedRequests {
 public:
  using Callback = coppice::Callback<View>;
  enum class Turn : uint8_t {
    kBegin,    // first of its name: carry it out, then Succeed or Fail
    kWait,     // under way: `done` was taken and will be handed out by Succeed or Fail
    kDone,     // carried out before: `id` says as what
    kMisused,  // the name stands for other content
  };

  // What a call with this name has to do, changing nothing; for callers that have more to check
  // before they begin.
  Turn Peek(const std::string& name, uint64_t fingerprint) const {
    const auto it = name.empty() ? requests_.end() : requests_.find(name);
    if (it == requests_.end()) return Turn::kBegin;
    if (it->second.fingerprint != fingerprint) return Turn::kMisused;
    return it->second.id == Id() ? Turn::kWait : Turn::kDone;
  }
  // After Peek: kBegin.
  void Begin(const std::string& name, uint64_t fingerprint) {
    if (!name.empty()) requests_[name].fingerprint = fingerprint;
  }
  // After Peek: kWait.
  void Wait(const std::string& name, Callback done) {
    requests_[name].waiters.push_back(std::move(done));
  }
  // After Peek: kDone.
  Id IdOf(const std::string& name) const { return requests_.at(name).id; }

  // Enters one that an earlier run of the daemon carried out.
  void Restore(const std::string& name, uint64_t fingerprint, Id id) {
    if (!name.empty()) requests_[name] = {fingerprint, id, {}};
  }
  // Both return the callbacks that waited, to be called with the same outcome.
  std::vector<Callback> Succeed(const std::string& name, Id id) {
    if (name.empty()) return {};
    Request& request = requests_[name];
    request.id = id;
    return std::exchange(request.waiters, {});
  }
  std::vector<Callback> Fail(const std::string& name) {
    if (name.empty()) return {};
    std::vector<Callback> waiters = std::move(requests_[name].waiters);
    requests_.erase(name);
    return waiters;
  }
  // What it created is gone: the name is free again.
  void Forget(const std::string& name) {
    if (!name.empty()) requests_.erase(name);
  }

  static absl::Status MisusedError(const std::string& name) {
    return absl::AlreadyExistsError(absl::StrCat("request_id ", name,
                                                 " was used with other content; retry with the "
                                                 "same content or take a new request_id"));
  }

 private:
  struct Request {
    uint64_t fingerprint = 0;
    Id id;  // 0 while under way
    std::vector<Callback> waiters;
  };
  absl::flat_hash_map<std::string, Request> requests_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_NAMED_REQUESTS_H_
