// The best tree that one communicator can have right now: candidates are made lazily, from the
// roots through which least is promised, and compared by what they do to the batch.
#ifndef COPPICE_DAEMON_TREE_BATCH_OFFERS_H_
#define COPPICE_DAEMON_TREE_BATCH_OFFERS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/shapes.h"
#include "daemon/tree/batch/state.h"
#include "daemon/tree/batch/tree_builder.h"

namespace coppice {

// A tree and its price to the batch: the objective of batch.h for one communicator.
struct BatchOffer {
  BatchTree tree;
  uint32_t most_packets = 0;   // on the most loaded channel of all, this tree included
  uint64_t added_squares = 0;  // to LinkLoads::squares()

  bool BeatenBy(const BatchOffer& other) const;
};

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

#endif  // COPPICE_DAEMON_TREE_BATCH_OFFERS_H_
