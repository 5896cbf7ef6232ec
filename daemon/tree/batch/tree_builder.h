// One communicator's trees in a batch: a candidate (the physical tree to a root over switches, and
// the fewest of its switches that must serve, given the entries that are left), and the best one
// that it can have right now.
#ifndef COPPICE_DAEMON_TREE_BATCH_TREE_BUILDER_H_
#define COPPICE_DAEMON_TREE_BATCH_TREE_BUILDER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/state.h"

namespace coppice {

// Among neighbours that are nearer to the root, which one a switch sends to.
enum class Steering : uint8_t {
  kSpread,  // over the least loaded channel: best where the root serves alone
  kGather,  // to the one that collects most: one serving switch then absorbs most
  kFill,    // likewise until it has as many packets as it can serve, then to the next
  kVia,     // as many as one can serve by way of each neighbour of the root that can serve
  kRefine,  // fill those that can serve, spread the rest over all others
};

// Not thread-safe: reuses its arrays from one tree to the next.
class BatchTreeBuilder final {
 public:
  // `free_entries` is [switch]; it and `loads` are read whenever a tree is built.
  BatchTreeBuilder(const Snapshot& snapshot, absl::Span<const int32_t> free_entries,
                   const LinkLoads& loads);

  // Fills in `tree.physical`. `degrees` is [switch], how many children each could serve, 0 for
  // none. False: the routes of some leaf do not reach the root.
  bool BuildPhysical(const BatchShape& shape, SwitchIndex root, Steering steering,
                     absl::Span<const uint32_t> degrees, BatchTree& tree);
  // Chooses who serves in the tree that was built last and counts packets. False: not with
  // `degrees`.
  bool ChooseServers(absl::Span<const uint32_t> degrees, BatchTree& tree);

  // Whether the last physical tree could have been another one.
  bool had_choice() const { return had_choice_; }

 private:
  struct Step {
    SwitchIndex at, next;
    ChannelIndex up;
  };

  bool Route(const BatchShape& shape, SwitchIndex root);
  bool Steer(const BatchShape& shape, SwitchIndex root, Steering steering);
  void AssignWays(const BatchShape& shape, SwitchIndex root);
  bool IsOnTheWay(SwitchIndex at, SwitchIndex to) const;
  bool StepTowards(SwitchIndex at, SwitchIndex root, absl::Span<const uint8_t> row,
                   Steering steering, Step& step);
  uint64_t Cost(SwitchIndex to, ChannelIndex over, uint32_t packets, Steering steering) const;
  void Meet(SwitchIndex s, uint32_t packets);
  uint32_t Leaving(SwitchIndex s) const;
  void Lay(const BatchShape& shape, SwitchIndex root, SwitchTree& tree);
  void Forget();
  void Prefer(const SwitchTree& tree);

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const absl::Span<const int32_t> free_entries_;
  absl::Span<const uint32_t> degrees_;  // of the tree at hand
  const LinkLoads& loads_;
  bool had_choice_ = false;
  uint32_t ranks_ = 0;  // of the shape at hand

  std::vector<uint32_t> packets_;                 // [switch] met so far
  std::vector<int32_t> position_;                 // [switch] in the tree; kNotMet, kMet
  std::vector<uint32_t> way_;                     // [switch] in ways_ for kVia; its size: any
  std::vector<SwitchIndex> ways_;                 // neighbours of the root
  std::vector<SwitchIndex> met_;                  // where position_ is not kNotMet
  std::vector<std::vector<SwitchIndex>> levels_;  // [hops to the root]
  std::vector<Step> steps_;                       // children before parents
  std::vector<uint32_t> tree_degrees_, preference_;
};

// packets[v] of a tree whose physical tree and serving switches are known: what a vertex sends up
// if each serving one takes as many as it may, lowest first.
void CountPackets(absl::Span<const uint32_t> degrees, BatchTree& tree);

// A tree and its price to the batch: the objective of batch.h for one communicator.
struct BatchOffer {
  BatchTree tree;
  uint32_t most_packets = 0;   // on the most loaded channel of all, this tree included
  uint64_t added_squares = 0;  // to the sum of the squares of all links' packets

  bool BeatenBy(const BatchOffer& other) const;
};

// The best tree that one communicator can have right now: candidates are made lazily, from the
// roots through which least is promised, and compared by what they do to the batch.
class BatchOffers final {
 public:
  // `snapshot` and `state` must outlive this. `most_candidates` bounds the trees counted before
  // exhausted() becomes true, from the last call of StartCounting().
  BatchOffers(const Snapshot& snapshot, const BatchState& state, const BatchOptions& options);

  // Of the nearest roots the best one, after up to `most_roots` trees that work. nullopt: none
  // works with the entries that are left.
  std::optional<BatchOffer> Nearest(const BatchShape& shape, uint32_t most_roots);
  // Of farther roots, nearest first: the best of the first distance at which one works, or with
  // RootReach::kAny of all distances until no fewer entries are possible.
  std::optional<BatchOffer> Farther(const BatchShape& shape, uint32_t most_roots);
  // What `options.reach` allows: Nearest, then Farther.
  std::optional<BatchOffer> Any(const BatchShape& shape, uint32_t most_roots);

  // The tree to one root if the switches could serve `degrees`, whatever is free. `hops`:
  // from the root to the farthest leaf.
  std::optional<BatchTree> TreeTo(const BatchShape& shape, SwitchIndex root, uint32_t hops,
                                  absl::Span<const uint32_t> degrees);
  // Fewest entries of a tree to a nearest root if the shape had the fabric to itself, over up to
  // `most_roots` roots that differ (twins of one limit do not); nullopt: none works.
  std::optional<uint32_t> LeastAlone(const BatchShape& shape, uint32_t most_roots);
  BatchOffer Price(BatchTree tree) const;

  void StartCounting() { built_ = 0; }
  // One more tree. Those that are built here count by themselves.
  void Count();
  // Called now and then with the trees counted since StartCounting().
  void Watch(std::function<void(uint32_t built)> watcher) { watcher_ = std::move(watcher); }
  bool exhausted() const { return built_ >= options_.most_candidates; }

 private:
  struct Root {
    SwitchIndex index;
    uint32_t hops;
    bool lacks_servers = false;  // fewer neighbours that can serve than the shape needs beside it
  };

  bool LacksServers(const BatchShape& shape, SwitchIndex root,
                    absl::Span<const uint8_t> farthest) const;
  // Keeps the usable ones, those through which least is promised first; only the first `wanted`
  // are in order.
  void SortByPromise(std::vector<Root>& roots, size_t wanted) const;
  bool Try(const BatchShape& shape, Root root, std::optional<BatchOffer>& best);
  void TryAll(const BatchShape& shape, std::vector<Root>& roots, uint32_t most_roots,
              std::optional<BatchOffer>& best);

  const Snapshot& snapshot_;
  const BatchState& state_;
  const BatchOptions options_;
  BatchTreeBuilder builder_;
  std::vector<Root> roots_;
  std::vector<uint32_t> servers_;  // [switch] degrees of those that serve in the tree at hand
  uint32_t built_ = 0;
  std::function<void(uint32_t)> watcher_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_TREE_BUILDER_H_
