#include "db/group_writer.h"

#include <algorithm>
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
    queue_.push_back({std::move(mutation), std::move(done), absl::OkStatus()});
  }
  if (was_empty) wake_.notify_one();
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
      commit_(group);
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
