#include "db/group_writer.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace coppice {

GroupWriter::GroupWriter(Commit commit) : commit_(std::move(commit)) {
  thread_ = std::thread([this] { Run(); });
}

GroupWriter::~GroupWriter() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void GroupWriter::Submit(Mutation mutation, Store::Done done) {
  bool was_empty;
  {
    std::lock_guard lock(mutex_);
    was_empty = queue_.empty();
    ++statistics_.queued;
    queue_.push_back({std::move(mutation), std::move(done), absl::OkStatus()});
  }
  if (was_empty) wake_.notify_one();
}

StoreStatistics GroupWriter::Statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

void GroupWriter::CommitAndCount(absl::Span<PendingMutation> group) {
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status committed = commit_(group);
  const absl::Duration took = absl::FromChrono(std::chrono::steady_clock::now() - begin);
  constexpr auto& kBounds = StoreStatistics::kBounds;
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), took) - kBounds.begin();
  std::lock_guard lock(mutex_);
  statistics_.queued -= group.size();
  statistics_.mutations += group.size();
  ++(committed.ok() ? statistics_.commits : statistics_.failed_commits);
  if (!committed.ok()) statistics_.refused += group.size();
  statistics_.fault = std::string(committed.message());
  ++statistics_.commit_times[static_cast<size_t>(bucket)];
  statistics_.commit_time += took;
}

void GroupWriter::Run() {
  std::vector<PendingMutation> batch;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      batch.swap(queue_);
    }
    for (size_t begin = 0; begin < batch.size(); begin += kMaxGroup) {
      absl::Span<PendingMutation> group =
          absl::MakeSpan(batch).subspan(begin, std::min(kMaxGroup, batch.size() - begin));
      CommitAndCount(group);
      for (PendingMutation& pending : group) {
        // The callback goes before the next answer: what it holds is released here, too.
        Store::Done done = std::move(pending.done);
        std::move(done)(std::move(pending.status));
      }
    }
    batch.clear();
  }
}

}  // namespace coppice
