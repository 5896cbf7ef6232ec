// libcoppice for C++17: coppice.h with results that are values and handles that free themselves.
// Header only; what is linked is libcoppice, whose ABI is that of C. Throws nothing but what the
// standard library does when memory is out. examples/session.cc shows all of it.
#ifndef COPPICE_CLIENT_LIBRARY_COPPICE_HPP_
#define COPPICE_CLIENT_LIBRARY_COPPICE_HPP_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coppice.h"

namespace coppice::client {

// How a call ended.
class Status {
 public:
  Status() = default;
  Status(coppice_status code, std::string message) : code_(code), message_(std::move(message)) {}
  // Of the C call that has just returned `code` in this thread.
  static Status Of(coppice_status code) {
    return code == COPPICE_OK ? Status() : Status(code, coppice_last_error());
  }

  bool ok() const { return code_ == COPPICE_OK; }
  coppice_status code() const { return code_; }
  // Names the object and what to do; empty if ok.
  const std::string& message() const { return message_; }

 private:
  coppice_status code_ = COPPICE_OK;
  std::string message_;
};

// A value, or why there is none. A value is asked for only if ok().
template <class Value>
class Result {
 public:
  Result(Value value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  Value& operator*() & { return *value_; }
  const Value& operator*() const& { return *value_; }
  Value&& operator*() && { return *std::move(value_); }
  Value* operator->() { return &*value_; }
  const Value* operator->() const { return &*value_; }

 private:
  std::optional<Value> value_;
  Status status_;
};

// A tree as it was granted, or advised.
class Tree {
 public:
  explicit Tree(coppice_tree* tree) : tree_(tree) {}

  uint64_t id() const { return coppice_tree_id(tree_.get()); }  // 0: advice
  uint32_t revision() const { return coppice_tree_revision(tree_.get()); }
  coppice_tree_type type() const { return coppice_tree_kind(tree_.get()); }
  uint32_t width() const { return coppice_tree_width(tree_.get()); }
  uint32_t partition() const { return coppice_tree_partition(tree_.get()); }
  double predicted_us() const { return coppice_tree_predicted_us(tree_.get()); }
  const char* reason() const { return coppice_tree_reason(tree_.get()); }
  // Nodes 0..ranks-1 are the communicator's ranks, the others switches.
  uint32_t ranks() const { return coppice_tree_ranks(tree_.get()); }
  uint32_t nodes() const { return coppice_tree_nodes(tree_.get()); }
  uint32_t root() const { return coppice_tree_root(tree_.get()); }
  int32_t parent(uint32_t node) const { return coppice_tree_parents(tree_.get())[node]; }
  const int32_t* order() const { return coppice_tree_order(tree_.get()); }  // null: unknown
  // Of a forest; 0: it is one tree. Each has its share of every message.
  uint32_t trees() const { return coppice_forest_trees(tree_.get()); }
  double share(uint32_t number) const { return coppice_forest_share(tree_.get(), number); }
  int32_t parent(uint32_t rank, uint32_t number) const {
    return coppice_forest_parents(tree_.get(), number)[rank];
  }
  // How soon collectives went in earlier runs of the application that was asked for.
  std::vector<coppice_way_time> known() const {
    const coppice_way_time* const times = coppice_tree_known(tree_.get());
    return {times, times + coppice_tree_known_count(tree_.get())};
  }

 private:
  struct Free {
    void operator()(coppice_tree* tree) const { coppice_tree_free(tree); }
  };
  std::unique_ptr<coppice_tree, Free> tree_;
};

// New positions of ranks.
class Order {
 public:
  explicit Order(coppice_order* order) : order_(order) {}

  uint32_t ranks() const { return coppice_order_ranks(order_.get()); }
  uint32_t position(uint32_t rank) const { return coppice_order_positions(order_.get())[rank]; }
  // The present one has 1; 0: not known.
  double score() const { return coppice_order_score(order_.get()); }
  const char* reason() const { return coppice_order_reason(order_.get()); }

