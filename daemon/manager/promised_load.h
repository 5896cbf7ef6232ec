// The load that live trees promise: while a tree's job runs its collective back to back, so many
// bytes a second cross each channel; jobs also compute, so a configured share of that is promised.
//
//     u(c) = duty * bytes(c) / total_us / capacity(c)          bytes: daemon/tree/link_use.h
//
// All trees of a job together promise a channel no more than the job's duty; to a plan for the job
// itself its own promises count as a tenth: enough that of equal ways its trees take different
// ones.
//
// Promises are whole numbers, so that what trees give back leaves nothing behind. Sums go to the
// planners as a LinkLoad, together with the measured load. Not thread-safe; the manager's lock
// guards it. Knows no trees: who promises what is kept with the tree.
#ifndef COPPICE_DAEMON_MANAGER_PROMISED_LOAD_H_
#define COPPICE_DAEMON_MANAGER_PROMISED_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/link_use.h"
#include "db/store.h"

namespace coppice {

// One tree's share of one channel.
struct ChannelPromise {
  ChannelIndex channel;
  uint32_t parts = 0;  // of kWholeChannel
  friend bool operator==(const ChannelPromise&, const ChannelPromise&) = default;
};
inline constexpr double kWholeChannel = 4294967296.0;

// By channel, without those on which nothing is promised. A tree of one rank promises nothing.
std::vector<ChannelPromise> PromiseOf(const Snapshot& snapshot, const CostProfile& profile,
                                      double duty, const MessageBytes& bytes, double total_us,
                                      absl::Span<const ChannelUse> uses);

class PromisedLoad {
 public:
  // Forgets all promises; from now on speaks of this snapshot's channels and adds to its load.
  // O(channels).
  void Rebase(const Snapshot& snapshot);
  // Other measured load of the same channels, or none; the promises stay. O(pages).
  void SetMeasured(std::shared_ptr<const LinkLoad> measured);
  // Of one tree of that job, by channel of the snapshot. Of all the job's trees a channel is
  // promised `duty` at most, a share. Remove takes back what Add was given. O(promise log channels
  // of the job), and O(channels of the job) where channels are new to it.
  void Add(JobId job, absl::Span<const ChannelPromise> promise, double duty);
  void Remove(JobId job, absl::Span<const ChannelPromise> promise, double duty);

  // Measured and promised load as of now, at most 1. Never null; empty if there is neither. The
  // same until a promise comes or goes; then O(pages + channels of the pages that changed).
  std::shared_ptr<const LinkLoad> Current();
  // The same to a plan for that job. Current() itself if what the job promises is slight; else
  // O(pages + channels of the pages on which it promises).
  std::shared_ptr<const LinkLoad> CurrentFor(JobId job);
  // Promised on a channel, in parts of kWholeChannel.
  uint64_t parts(ChannelIndex c) const { return parts_[c.value()]; }

 private:
  // Of one job on one channel.
  struct Share {
    ChannelIndex channel;
    uint64_t parts = 0;    // of all its trees
    uint64_t counted = 0;  // of these, in parts_
  };
  using Shares = std::vector<Share>;
  struct Account {
    Shares shares;  // by channel; some may be of nothing
    size_t trees = 0;
    uint64_t greatest = 0;  // counted on no channel was ever more
  };

  template <class Change>
  void Book(JobId job, absl::Span<const ChannelPromise> promise, double duty, Change change);
  static Shares::iterator FindShare(Shares::iterator at, Shares::iterator end,
                                    ChannelIndex channel);
  static void MakeRoom(Account& account, absl::Span<const ChannelPromise> promise);
  void Move(ChannelIndex channel, uint64_t difference);
  void MarkStale(uint32_t page);

  std::shared_ptr<const LinkLoad> measured_ = std::make_shared<const LinkLoad>();
  std::shared_ptr<const LinkLoad> current_ = measured_;
  absl::flat_hash_map<JobId, Account> accounts_;  // of jobs with trees
  std::vector<uint64_t> parts_;                   // [channel] counted of all jobs
  size_t promised_ = 0;                           // channels on which something is promised
  std::vector<uint32_t> promised_in_;             // [page] those of them
  std::vector<uint32_t> stale_;                   // pages of current_, each once
  std::vector<bool> is_stale_;                    // [page]
};

// What one granted tree puts on the channels of one published fabric. Found with the plan when it
// is granted, and from its record for every fabric afterwards; both ways give the same.
struct TreePromise {
  uint64_t fabric_version = 0;  // whose channels these are; 0: not found yet
  std::vector<ChannelPromise> channels;
  BusiestLink busiest;
};

// From the channels that the plan's messages cross. `record` has operation, sizes and total_us.
TreePromise PromiseOfPlan(const Snapshot& snapshot, const CostProfile& profile, double duty,
                          const TreeRecord& record, absl::Span<const ChannelUse> uses);

// From the record alone. Edges of which an end or the route is gone promise nothing. `link_ids` is
// [link]; it tells which of several cables a tree over shortest paths takes. O(nodes + links on the
// edges' routes).
TreePromise PromiseOfRecord(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                            const CostProfile& profile, double duty, const JobRecord& job,
                            const TreeRecord& record, LinkUseCounter& counter);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PROMISED_LOAD_H_
