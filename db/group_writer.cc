#include "db/group_writer.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

namespace coppice {
namespace {

bool IsUnfinished(const PendingMutation& pending) {
  return pending.status.ok() && pending.step + 1 < pending.steps;
}

}  // namespace

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

void GroupWriter::Submit(Mutation mutation, Store::Done done, size_t steps) {
  bool was_empty;
  {
    std::lock_guard lock(mutex_);
    was_empty = queue_.empty();
    ++statistics_.queued;
    queue_.push_back({std::move(mutation), std::move(done), steps, 0, absl::OkStatus()});
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
  const auto finished = static_cast<size_t>(
      group.size() - static_cast<size_t>(std::count_if(group.begin(), group.end(), IsUnfinished)));
  std::lock_guard lock(mutex_);
  statistics_.queued -= finished;
  statistics_.mutations += finished;
  ++(committed.ok() ? statistics_.commits : statistics_.failed_commits);
  if (!committed.ok()) statistics_.refused += finished;
  statistics_.fault = std::string(committed.message());
  ++statistics_.commit_times[static_cast<size_t>(bucket)];
  statistics_.commit_time += took;
}

void GroupWriter::AddStep(std::vector<PendingMutation>& batch) {
  const auto longs = std::stable_partition(batch.begin(), batch.end(),
                                           [](const PendingMutation& p) { return p.steps == 1; });
  std::move(longs, batch.end(), std::back_inserter(long_));
  batch.erase(longs, batch.end());
  if (long_.empty()) return;
  batch.push_back(std::move(long_.front()));
  long_.pop_front();
}

void GroupWriter::Run() {
  std::vector<PendingMutation> batch;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty() || !long_.empty(); });
      if (queue_.empty() && long_.empty()) return;
      batch.swap(queue_);
    }
    AddStep(batch);
    for (size_t begin = 0; begin < batch.size(); begin += kMaxGroup) {
      absl::Span<PendingMutation> group =
          absl::MakeSpan(batch).subspan(begin, std::min(kMaxGroup, batch.size() - begin));
      CommitAndCount(group);
      for (PendingMutation& pending : group) {
        if (IsUnfinished(pending)) {
          ++pending.step;
          long_.push_front(std::move(pending));
          continue;
        }
        // The callback goes before the next answer: what it holds is released here, too.
        Store::Done done = std::move(pending.done);
        std::move(done)(std::move(pending.status));
      }
    }
    batch.clear();
  }
}

}  // namespace coppice