 private:
  struct Free {
    void operator()(coppice_order* order) const { coppice_order_free(order); }
  };
  std::unique_ptr<coppice_order, Free> order_;
};

struct JobOptions {
  std::vector<std::string> endpoints;  // of each rank
  std::string display_name;
  std::string request_id;  // empty: one is made
  uint32_t lease_ms = 0;   // 0: the daemon's
  uint32_t partition = 0;  // 0: the one that all endpoints share
  bool hold = false;       // the agent keeps it for as long as this process lives
};

struct TreeOptions {
  uint64_t job = 0;
  std::vector<uint32_t> ranks;  // none: all of the job
  std::string request_id;       // empty: one is made
  coppice_operation operation = COPPICE_OPERATION_ALLREDUCE;
  uint64_t bytes = 0;  // 0: 8
  coppice_tree_type type = COPPICE_TREE_AUTO;
  uint32_t width = 0;
  bool advise = false;      // take nothing
  bool carried = false;     // type II only over switches that carry data
  uint32_t max_trees = 0;   // above 1: a forest of at most so many, if that is sooner
  std::string application;  // whose earlier runs' times come with the tree; empty: nobody's
};

// Who sends how much to whom: rank from[i] sends bytes[i] to rank to[i].
struct Pattern {
  uint32_t ranks = 0;
  std::vector<uint32_t> from, to;
  std::vector<double> bytes;
  std::vector<double> messages;  // none, or one of each pair
};

struct MapOptions {
  uint64_t job = 0;
  std::vector<std::string> hosts;  // none: the job's
  uint32_t ranks_per_host = 0;
  Pattern pattern;
  std::string pattern_name;  // a stored one instead
  std::string algorithm;     // empty: auto
  uint32_t budget_ms = 0;    // 0: 1 s
  uint64_t seed = 0;
};

struct Change {
  coppice_change kind;
  uint64_t tree;
  uint32_t revision;
  std::string reason;
};

// One process' way to the agent of its node. Thread-safe, but for moves.
class Client {
 public:
  Client(Client&&) = default;
  // Closes the client that was here, with its watches.
  Client& operator=(Client&& other) noexcept {
    if (this == &other) return *this;
    client_ = std::move(other.client_);  // first: it still calls the listeners
    listeners_ = std::move(other.listeners_);
    return *this;
  }

  // `agent`: empty: $COPPICE_AGENT, else the usual socket. Connects at the first call.
  static Result<Client> Open(const std::string& agent = "", uint32_t timeout_ms = 0) {
    coppice_client* client = nullptr;
    const coppice_status code =
        coppice_open(agent.empty() ? nullptr : agent.c_str(), timeout_ms, &client);
    if (code != COPPICE_OK) return Status::Of(code);
    return Client(client);
  }

  Result<coppice_capabilities> Query() {
    coppice_capabilities answer = COPPICE_INIT(answer);
    const coppice_status code = coppice_query(client_.get(), &answer);
    if (code != COPPICE_OK) return Status::Of(code);
    return answer;
  }

  Result<uint64_t> RegisterJob(const JobOptions& options) {
    const std::vector<const char*> endpoints = Texts(options.endpoints);
    coppice_job_request request = COPPICE_INIT(request);
    request.request_id = Text(options.request_id);
    request.display_name = Text(options.display_name);
    request.endpoints = endpoints.data();
    request.endpoint_count = static_cast<uint32_t>(endpoints.size());
    request.lease_ms = options.lease_ms;
    request.hold = options.hold ? 1 : 0;
    request.partition = options.partition;
    uint64_t job = 0;
    const coppice_status code = coppice_job_register(client_.get(), &request, &job);
    if (code != COPPICE_OK) return Status::Of(code);
    return job;
  }
  Status EndJob(uint64_t job) { return Status::Of(coppice_job_end(client_.get(), job)); }

  Result<Tree> CreateTree(const TreeOptions& options) {
    coppice_tree_request request = COPPICE_INIT(request);
    request.job = options.job;
    request.request_id = Text(options.request_id);
    request.ranks = options.ranks.empty() ? nullptr : options.ranks.data();
    request.rank_count = static_cast<uint32_t>(options.ranks.size());
    request.operation = options.operation;
    request.bytes = options.bytes;
    request.type = options.type;
    request.width = options.width;
    request.advise = options.advise ? 1 : 0;
    request.carried = options.carried ? 1 : 0;
    request.max_trees = options.max_trees;
    request.application = Text(options.application);
    coppice_tree* tree = nullptr;
    const coppice_status code = coppice_tree_create(client_.get(), &request, &tree);
    if (code != COPPICE_OK) return Status::Of(code);
    return Tree(tree);
  }
  Result<Tree> GetTree(uint64_t id) {
    coppice_tree* tree = nullptr;
    const coppice_status code = coppice_tree_get(client_.get(), id, &tree);
    if (code != COPPICE_OK) return Status::Of(code);
    return Tree(tree);
  }
  Status ReleaseTree(uint64_t id) { return Status::Of(coppice_tree_release(client_.get(), id)); }
  // With how soon its collectives went, for the application's next runs.
  Status ReleaseTree(uint64_t id, const std::string& application,
                     const std::vector<coppice_way_time>& times) {
    return Status::Of(coppice_tree_release_measured(
        client_.get(), id, application.c_str(), times.data(), static_cast<uint32_t>(times.size())));
  }

