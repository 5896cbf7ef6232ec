#include "daemon/manager/change_feed.h"

#include <random>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

// What the ring may keep alive of records, about, for whoever is slow.
constexpr size_t kMaxKeptBytes = size_t{128} << 20;
// Changes that one look passes over, so that the lock is never held for long.
constexpr uint64_t kMaxLookedAt = 4096;

size_t BytesOf(const TreeRecord& record) {
  size_t alternatives = 0;
  for (const Alternative& other : record.alternatives) {
    alternatives += sizeof(Alternative) + other.why_not.size();
  }
  return sizeof(TreeRecord) + record.reason.size() + alternatives +
         sizeof(uint32_t) * (record.ranks.size() + 3 * record.parents.size()) +
         sizeof(uint64_t) * (record.physical.size() + record.links.size()) +
         sizeof(TreeSwitchRecord) * record.switches.size();
}

}  // namespace

ChangeFeed::ChangeFeed()
    : run_([] {
        std::random_device random;
        return uint64_t{random()} << 32 | random();
      }()) {}

void ChangeFeed::Push(TreeChangeKind kind, TreeView tree, std::string reason) {
  Entry entry;
  entry.kind = kind;
  entry.job = tree.record->job;
  entry.bytes = BytesOf(*tree.record);
  entry.tree = std::move(tree);
  entry.reason = std::move(reason);
  PushEntry(std::move(entry));
}

void ChangeFeed::PushEndOf(JobId job) {
  Entry entry;
  entry.is_end = true;
  entry.job = job;
  PushEntry(std::move(entry));
}

// Its ranks, which may be a million, stay as long as any entry of it does.
void ChangeFeed::CountJob(const JobRecord* job, bool enters) {
  if (job == nullptr) return;
  const size_t bytes = sizeof(JobRecord) + sizeof(Guid) * job->endpoints.size();
  if (enters) {
    if (++job_uses_[job] == 1) bytes_ += bytes;
  } else if (--job_uses_[job] == 0) {
    job_uses_.erase(job);
    bytes_ -= bytes;
  }
}

void ChangeFeed::DropOldest(std::vector<Entry>& dropped) {
  bytes_ -= entries_.front().bytes;
  CountJob(entries_.front().tree.job.get(), false);
  dropped.push_back(std::move(entries_.front()));
  entries_.pop_front();
  ++first_;
}

// Records of granted trees and of active jobs are the tables', too: dropping a change frees none.
void ChangeFeed::TrimAged(std::vector<Entry>& dropped) {
  absl::flat_hash_map<const TreeRecord*, long> uses;  // entries of each
  for (const Entry& entry : entries_) ++uses[entry.tree.record.get()];
  const auto is_ours = [&](const Entry& entry) {
    const auto& record = entry.tree.record;
    return record != nullptr && record.use_count() == uses[record.get()];
  };
  const auto bytes_of_job = [](const JobRecord& job) {
    return sizeof(JobRecord) + sizeof(Guid) * job.endpoints.size();
  };
  size_t bytes = 0;
  absl::flat_hash_set<const JobRecord*> jobs;  // that are ours
  for (uint64_t number = first_; number < mark_; ++number) {
    const Entry& entry = entries_[number - first_];
    if (is_ours(entry)) bytes += entry.bytes;
    const auto& job = entry.tree.job;
    const bool is_last =
        job != nullptr && job.use_count() == static_cast<long>(job_uses_[job.get()]);
    if (is_last && jobs.insert(job.get()).second) bytes += bytes_of_job(*job);
  }
  while (first_ < mark_ && bytes > kMaxAgedBytes) {
    const Entry& oldest = entries_.front();
    if (is_ours(oldest)) bytes -= oldest.bytes;
    const JobRecord* const job = oldest.tree.job.get();
    if (job != nullptr && job_uses_[job] == 1 && jobs.contains(job)) bytes -= bytes_of_job(*job);
    // `dropped` has the record from here on, as the entry did: uses stay right.
    DropOldest(dropped);
  }
}

void ChangeFeed::Age(absl::Duration now) {
  std::vector<Entry> dropped;
  std::lock_guard lock(mu_);
  if (now - marked_ < kAge) return;
  if (bytes_ > kMaxAgedBytes) TrimAged(dropped);
  mark_ = first_ + entries_.size();
  marked_ = now;
}

void ChangeFeed::PushEntry(Entry entry) {
  std::vector<Entry> dropped;
  std::lock_guard lock(mu_);
  const JobId job = entry.job;
  bytes_ += entry.bytes;
  CountJob(entry.tree.job.get(), true);
  entries_.push_back(std::move(entry));
  while (entries_.size() > 1 && (entries_.size() > most_changes_ || bytes_ > kMaxKeptBytes)) {
    DropOldest(dropped);
  }
  WakeSleepers(job, first_ + entries_.size() - 1);
}

