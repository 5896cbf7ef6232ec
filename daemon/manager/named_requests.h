// Creation that happens once: what its callers named with a request_id, so that a retry finds the
// first try whether it is done or still under way, instead of creating twice.
//
//   (none) --Begin--> under way --Succeed--> done --Forget--> (none)
//                         |  ^ Begin, same content: the callback waits
//                         +--Fail--> (none)
//
// An empty name names nothing: it always begins anew. Not thread-safe; the lock of whoever keeps it
// guards it.
#ifndef COPPICE_DAEMON_MANAGER_NAMED_REQUESTS_H_
#define COPPICE_DAEMON_MANAGER_NAMED_REQUESTS_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/requests.h"

namespace coppice {

// The name of a request among all owners': each has names of his own, which others neither find nor
// take away.
inline std::string OwnName(const std::string& owner, const std::string& name) {
  return name.empty() ? name : absl::StrCat(owner, "\n", name);
}

// `Answer` is what creation answers with, `Id` what names it afterwards; ids are 1 or more.
template <class Id, class Answer>
class NamedRequests {
 public:
  using Callback = coppice::Callback<Answer>;
  struct Asked {
    std::string name;
    absl::string_view request_id;  // as the caller gave it, who may not know the name
    uint64_t fingerprint = 0;      // of the content
  };

  // True: the caller is to carry out all that is asked, and then to call Succeed or Fail by each
  // name. `may_begin()`, asked last, says whether it may, and counts what is under way then.
  // False: `done` waits for who carries it out, or was called, without the lock: with
  // `made(ids)`, the answer of what was carried out before, with what may_begin says, or with
  //   ALREADY_EXISTS  a name stands for other content, or some of several for what there is
  //   ABORTED         one of several is under way
  // Of several, messages name the position.
  template <class Made, class MayBegin>
  bool Begin(std::unique_lock<std::mutex> lock, const std::vector<Asked>& asked, const Made& made,
             const MayBegin& may_begin, Callback& done) {
    std::vector<Id> ids;  // of what was carried out before
    absl::Status status;
    for (size_t i = 0; i < asked.size() && status.ok(); ++i) {
      const auto found = requests_.find(asked[i].name);
      if (found == requests_.end()) continue;
      Request& request = found->second;
      status = Misused(asked[i], request);
      if (status.ok() && request.id != Id()) {
        ids.push_back(request.id);
      } else if (status.ok() && asked.size() == 1) {
        request.waiters.push_back(std::move(done));
        return false;
      } else if (status.ok()) {
        status = IsUnderWay(asked[i]);
      }
      if (asked.size() > 1) status = Annotate(status, absl::StrCat("requests[", i, "]"));
    }
    const bool is_new = ids.empty();
    if (status.ok() && !is_new && ids.size() < asked.size()) status = AreMadeInPart();
    if (status.ok() && is_new) status = may_begin();
    if (status.ok() && is_new) {
      for (const Asked& one : asked) {
        if (!one.name.empty()) requests_[one.name].fingerprint = one.fingerprint;
      }
      return true;
    }
    absl::StatusOr<Answer> answer(status.ok() ? absl::StatusOr<Answer>(made(ids)) : status);
    lock.unlock();
    done(std::move(answer));
    return false;
  }

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

  // Without the lock. Who waits has not gone, and is not told that it has.
  static void Tell(std::vector<Callback> waiters, absl::StatusOr<Answer> outcome, Callback done) {
    for (Callback& waiter : waiters) {
      if (absl::IsCancelled(outcome.status())) {
        waiter(absl::AbortedError("who asked first for this request_id went away; call again"));
      } else {
        waiter(outcome);
      }
    }
    done(std::move(outcome));
  }

 private:
  struct Request {
    uint64_t fingerprint = 0;
    Id id{};  // 0 while under way
    std::vector<Callback> waiters;
  };

  static absl::Status Misused(const Asked& asked, const Request& request) {
    if (request.fingerprint == asked.fingerprint) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat("request_id ", asked.request_id,
                                                 " was used with other content; retry with the "
                                                 "same content or take a new request_id"));
  }
  static absl::Status IsUnderWay(const Asked& asked) {
    return absl::AbortedError(
        absl::StrCat("request_id ", asked.request_id, " is being carried out; call again"));
  }
  static absl::Status AreMadeInPart() {
    return absl::AlreadyExistsError(
        "some of these request_ids were carried out before, others of this call are new; retry "
        "the same call");
  }

  absl::flat_hash_map<std::string, Request> requests_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_NAMED_REQUESTS_H_
