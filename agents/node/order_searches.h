// The searches for orders of ranks that the agent carries out for the node's processes, before
// their jobs' programs start (SearchOrder of local.proto).
//
//   Begin --> the daemon: is the job the caller's? --> its hosts --> the command runs --> done
//      |                                    |                            |
//      +--- refused: done                   +--- limit, Cancel, Abandon -+--> it is ended --> done
//
// A search counts until nothing is left of it, also when nobody waits for it any more.
#ifndef COPPICE_AGENTS_NODE_ORDER_SEARCHES_H_
#define COPPICE_AGENTS_NODE_ORDER_SEARCHES_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agents/node/daemon_link.h"
#include "agents/node/event_loop.h"
#include "agents/node/local_caller.h"
#include "agents/node/search_process.h"
#include "agents/node/search_settings.h"
#include "agents/node/settings.h"
#include "client/connection.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

// Belongs to the loop.
class OrderSearches final {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // Settings that were checked. Loop and link outlive it.
  OrderSearches(EventLoop* loop, DaemonLink* link, const Settings& settings);
  // Ends all of them, and tells nobody.
  ~OrderSearches();

  // `timeout`: how long the caller waits; 0: for ever. `done` is called once, on the loop, perhaps
  // before this returns. Errors as SearchOrderRequest's. The number of the search.
  uint64_t Begin(const LocalCaller& caller, const v1::SearchOrderRequest& request,
                 std::chrono::milliseconds timeout, Done done);
  // Ends a search that has not ended: CANCELLED.
  void Cancel(uint64_t number);
  // The same; `done` is not called.
  void Abandon(uint64_t number);

  size_t size() const { return searches_.size(); }

 private:
  struct Search {
    LocalCaller caller;
    v1::SearchOrderRequest request;
    Done done;
    EventLoop::Timer limit;
    std::shared_ptr<ForwardedCall> question;  // that the daemon is asked just now
    std::string command;                      // as it is told
    std::unique_ptr<SearchProcess> process;
    absl::Status verdict;  // of who ended it
  };

  absl::Status Admit(const LocalCaller& caller, const std::string& job) const;
  void Ask(uint64_t number, const char* method, const std::string& request,
           void (OrderSearches::*answered)(uint64_t, const grpc::Status&, const std::string&));
  void OnOwned(uint64_t number, const grpc::Status& status, const std::string& message);
  void OnHosts(uint64_t number, const grpc::Status& status, const std::string& message);
  void Start(uint64_t number, const v1::Job& job);
  std::vector<std::string> Environment(bool is_own) const;
  void OnExit(uint64_t number, int wait_status, const std::string& said);
  void EndAs(uint64_t number, const absl::Status& verdict);
  void Finish(uint64_t number, const absl::Status& status);

  EventLoop* const loop_;
  DaemonLink* const link_;
  const SearchSettings settings_;
  const TlsOptions tls_;  // for searches of the agent's own user
  const std::string socket_;
  const std::vector<std::string> guard_;  // what starts it
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  uint64_t last_ = 0;
  std::map<uint64_t, Search> searches_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_ORDER_SEARCHES_H_