void ChangeFeed::WakeSleepers(JobId job, uint64_t number) {
  const auto wake = [number](std::vector<TreeWatch*>& sleepers) {
    for (TreeWatch* watcher : std::exchange(sleepers, {})) {
      watcher->sleeps_ = false;
      watcher->at_ = number;  // all before it was for others
      watcher->wake_();
    }
  };
  if (!sleepers_.empty()) wake(sleepers_);
  if (job_sleepers_.empty()) return;
  const auto found = job_sleepers_.find(job);
  if (found == job_sleepers_.end()) return;
  wake(found->second);
  job_sleepers_.erase(found);
}

void ChangeFeed::Unlist(TreeWatch* watcher) {
  if (!watcher->sleeps_) return;
  if (watcher->job_ == JobId()) {
    std::erase(sleepers_, watcher);
    return;
  }
  const auto found = job_sleepers_.find(watcher->job_);
  std::erase(found->second, watcher);
  if (found->second.empty()) job_sleepers_.erase(found);
}

uint64_t ChangeFeed::next() const {
  std::lock_guard lock(mu_);
  return first_ + entries_.size();
}

PresentTrees ChangeFeed::Present(absl::FunctionRef<std::vector<TreeView>()> list) {
  const uint64_t before = next();
  PresentTrees present = present_.lock();
  if (present != nullptr && present_before_ == before) return present;
  present = std::make_shared<const std::vector<TreeView>>(list());
  present_ = present;
  present_before_ = before;
  return present;
}

std::string ChangeFeed::TokenOf(uint64_t number) const {
  return absl::StrCat(absl::Hex(run_, absl::kZeroPad16), "-", number);
}

absl::StatusOr<uint64_t> ChangeFeed::ParseToken(absl::string_view token) const {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(token, absl::MaxSplits('-', 1));
  uint64_t run = 0, number = 0;
  if (parts.first.size() != 16 || !absl::SimpleHexAtoi(parts.first, &run) ||
      !absl::SimpleAtoi(parts.second, &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("resume_token: \"", token.substr(0, 64),
                     "\" is none that this service gave; watch without one"));
  }
  if (run != run_ || number > next()) {
    return absl::OutOfRangeError(
        "resume_token: it is of an earlier run of the daemon; watch again without one");
  }
  return number;
}

TreeWatch::~TreeWatch() {
  std::lock_guard lock(feed_->mu_);
  feed_->Unlist(this);
}

absl::StatusOr<std::vector<TreeChange>> TreeWatch::Next(size_t limit) {
  std::vector<TreeChange> changes;
  TakePresent(limit, changes);
  while (changes.empty() && !over_) {
    std::lock_guard lock(feed_->mu_);
    if (at_ < feed_->first_) return FellBehind();
    if (TakeChanges(limit, changes)) break;
  }
  return changes;
}

void TreeWatch::TakePresent(size_t limit, std::vector<TreeChange>& changes) {
  if (is_synced_) return;
  const size_t count = present_ == nullptr ? 0 : present_->size();
  for (; told_ < count && changes.size() < limit; ++told_) {
    changes.push_back({TreeChangeKind::kPresent, "", (*present_)[told_], ""});
  }
  if (told_ < count || changes.size() >= limit) return;
  present_ = nullptr;
  is_synced_ = true;
  std::lock_guard lock(feed_->mu_);
  changes.push_back({TreeChangeKind::kSynced, feed_->TokenOf(at_), {}, ""});
}

bool TreeWatch::TakeChanges(size_t limit, std::vector<TreeChange>& changes) {
  const uint64_t end = std::min(feed_->first_ + feed_->entries_.size(), until_);
  const uint64_t stop = std::min(end, at_ + kMaxLookedAt);
  for (; at_ < stop && changes.size() < limit && !over_; ++at_) {
    const ChangeFeed::Entry& entry = feed_->entries_[at_ - feed_->first_];
    if (job_ != JobId() && entry.job != job_) continue;
    if (!entry.is_end) {
      changes.push_back({entry.kind, feed_->TokenOf(at_ + 1), entry.tree, entry.reason});
    } else if (job_ != JobId()) {
      over_ = true;
    }
  }
  if (at_ >= until_) over_ = true;
  if (over_ || !changes.empty()) return true;
  if (at_ < end) return false;
  sleeps_ = true;
  (job_ == JobId() ? feed_->sleepers_ : feed_->job_sleepers_[job_]).push_back(this);
  return true;
}

absl::Status TreeWatch::FellBehind() const {
  return absl::OutOfRangeError(absl::StrCat(
      "the changes after ", feed_->TokenOf(at_), " are not kept any more: only the last ",
      feed_->entries_.size(), " are; watch again without a resume token"));
}

}  // namespace coppice
