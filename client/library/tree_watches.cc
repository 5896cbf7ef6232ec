#include "client/library/tree_watches.h"

#include <algorithm>
#include <utility>

#include "client/library/client.h"

namespace coppice {

Outcome TreeWatches::CheckOpen() const {
  if (!is_ended_) return {};
  return {COPPICE_FAILED_PRECONDITION, "client: it is being closed; watch with another one"};
}

Outcome TreeWatches::Reap() {
  const std::lock_guard<std::mutex> lock(mu_);
  const auto is_open = [](const std::unique_ptr<TreeWatch>& watch) { return !watch->is_over(); };
  const auto middle = std::partition(watches_.begin(), watches_.end(), is_open);
  // Their threads have nothing left to do but to return.
  watches_.erase(middle, watches_.end());
  return CheckOpen();
}

Outcome TreeWatches::Add(std::unique_ptr<TreeWatch> watch) {
  const std::lock_guard<std::mutex> lock(mu_);
  Outcome outcome = CheckOpen();
  if (outcome.ok()) watches_.push_back(std::move(watch));
  return outcome;
}

void TreeWatches::End() {
  List all;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    is_ended_ = true;
    all.swap(watches_);
  }
  all.clear();
}

}  // namespace coppice

coppice_status coppice_watch_trees(coppice_client* client, uint64_t job,
                                   coppice_watch_function function, void* context) {
  return coppice::Run([&]() -> coppice::Outcome {
    coppice::Outcome outcome = coppice::Check(client);
    if (!outcome.ok()) return outcome;
    if (function == nullptr) return coppice::Wrong("function: a null pointer was given");
    outcome = client->watches.Reap();
    if (!outcome.ok()) return outcome;
    std::unique_ptr<coppice::TreeWatch> watch;
    outcome = coppice::TreeWatch::Start(client->path, job, {function, context}, client->timeout_ms,
                                        watch);
    return outcome.ok() ? client->watches.Add(std::move(watch)) : outcome;
  });
}
