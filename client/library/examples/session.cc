// A whole session with libcoppice in C++17: a job, a watch, a tree, and a better order of the
// ranks.
//
//   c++ -std=c++17 session.cc -lcoppice && ./a.out node1 node1 node2 node2
//
// Arguments: the host of each rank. The agent is $COPPICE_AGENT, else the usual one. Exit status 0:
// all went well; 1: something failed, and stderr says what.
#include <condition_variable>
#include <coppice/coppice.hpp>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

using coppice::client::Change;
using coppice::client::Client;
using coppice::client::Status;

// What the watch has told, for the thread that waits for it.
class Seen {
 public:
  void Take(const Change& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::cout << "watch: change " << change.kind << " of tree " << change.tree << ", revision "
              << change.revision << " " << change.reason << "\n";
    if (change.kind == COPPICE_CHANGE_RELEASED) released_.insert(change.tree);
    changed_.notify_all();
  }
  void AwaitRelease(uint64_t tree) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return released_.count(tree) > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<uint64_t> released_;
};

Status UseTree(Client& client, uint64_t job, Seen& seen) {
  coppice::client::TreeOptions options;
  options.job = job;
  options.bytes = 64;
  const auto tree = client.CreateTree(options);
  if (!tree.ok()) return tree.status();
  std::cout << "tree " << tree->id() << " of type " << tree->type() << " for " << tree->ranks()
            << " ranks, " << tree->predicted_us() << " us: " << tree->reason() << "\n";
  for (uint32_t node = 0; node < tree->nodes(); ++node) {
    std::cout << "  node " << node << " hangs on " << tree->parent(node) << "\n";
  }
  const Status released = client.ReleaseTree(tree->id());
  if (released.ok()) seen.AwaitRelease(tree->id());
  return released;
}

// Rank i talks to the rank half the job away, which a better order puts beside it.
Status FindOrder(Client& client, uint64_t job, uint32_t ranks) {
  coppice::client::MapOptions options;
  options.job = job;
  options.budget_ms = 200;
  options.pattern.ranks = ranks;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    options.pattern.from.push_back(rank);
    options.pattern.to.push_back((rank + ranks / 2) % ranks);
    options.pattern.bytes.push_back(1e6);
  }
  const auto order = client.Map(options);
  if (!order.ok()) return order.status();
  std::cout << "order of score " << order->score() << ": " << order->reason() << "\n";
  for (uint32_t rank = 0; rank < order->ranks(); ++rank) {
    std::cout << "  rank " << rank << " to position " << order->position(rank) << "\n";
  }
  return Status();
}

Status Run(Client& client, const std::vector<std::string>& endpoints, Seen& seen) {
  const auto node = client.Query();
  if (!node.ok()) return node.status();
  std::cout << "agent " << node->agent_version << " of " << node->host << " with " << node->cores
            << " cores\n";
  coppice::client::JobOptions options;
  options.display_name = "session.cc";
  options.endpoints = endpoints;
  options.hold = true;  // should this process die, the agent ends the job
  const auto job = client.RegisterJob(options);
  if (!job.ok()) return job.status();
  std::cout << "job " << *job << "\n";
  Status status = client.WatchTrees(*job, [&seen](const Change& change) { seen.Take(change); });
  if (status.ok()) status = UseTree(client, *job, seen);
  if (status.ok()) status = FindOrder(client, *job, static_cast<uint32_t>(endpoints.size()));
  const Status ended = client.EndJob(*job);
  return status.ok() ? ended : status;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> endpoints(argv + 1, argv + argc);
  if (endpoints.empty()) {
    std::cerr << "usage: " << argv[0] << " HOST-OF-RANK-0 HOST-OF-RANK-1 ...\n";
    return 2;
  }
  Seen seen;  // outlives the client, which calls it
  auto client = Client::Open();
  const Status status = client.ok() ? Run(*client, endpoints, seen) : client.status();
  if (status.ok()) return 0;
  std::cerr << coppice_status_name(status.code()) << ": " << status.message() << "\n";
  return 1;
}
