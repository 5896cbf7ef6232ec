#include "daemon/tree/batch/state.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/root_choice.h"
#include "daemon/tree/type2_candidate.h"

namespace coppice {

namespace {

constexpr uint32_t kNoSwitch = UINT32_MAX;

// One pass over the members with an array of counters over switches.
class ShapeFinder {
 public:
  ShapeFinder(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity)
      : snapshot_(snapshot), fabric_(*snapshot.fabric), count_(fabric_.switch_count(), 0) {
    leaf_of_.reserve(fabric_.endpoint_count());
    for (uint32_t e = 0; e < fabric_.endpoint_count(); ++e) {
      const std::optional<SwitchIndex> leaf = fabric_.attached_switch(EndpointIndex(e));
      leaf_of_.push_back(leaf ? leaf->value() : kNoSwitch);
    }
    for (const SwitchCapacity& c : capacity) {
      if (c.entries_free > 0) degrees_.push_back(c.degree_limit);
    }
    absl::c_sort(degrees_, std::greater<>());
  }

  absl::Status Add(size_t number, const BatchCommunicator& communicator) {
    RETURN_IF_ERROR(CheckRange(number, communicator));
    shapes_.shape_of.push_back(BatchShapes::kNone);
    shapes_.trouble.push_back(CountLeaves(communicator.members));
    if (communicator.members.size() > 1 && shapes_.trouble.back().empty()) {
      const uint32_t shape = FindShape();
      shapes_.shape_of.back() = shape;
      if (shapes_.shapes[shape].nearest.empty()) {
        shapes_.trouble.back() = "no switch reaches all members";
      }
    }
    for (const SwitchIndex leaf : leaves_) count_[leaf.value()] = 0;
    return absl::OkStatus();
  }

  BatchShapes Take() { return std::move(shapes_); }

 private:
  absl::Status CheckRange(size_t number, const BatchCommunicator& communicator) const {
    if (communicator.members.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("communicator ", number, " has no members; name at least one"));
    }
    for (size_t rank = 0; rank < communicator.members.size(); ++rank) {
      const uint32_t endpoint = communicator.members[rank].value();
      if (endpoint < leaf_of_.size()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("communicator ", number, ": rank ", rank, " is on endpoint number ",
                       endpoint, ", but the fabric has ", leaf_of_.size(), " endpoints"));
    }
    return absl::OkStatus();
  }

  // Fills leaves_ and count_; the text says what is wrong with the members.
  std::string CountLeaves(Members members) {
    leaves_.clear();
    for (const EndpointIndex member : members) {
      const uint32_t leaf = leaf_of_[member.value()];
      if (leaf == kNoSwitch) {
        if (members.size() == 1) continue;
        return absl::StrCat(Describe(fabric_, fabric_.Vertex(member)),
                            " is not cabled to a switch");
      }
      if (count_[leaf]++ == 0) leaves_.emplace_back(leaf);
    }
    for (const SwitchIndex leaf : leaves_) {
      if (fabric_.component(fabric_.Vertex(leaf)) == fabric_.component(fabric_.Vertex(leaves_[0])))
        continue;
      return absl::StrCat("members on ", Describe(fabric_, fabric_.Vertex(leaves_[0])), " and on ",
                          Describe(fabric_, fabric_.Vertex(leaf)),
                          " are in different subnetworks: no cable joins them");
    }
    absl::c_sort(leaves_);
    return "";
  }

  uint32_t FindShape() {
    std::vector<uint32_t> ranks_on;
    ranks_on.reserve(leaves_.size());
    for (const SwitchIndex leaf : leaves_) ranks_on.push_back(count_[leaf.value()]);
    const auto number = static_cast<uint32_t>(shapes_.shapes.size());
    const auto [known, is_new] = known_.try_emplace({leaves_, ranks_on}, number);
    if (!is_new) return known->second;
    BatchShape& shape = shapes_.shapes.emplace_back();
    shape.leaves = leaves_;
    shape.ranks = absl::c_accumulate(ranks_on, 0U);
    shape.ranks_on = std::move(ranks_on);
    shape.fewest = Fewest(shape.ranks);
    FindNearest(shape);
    return number;
  }

