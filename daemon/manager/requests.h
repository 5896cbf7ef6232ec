// What is asked of the manager for jobs, trees and batches of trees, what it answers, and what can
// be judged of a request without a fabric: its shape, its limits, its fingerprint, and whether it
// was asked before.
#ifndef COPPICE_DAEMON_MANAGER_REQUESTS_H_
#define COPPICE_DAEMON_MANAGER_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/routes.h"
#include "daemon/manager/store_calls.h"
#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/grid.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/tree_plan.h"
#include "daemon/tree/tree_spec.h"
#include "db/store.h"

namespace coppice {

// How the manager answers what has to be durable first.
template <class T>
using Callback = absl::AnyInvocable<void(absl::StatusOr<T>)>;

// The first `most` names, and how many more there are.
std::string FirstOf(absl::Span<const std::string> names, size_t most);

// To all who wait for the same.
template <class T>
void AnswerAll(std::vector<Callback<T>> waiters, const absl::StatusOr<T>& answer) {
  for (Callback<T>& waiter : waiters) waiter(answer);
}

// --- Jobs ---
struct RegisterJobArgs {
  std::string request_id;
  std::string display_name;
  std::string owner;
  std::vector<std::string> endpoints;  // "host", "host/port" or port GUID; see ResolveEndpoint
  bool all_endpoints = false;
  std::optional<absl::Duration> lease;
  PartitionNum partition = {};  // 0: as ChoosePartition chooses
  std::string account = {};     // that pays; empty: the owner's default one
  Actor actor = {};
};

struct JobView {
  std::shared_ptr<const JobRecord> record;
  absl::Duration lease_left;  // zero unless active
  uint32_t tree_count = 0;
  std::vector<uint32_t> lost_ranks = {};  // ascending: whose ports have gone from the fabric
};

// FAILED_PRECONDITION: it is over.
absl::Status CheckActive(const JobRecord& job);

// --- Trees ---
struct CreateTreeArgs : TreeSpec {
  JobId job;
  std::string request_id;
  std::vector<uint32_t> ranks;  // of the job; empty: all
  Actor actor = {};
};

// A granted tree or advice, immutable. `record` is complete for both; advice has id 0.
struct TreeView {
  std::shared_ptr<const TreeRecord> record;
  std::shared_ptr<const JobRecord> job;
  RouteKind route_kind = RouteKind::kShortestPath;
  BusiestLink busiest;                   // all zero before the first sweep
  std::vector<Tradeoff> tradeoffs = {};  // of advice, if asked for
};

// Key of a google.rpc.QuotaFailure payload on RESOURCE_EXHAUSTED statuses of CreateTree and
// BatchCreateTrees: one line per full switch, "GUID LIMIT USED DESCRIPTION"; rpc turns it into the
// message.
inline constexpr char kFullSwitchesPayload[] = "coppice/full-switches";

enum class TreeChangeKind : uint8_t {
  kPresent,  // was granted when the watch began
  kSynced,   // all that were have been told; no tree
  kGranted,
  kRevised,   // planned anew: the same id with the next revision
  kRevoked,   // could not be planned anew
  kReleased,  // by its job, or with it
};

struct TreeChange {
  TreeChangeKind kind = TreeChangeKind::kGranted;
  std::string resume_token;  // empty: of kPresent
  TreeView tree;             // as it is now; of what is gone, as it was last
  std::string reason;        // kRevised, kRevoked: what was lost, in words
};

// --- Batches ---
// Communicators of one job that are planned together: every line of a process grid, or lists.
struct CreateBatchArgs : CollectiveMix {
  JobId job;
  std::string request_id;
  std::optional<ProcessGrid> grid;
  std::vector<uint32_t> rank_order;  // of a grid: job rank of each cell; empty: cell r is rank r
  std::vector<std::vector<uint32_t>> communicators;  // without a grid: job ranks, none empty
  bool largest_part = false;                         // as many as fit; false: all or none
  bool accept_type1 = false;   // for a communicator that gets no tree of type II
  bool validate_only = false;  // plan, take nothing
  bool compare = false;        // with what one by one would take; only with validate_only
  BatchGoal goal = BatchGoal::kBoth;
  Actor actor = {};
};

// A batch beside what one by one would take, and what nothing can beat.
struct BatchComparison {
  struct Totals {
    BatchTotals numbers;
    std::string most_loaded;  // that channel in words; empty: none
  };
  Totals batch, one_by_one, unreduced;
  BatchBounds bounds;
};

// A granted batch or, with ids of 0, a planned one; immutable.
struct BatchView {
  struct Tree {
    uint32_t communicator = 0;
    TreeView view;
  };
  struct Refusal {
    uint32_t communicator = 0;
    std::string why_not;
  };
  uint32_t communicators = 0;
  std::vector<Tree> trees;        // by communicator
  std::vector<Refusal> refusals;  // by communicator: those without a tree
  // Messages on the most loaded channel in one reduction of every communicator, and that channel;
  // 0 and empty if no type II tree crosses one, or for a retry after a restart.
  uint32_t most_packets = 0;
  std::string most_loaded;
  uint64_t fabric_version = 0;
  std::optional<BatchComparison> comparison;  // if it was asked for
};

// How a caller follows a batch while it is planned. Both are called on the thread that plans, often
// and with no lock held; either may be null.
struct BatchWatch {
  enum class Phase : uint8_t { kPlanning, kImproving, kHangingRanks, kGranting };
  std::function<void(Phase phase, uint32_t done, uint32_t communicators)> progress;
  std::function<bool()> is_cancelled;  // true: whoever asked has gone
  bool IsCancelled() const { return is_cancelled && is_cancelled(); }
};

// What can be judged of a tree request without a fabric: its shape, its limits, its fingerprint.

inline constexpr size_t kMaxRequestIdBytes = 128;
inline constexpr size_t kMaxNameBytes = 256;  // display names and owners

// INVALID_ARGUMENT names the field and its limit: request_id too long or like the name of a batch's
// tree; else as CheckSpec.
absl::Status CheckTreeRequest(const CreateTreeArgs& args);

// INVALID_ARGUMENT: longer than `limit`; names the field and both lengths.
absl::Status CheckLength(absl::string_view field, absl::string_view text, size_t limit);

// Of everything but the job and the request_id.
uint64_t FingerprintOf(const CreateTreeArgs& args);

// INVALID_ARGUMENT: a rank that the job does not have, or one named twice. `marks` is memory to
// reuse, one bit per rank of the job; all zero between calls. O(ranks).
absl::Status CheckRanks(const std::vector<uint32_t>& ranks, uint32_t job_ranks,
                        std::vector<uint64_t>& marks);

// Of all communicators together; a rank counts in each that it is in. A tree of so many ranks takes
// about 200 MB on its way to the store.
inline constexpr uint64_t kMaxBatchRanks = 1u << 22;
inline constexpr size_t kMaxGridAxes = 32;

// INVALID_ARGUMENT names what is wrong: request_id or sizes as CheckTreeRequest; a grid and
// communicators, or neither; a grid of no or too many axes or whose lines hold too many ranks; an
// axis out of range or named twice; a rank_order without a grid or of another length.
absl::Status CheckBatchRequest(const CreateBatchArgs& args);

// After CheckBatchRequest.
uint64_t CommunicatorCount(const CreateBatchArgs& args);

// Every line of the grid becomes a communicator, axis by axis; then each is checked: it has a rank,
// the job has all of them, none is named twice. INVALID_ARGUMENT names communicator and rank, or
// the grid and the job that is too small for it. After CheckBatchRequest. O(ranks of all).
absl::Status ListCommunicators(uint32_t job_ranks, CreateBatchArgs& args);

// Of everything but the job and the request_id; before ListCommunicators.
uint64_t FingerprintOf(const CreateBatchArgs& args);

// The trees of a batch are named after it, so that a daemon that starts anew finds them again: tree
// of communicator 17 of batch "solver" is "solver#17". Of no name nothing is derived. Requests for
// single trees cannot use such names (CheckTreeRequest).
std::string BatchTreeName(absl::string_view batch, uint32_t communicator);
struct BatchTreeNameParts {
  absl::string_view batch;  // not empty
  uint32_t communicator = 0;
};
// nullopt: not a name that BatchTreeName makes.
std::optional<BatchTreeNameParts> ParseBatchTreeName(absl::string_view name);
// The batch that a granted tree is of, and its place there; points into the record. nullopt: a
// single tree. Also one that is named "x#3" but lacks its spec: it comes from a release that kept
// none and knew no batches, and took such names for single trees.
std::optional<BatchTreeNameParts> BatchPartOf(const TreeRecord& record);

// Creation that happens once: what its callers named with a request_id, so that a retry finds the
// first try whether it is done or still under way, instead of creating twice.
//
//   (none) --Begin--> under way --Succeed--> done --Forget--> (none)
//                         |  ^ Begin, same content: the callback waits
//                         +--Fail--> (none)
//
// An empty name names nothing: it always begins anew. Not thread-safe; the lock of whoever keeps it
// guards it.

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

#endif  // COPPICE_DAEMON_MANAGER_REQUESTS_H_