  // `listener` is called on a thread of the library until the client is destroyed or assigned to.
  // It must not throw, and do neither of these.
  Status WatchTrees(uint64_t job, std::function<void(const Change&)> listener) {
    Listener* const kept = listeners_->Add(std::move(listener));
    const Status status = Status::Of(coppice_watch_trees(client_.get(), job, &Tell, kept));
    if (!status.ok()) kept->is_over = true;
    kept->has_begun = true;
    return status;
  }

  Result<Order> Map(const MapOptions& options) {
    const std::vector<const char*> hosts = Texts(options.hosts);
    coppice_map_request request = COPPICE_INIT(request);
    request.job = options.job;
    request.hosts = hosts.empty() ? nullptr : hosts.data();
    request.host_count = static_cast<uint32_t>(hosts.size());
    request.ranks_per_host = options.ranks_per_host;
    request.pattern_name = Text(options.pattern_name);
    request.algorithm = Text(options.algorithm);
    request.budget_ms = options.budget_ms;
    request.seed = options.seed;
    if (Status status = Fill(options.pattern, request); !status.ok()) return status;
    coppice_order* order = nullptr;
    const coppice_status code = coppice_map(client_.get(), &request, &order);
    if (code != COPPICE_OK) return Status::Of(code);
    return Order(order);
  }
  Status PutPattern(const std::string& name, const Pattern& pattern) {
    coppice_pattern request = COPPICE_INIT(request);
    request.name = name.c_str();
    if (Status status = Fill(pattern, request); !status.ok()) return status;
    return Status::Of(coppice_pattern_put(client_.get(), &request));
  }

 private:
  struct Listener {
    explicit Listener(std::function<void(const Change&)> called) : function(std::move(called)) {}

    const std::function<void(const Change&)> function;
    // Nothing more is told; WatchTrees has returned. Each is set by the last who goes there.
    std::atomic<bool> is_over{false}, has_begun{false};
  };
  // Listeners that watches know by their addresses. Thread-safe.
  class Listeners {
   public:
    Listener* Add(std::function<void(const Change&)> function) {
      const std::lock_guard<std::mutex> lock(mutex_);
      list_.remove_if(
          [](const Listener& listener) { return listener.is_over && listener.has_begun; });
      return &list_.emplace_back(std::move(function));
    }

   private:
    std::mutex mutex_;
    std::list<Listener> list_;
  };
  struct Close {
    void operator()(coppice_client* client) const { coppice_close(client); }
  };

  explicit Client(coppice_client* client)
      : listeners_(std::make_unique<Listeners>()), client_(client) {}

  static const char* Text(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
  static std::vector<const char*> Texts(const std::vector<std::string>& list) {
    std::vector<const char*> texts;
    for (const std::string& text : list) texts.push_back(text.c_str());
    return texts;
  }
  template <class Request>
  static Status Fill(const Pattern& pattern, Request& request) {
    const size_t pairs = pattern.from.size();
    if (pattern.to.size() != pairs || pattern.bytes.size() != pairs ||
        (!pattern.messages.empty() && pattern.messages.size() != pairs)) {
      return Status(COPPICE_INVALID_ARGUMENT, "pattern: its lists must be of the same length");
    }
    request.rank_count = pattern.ranks;
    request.pair_count = pairs;
    request.from = pattern.from.data();
    request.to = pattern.to.data();
    request.bytes = pattern.bytes.data();
    request.messages = pattern.messages.empty() ? nullptr : pattern.messages.data();
    return Status();
  }
  static void Tell(void* context, coppice_change kind, uint64_t tree, uint32_t revision,
                   const char* reason) noexcept {
    auto* const listener = static_cast<Listener*>(context);
    listener->function(Change{kind, tree, revision, reason});
    if (kind == COPPICE_CHANGE_LOST || kind == COPPICE_CHANGE_OVER) listener->is_over = true;
  }

  // Outlive the client, which calls them.
  std::unique_ptr<Listeners> listeners_;
  std::unique_ptr<coppice_client, Close> client_;
};

}  // namespace coppice::client

#endif  // COPPICE_CLIENT_LIBRARY_COPPICE_HPP_