  // BatchShape::fewest: more than there are if all of them do not suffice.
  uint32_t Fewest(uint32_t ranks) const {
    uint64_t absorbed = 0;
    for (size_t i = 0; i < degrees_.size() && degrees_[i] >= 2; ++i) {
      absorbed += degrees_[i] - uint64_t{1};
      if (absorbed >= ranks - uint64_t{1}) return static_cast<uint32_t>(i + 1);
    }
    return static_cast<uint32_t>(degrees_.size() + 1);
  }

  void FindNearest(BatchShape& shape) const {
    const std::vector<uint8_t> farthest = FarthestHops(snapshot_, shape.leaves);
    const uint8_t least = *absl::c_min_element(farthest);
    if (least == SwitchDistances::kUnreachable) return;
    shape.nearest_hops = least;
    for (uint32_t s = 0; s < farthest.size(); ++s) {
      if (farthest[s] == least) shape.nearest.emplace_back(s);
    }
  }

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  std::vector<uint32_t> leaf_of_;    // [endpoint]
  std::vector<uint32_t> count_;      // [switch] ranks of the communicator at hand
  std::vector<SwitchIndex> leaves_;  // where count_ is not 0
  std::vector<uint32_t> degrees_;    // of all switches with a free entry, largest first
  absl::flat_hash_map<std::pair<std::vector<SwitchIndex>, std::vector<uint32_t>>, uint32_t> known_;
  BatchShapes shapes_;
};

}  // namespace

absl::StatusOr<BatchShapes> FindBatchShapes(const Snapshot& snapshot,
                                            absl::Span<const SwitchCapacity> capacity,
                                            absl::Span<const BatchCommunicator> communicators) {
  if (capacity.size() != snapshot.fabric->switch_count()) {
    return absl::InvalidArgumentError(absl::StrCat("capacities of ", capacity.size(),
                                                   " switches for a fabric of ",
                                                   snapshot.fabric->switch_count()));
  }
  ShapeFinder finder(snapshot, capacity);
  for (size_t i = 0; i < communicators.size(); ++i) {
    RETURN_IF_ERROR(finder.Add(i, communicators[i]));
  }
  return finder.Take();
}

uint32_t LeastMostPackets(const BatchShapes& shapes, absl::Span<const uint32_t> communicators,
                          uint64_t entries) {
  struct Leaf {
    uint32_t ranks;
    size_t position;  // in `communicators`
  };
  std::vector<Leaf> leaves;
  std::vector<uint32_t> spare;  // [position] entries that it takes anyway and that are not used up
  uint64_t needed = 0;
  for (size_t i = 0; i < communicators.size(); ++i) {
    const uint32_t s = shapes.shape_of[communicators[i]];
    spare.push_back(s == BatchShapes::kNone ? 0 : shapes.shapes[s].fewest);
    needed += spare.back();
    if (s == BatchShapes::kNone) continue;
    for (const uint32_t ranks : shapes.shapes[s].ranks_on) leaves.push_back({ranks, i});
  }
  absl::c_stable_sort(leaves, [](const Leaf& a, const Leaf& b) { return a.ranks > b.ranks; });
  for (const Leaf& leaf : leaves) {
    if (spare[leaf.position] > 0) {
      --spare[leaf.position];
    } else if (++needed > entries) {
      return leaf.ranks;
    }
  }
  return 0;
}

LinkLoads::LinkLoads(const Snapshot& snapshot, uint32_t packets_at_full_load)
    : measured_(snapshot.fabric->channel_count(), 0),
      through_(snapshot.fabric->switch_count(), 0),
      channels_at_(1, 0) {
  const Fabric& fabric = *snapshot.fabric;
  for (uint32_t c = 0; c < fabric.channel_count(); ++c) {
    const LinkInfo& link = fabric.link(Fabric::link_of(ChannelIndex(c)));
    if (!fabric.IsSwitch(link.a) || !fabric.IsSwitch(link.b)) continue;
    const double u = std::clamp<double>(snapshot.utilisation(ChannelIndex(c)), 0, 1);
    measured_[c] = static_cast<uint32_t>(std::lround(u * packets_at_full_load));
  }
  loads_ = measured_;
}

void LinkLoads::Move(ChannelIndex c, uint32_t to) {
  uint32_t& load = loads_[c.value()];
  if (to >= channels_at_.size()) channels_at_.resize(size_t{to} + 1, 0);
  if (IsUsed(c.value())) --channels_at_[load];
  load = to;
  if (IsUsed(c.value())) {
    ++channels_at_[to];
    most_ = std::max(most_, to);
  }
  while (most_ > 0 && channels_at_[most_] == 0) --most_;
}

void LinkLoads::Count(const BatchTree& tree, int times) {
  const SwitchTree& physical = tree.physical;
  tree.ForEachLink([&](uint32_t v, ChannelIndex up, uint32_t packets) {
    const int64_t more = int64_t{times} * packets;
    Move(up, static_cast<uint32_t>(on(up) + more));
    through_[physical.switches[v].value()] += more;
    through_[physical.switches[static_cast<size_t>(physical.parents[v])].value()] += more;
  });
}

ChannelIndex LinkLoads::MostLoaded() const {
  if (most_ == 0) return kNoChannel;
  for (uint32_t c = 0; c < loads_.size(); ++c) {
    if (loads_[c] == most_ && IsUsed(c)) return ChannelIndex(c);
  }
  return kNoChannel;
}

uint32_t PeakOf(const BatchTree& tree, const LinkLoads& loads, bool is_counted) {
  uint32_t peak = 0;
  tree.ForEachLink([&](uint32_t, ChannelIndex up, uint32_t packets) {
    peak = std::max(peak, loads.on(up) + (is_counted ? 0 : packets));
  });
  return peak;
}

BatchState::BatchState(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
                       size_t communicators, uint32_t packets_at_full_load)
    : served_(capacity.size()), loads_(snapshot, packets_at_full_load), trees_(communicators) {
  constexpr uint32_t kMax = std::numeric_limits<int32_t>::max();
  for (const SwitchCapacity& c : capacity) {
    const uint32_t free = c.degree_limit >= 2 ? std::min(c.entries_free, kMax) : 0;
    free_.push_back(static_cast<int32_t>(free));
    limits_.push_back(free > 0 ? c.degree_limit : 0);
  }
  degrees_ = limits_;
}

void BatchState::Take(SwitchIndex s, int32_t entries) {
  int32_t& free = free_[s.value()];
  free -= entries;
  degrees_[s.value()] = free > 0 ? limits_[s.value()] : 0;
}

void BatchState::Count(uint32_t communicator, const BatchTree& tree, int times) {
  placed_ += times;
  farther_ += tree.extra_hops > 0 ? times : 0;
  entries_ += times * static_cast<int64_t>(tree.serving.size());
  for (const uint32_t v : tree.serving) {
    const SwitchIndex s = tree.physical.switches[v];
    Take(s, times);
    std::vector<uint32_t>& served = served_[s.value()];
    if (times > 0) {
      served.push_back(communicator);
    } else {
      served.erase(absl::c_find(served, communicator));
    }
  }
}

std::optional<BatchTree> BatchState::Exchange(uint32_t communicator,
                                              std::optional<BatchTree> tree) {
  std::optional<BatchTree>& mine = trees_[communicator];
  if (mine) {
    loads_.Remove(*mine);
    Count(communicator, *mine, -1);
  }
  std::swap(mine, tree);
  if (mine) {
    loads_.Add(*mine);
    Count(communicator, *mine, 1);
  }
  return tree;
}

void BatchState::Replace(uint32_t communicator, std::optional<BatchTree> tree) {
  journal_.push_back({communicator, Exchange(communicator, std::move(tree))});
}

void BatchState::RevertTo(size_t mark) {
  while (journal_.size() > mark) {
    Change change = std::move(journal_.back());
    journal_.pop_back();
    Exchange(change.communicator, std::move(change.before));
  }
}

BatchTotals BatchState::Totals() const {
  return {.admitted = placed_,
          .failures = static_cast<uint32_t>(size()) - placed_,
          .entries = entries_,
          .farther_roots = farther_,
          .most_packets = loads_.most(),
          .most_loaded = loads_.MostLoaded()};
}

}  // namespace coppice
