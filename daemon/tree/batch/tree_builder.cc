// Level by level towards the root, so that every switch knows all that reaches it before it sends
// on, and every choice is made once:
//
//     hops 0            root
//     hops 1       s0     s1    s2      <- a leaf may send to any switch of the level above that it
//     hops 2     l0  l1  l2  l3  l4        is cabled to; loads, limits and packets met so far
//     decide
//
// Dependence on steering: with one serving switch (ranks <= K of the root) how packets get there
// costs no entry and only links count: kSpread. With several, a serving switch is worth what it
// absorbs, min(K - 1, packets - 1); K packets on one switch cost one entry, on two switches two:
// kGather, and once K packets are there, more are lost on it: kFill. These see one hop ahead; kVia
// decides at the leaves which neighbour of the root packets will meet at, so that they meet there
// whatever lies between. Once it is known who serves, kRefine keeps other links even.
//
// O(channels of the tree's switches), plus ChooseServing.
#include "daemon/tree/batch/tree_builder.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/algorithm/container.h"
#include "daemon/tree/root_choice.h"
#include "daemon/tree/type2_candidate.h"

namespace coppice {
namespace {

constexpr int32_t kNotMet = -1, kMet = -2;

}  // namespace

BatchTreeBuilder::BatchTreeBuilder(const Snapshot& snapshot, absl::Span<const int32_t> free_entries,
                                   const LinkLoads& loads)
    : snapshot_(snapshot),
      fabric_(*snapshot.fabric),
      free_entries_(free_entries),
      loads_(loads),
      packets_(fabric_.switch_count(), 0),
      position_(fabric_.switch_count(), kNotMet),
      way_(fabric_.switch_count(), 0) {}

bool BatchTreeBuilder::BuildPhysical(const BatchShape& shape, SwitchIndex root, Steering steering,
                                     absl::Span<const uint32_t> degrees, BatchTree& tree) {
  degrees_ = degrees;
  had_choice_ = false;
  ranks_ = shape.ranks;
  steps_.clear();
  const bool any_path = snapshot_.routes->kind() == RouteKind::kShortestPath;
  const bool reached = any_path ? Steer(shape, root, steering) : Route(shape, root);
  if (reached) Lay(shape, root, tree.physical);
  Forget();
  return reached;
}

void BatchTreeBuilder::Forget() {
  for (const SwitchIndex s : met_) {
    packets_[s.value()] = 0;
    position_[s.value()] = kNotMet;
  }
  met_.clear();
}

void BatchTreeBuilder::Meet(SwitchIndex s, uint32_t packets) {
  packets_[s.value()] += packets;
  if (position_[s.value()] != kNotMet) return;
  position_[s.value()] = kMet;
  met_.push_back(s);
}

// Fixed routes: walks from every leaf until it meets the tree, and unwinds.
bool BatchTreeBuilder::Route(const BatchShape& shape, SwitchIndex root) {
  Meet(root, 0);
  std::vector<Step> walk;
  std::vector<std::vector<Step>> walks;
  for (const SwitchIndex leaf : shape.leaves) {
    walk.clear();
    SwitchIndex at = leaf;
    while (position_[at.value()] == kNotMet) {
      Meet(at, 0);
      const ChannelIndex up = snapshot_.routes->NextChannel(at, fabric_.Vertex(root));
      if (up == kNoChannel || !fabric_.IsSwitch(fabric_.channel_to(up))) return false;
      walk.push_back({at, fabric_.AsSwitch(fabric_.channel_to(up)), up});
      at = walk.back().next;
      // A switch of this very walk: a loop.
      for (const Step& step : walk) {
        if (step.at == at) return false;
      }
    }
    walks.push_back(walk);
  }
  // Later walks end in earlier ones, so that the last walk comes first below its parents.
  for (auto w = walks.rbegin(); w != walks.rend(); ++w) {
    steps_.insert(steps_.end(), w->begin(), w->end());
  }
  return true;
}

bool BatchTreeBuilder::Steer(const BatchShape& shape, SwitchIndex root, Steering steering) {
  const SwitchDistances& distances = snapshot_.routes->distances();
  const absl::Span<const uint8_t> row = distances.ClassRowTo(distances.classes().class_of(root));
  for (auto& level : levels_) level.clear();
  for (size_t i = 0; i < shape.leaves.size(); ++i) {
    const uint8_t hops = distances.Between(shape.leaves[i], root);
    if (hops == SwitchDistances::kUnreachable) return false;
    if (hops >= levels_.size()) levels_.resize(hops + size_t{1});
    Meet(shape.leaves[i], shape.ranks_on[i]);
    levels_[hops].push_back(shape.leaves[i]);
  }
  ways_.clear();
  if (steering == Steering::kVia) AssignWays(shape, root);
  for (size_t hops = levels_.size(); hops-- > 1;) {
    for (const SwitchIndex at : levels_[hops]) {
      Step step;
      if (!StepTowards(at, root, row, steering, step)) return false;
      const bool is_new = position_[step.next.value()] == kNotMet;
      Meet(step.next, Leaving(at));
      if (is_new) levels_[hops - 1].push_back(step.next);
      if (is_new && !ways_.empty()) way_[step.next.value()] = way_[at.value()];
      steps_.push_back(step);
    }
  }
  return true;
}

// Leaves by turns: each neighbour of the root is the way until as many ranks come by it as it can
// serve.
void BatchTreeBuilder::AssignWays(const BatchShape& shape, SwitchIndex root) {
  const SwitchDistances& distances = snapshot_.routes->distances();
  for (const Channel& channel : fabric_.switch_channels(root)) {
    const SwitchIndex next = fabric_.AsSwitch(channel.to);
    if (next == root || degrees_[next.value()] < 2) continue;
    if (absl::c_find(ways_, next) == ways_.end()) ways_.push_back(next);
  }
  std::vector<uint64_t> ranks(ways_.size(), 0);
  size_t current = 0;
  for (size_t i = 0; i < shape.leaves.size(); ++i) {
    const SwitchIndex leaf = shape.leaves[i];
    const uint32_t hops = distances.Between(leaf, root);
    way_[leaf.value()] = static_cast<uint32_t>(ways_.size());
    for (size_t turn = 0; turn < ways_.size(); ++turn) {
      const size_t way = (current + turn) % ways_.size();
      if (distances.Between(leaf, ways_[way]) + 1U != hops) continue;
      if (ranks[way] + shape.ranks_on[i] > degrees_[ways_[way].value()]) continue;
      ranks[way] += shape.ranks_on[i];
      way_[leaf.value()] = static_cast<uint32_t>(way);
      current = way;
      break;
    }
  }
}

bool BatchTreeBuilder::IsOnTheWay(SwitchIndex at, SwitchIndex to) const {
  if (ways_.empty() || way_[at.value()] == ways_.size()) return true;
  const SwitchIndex way = ways_[way_[at.value()]];
  const SwitchDistances& distances = snapshot_.routes->distances();
  return at == way || distances.Between(to, way) + 1 == distances.Between(at, way);
}

// What leaves a switch, guessing that one which half fills its limit will serve.
uint32_t BatchTreeBuilder::Leaving(SwitchIndex s) const {
  const uint32_t packets = packets_[s.value()], degree = degrees_[s.value()];
  if (degree < 2 || ranks_ <= degree || uint64_t{packets} * 2 < degree) return packets;
  return packets > degree ? packets - degree + 1 : 1;
}

// Lower is better.
uint64_t BatchTreeBuilder::Cost(SwitchIndex to, ChannelIndex over, uint32_t packets,
                                Steering steering) const {
  const uint64_t load = loads_.on(over), there = packets_[to.value()];
  constexpr uint64_t kMax = (uint64_t{1} << 28) - 1;
  if (steering == Steering::kSpread) {
    return std::min(load, kMax) << 28 | std::min(there, kMax);
  }
  const uint64_t degree = degrees_[to.value()];
  const uint64_t cannot_serve = degree < 2 ? 1 : 0;
  const bool fits = steering == Steering::kGather || there + packets <= degree;
  if (steering == Steering::kRefine && (cannot_serve != 0 || !fits)) {
    return (cannot_serve != 0 ? uint64_t{1} : uint64_t{2}) << 60 | std::min(load + there, kMax)
                                                                       << 28;
  }
  uint64_t rank = kMax - std::min(there, kMax);  // the fullest that has room
  if (!fits) rank = std::min(there, kMax);
  return cannot_serve << 62 | (fits ? uint64_t{0} : uint64_t{1}) << 60 | rank << 28 |
         std::min(load, kMax);
}

// `row` says 0 for the root's twins, too, which are 2 hops away.
bool BatchTreeBuilder::StepTowards(SwitchIndex at, SwitchIndex root, absl::Span<const uint8_t> row,
                                   Steering steering, Step& step) {
  const TwinClasses& twins = snapshot_.routes->distances().classes();
  const uint8_t here = row[twins.class_of(at)];
  const uint8_t wanted = here == 0 ? 1 : here - 1;
  const absl::Span<const Channel> channels = fabric_.switch_channels(at);
  const absl::Span<const uint32_t> classes = twins.classes_beside(at);
  const uint32_t packets = Leaving(at);
  // Equally good neighbours take turns from root to root.
  const size_t n = channels.size();
  const size_t first = n == 0 ? 0 : root.value() % n;
  uint64_t least = UINT64_MAX;
  uint32_t ways = 0;
  for (size_t turn = 0; turn < n; ++turn) {
    const size_t i = turn + first < n ? turn + first : turn + first - n;
    if (row[classes[i]] != wanted) continue;
    const VertexIndex to = channels[i].to;
    if (wanted == 0 && fabric_.AsSwitch(to) != root) continue;
    ++ways;
    uint64_t cost = Cost(fabric_.AsSwitch(to), channels[i].index, packets, steering);
    if (!IsOnTheWay(at, fabric_.AsSwitch(to))) cost |= uint64_t{1} << 63;
    if (cost >= least) continue;
    least = cost;
    step = {at, fabric_.AsSwitch(to), channels[i].index};
  }
  had_choice_ |= ways > 1;
  return ways > 0;
}

// steps_ backwards are parents before children.
void BatchTreeBuilder::Lay(const BatchShape& shape, SwitchIndex root, SwitchTree& tree) {
  const size_t n = steps_.size() + 1;
  tree.switches.assign(1, root);
  tree.parents.assign(1, -1);
  tree.up.assign(1, kNoChannel);
  Meet(root, 0);
  position_[root.value()] = 0;
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    position_[step.at.value()] = static_cast<int32_t>(tree.switches.size());
    tree.switches.push_back(step.at);
    tree.parents.push_back(position_[step.next.value()]);
    tree.up.push_back(step.up);
  }
  tree.ranks_on.assign(n, 0);
  for (size_t i = 0; i < shape.leaves.size(); ++i) {
    tree.ranks_on[static_cast<size_t>(position_[shape.leaves[i].value()])] = shape.ranks_on[i];
  }
}

// Of switches that save equally much: not those that are nearly full, then the lowest, because
// packets that are reduced early cross fewer links, then those with most entries left.
void BatchTreeBuilder::Prefer(const SwitchTree& tree) {
  constexpr uint32_t kNearlyFull = 4, kMaxFree = 63, kMaxDepth = 255;
  std::vector<uint32_t>& depth = preference_;
  depth.assign(tree.switches.size(), 0);
  for (size_t v = 1; v < depth.size(); ++v) {
    depth[v] = depth[static_cast<size_t>(tree.parents[v])] + 1;
  }
  for (size_t v = 0; v < depth.size(); ++v) {
    const auto free = static_cast<uint32_t>(std::max(free_entries_[tree.switches[v].value()], 0));
    const uint32_t scarce = free < kNearlyFull ? kNearlyFull - free : 0;
    const uint32_t height = kMaxDepth - std::min(depth[v], kMaxDepth);
    preference_[v] =
        (scarce * (kMaxDepth + 1) + height) * (kMaxFree + 1) + kMaxFree - std::min(free, kMaxFree);
  }
}

bool BatchTreeBuilder::ChooseServers(absl::Span<const uint32_t> degrees, BatchTree& tree) {
  const SwitchTree& physical = tree.physical;
  tree_degrees_.clear();
  for (const SwitchIndex s : physical.switches) tree_degrees_.push_back(degrees[s.value()]);
  if (tree_degrees_[0] >= ranks_) {
    tree.serving.assign(1, 0);  // one switch is the least there can be
    CountPackets(degrees, tree);
    return true;
  }
  Prefer(physical);
  ReductionChoice choice =
      ChooseServing({physical.parents, physical.ranks_on, tree_degrees_, preference_});
  if (!choice.feasible) return false;
  tree.serving = std::move(choice.serving);
  CountPackets(degrees, tree);
  return true;
}

void CountPackets(absl::Span<const uint32_t> degrees, BatchTree& tree) {
  const SwitchTree& physical = tree.physical;
  const size_t n = physical.switches.size();
  tree.packets.assign(physical.ranks_on.begin(), physical.ranks_on.end());
  size_t left = tree.serving.size();
  for (size_t v = n; v-- > 0;) {
    uint32_t& packets = tree.packets[v];
    if (left > 0 && tree.serving[left - 1] == v) {
      --left;
      packets -= std::min(packets, degrees[physical.switches[v].value()]);
      ++packets;
    }
    // Above the topmost serving switch nothing is sent.
    if (left == 0) {
      std::fill(tree.packets.begin(), tree.packets.begin() + static_cast<int64_t>(v) + 1, 0);
      return;
    }
    if (v > 0) tree.packets[static_cast<size_t>(physical.parents[v])] += packets;
  }
}

namespace {

// Trees that may fail before a distance is given up, times the roots that are compared.
constexpr uint32_t kMaxFailures = 4;
constexpr uint32_t kTreesBetweenReports = 256;

// Fewer entries, then fewer packets on the busiest link of the tree.
bool IsLighter(const BatchTree& a, const BatchTree& b) {
  const auto key = [](const BatchTree& tree) {
    return std::make_pair(tree.serving.size(), *absl::c_max_element(tree.packets));
  };
  return key(a) < key(b);
}

}  // namespace

bool BatchOffer::BeatenBy(const BatchOffer& other) const {
  const auto key = [](const BatchOffer& offer) {
    return std::make_tuple(offer.tree.serving.size(), offer.most_packets, offer.added_squares,
                           offer.tree.extra_hops);
  };
  return key(other) < key(*this);
}

BatchOffers::BatchOffers(const Snapshot& snapshot, const BatchState& state,
                         const BatchOptions& options)
    : snapshot_(snapshot),
      state_(state),
      options_(options),
      builder_(snapshot, state.free_entries(), state.loads()) {}

void BatchOffers::SortByPromise(std::vector<Root>& roots, size_t wanted) const {
  const absl::Span<const uint32_t> degrees = state_.degrees();
  std::erase_if(roots, [&](const Root& r) { return degrees[r.index.value()] == 0; });
  const auto key = [&](const Root& r) {
    return std::make_tuple(r.hops, r.lacks_servers, state_.loads().through(r.index),
                           -state_.free_entries()[r.index.value()], r.index);
  };
  const auto middle = roots.begin() + static_cast<int64_t>(std::min(wanted, roots.size()));
  std::partial_sort(roots.begin(), middle, roots.end(),
                    [&](const Root& a, const Root& b) { return key(a) < key(b); });
}

// Packets come together at neighbours that are nearer to the members than the root is.
bool BatchOffers::LacksServers(const BatchShape& shape, SwitchIndex root,
                               absl::Span<const uint8_t> farthest) const {
  uint32_t wanted = shape.fewest - 1;
  for (const Channel& channel : snapshot_.fabric->switch_channels(root)) {
    if (wanted == 0) return false;
    const uint32_t next = channel.to.value();
    if (farthest[next] < farthest[root.value()] && state_.degrees()[next] > 0) --wanted;
  }
  return wanted > 0;
}

BatchOffer BatchOffers::Price(BatchTree tree) const {
  const LinkLoads& loads = state_.loads();
  BatchOffer offer;
  offer.most_packets = loads.most();
  tree.ForEachLink([&](uint32_t, ChannelIndex up, uint64_t packets) {
    const uint64_t load = loads.on(up);
    offer.most_packets = std::max(offer.most_packets, static_cast<uint32_t>(load + packets));
    offer.added_squares += packets * (2 * load + packets);
  });
  offer.tree = std::move(tree);
  return offer;
}

void BatchOffers::Count() {
  if (++built_ % kTreesBetweenReports == 0 && watcher_) watcher_(built_);
}

std::optional<BatchTree> BatchOffers::TreeTo(const BatchShape& shape, SwitchIndex root,
                                             uint32_t hops, absl::Span<const uint32_t> degrees) {
  std::optional<BatchTree> best;
  const bool alone = shape.ranks <= degrees[root.value()];
  const auto build = [&](Steering steering, absl::Span<const uint32_t> servers) {
    BatchTree tree;
    Count();
    if (!builder_.BuildPhysical(shape, root, steering, servers, tree)) return false;
    tree.extra_hops = hops - shape.nearest_hops;
    const bool works = builder_.ChooseServers(servers, tree);
    if (works && (!best || IsLighter(tree, *best))) best = std::move(tree);
    return builder_.had_choice();
  };
  if (!build(alone ? Steering::kSpread : Steering::kGather, degrees) || alone) return best;
  build(Steering::kFill, degrees);
  build(Steering::kVia, degrees);
  if (!best) return best;
  servers_.assign(degrees.size(), 0);
  for (const uint32_t v : best->serving) {
    const uint32_t s = best->physical.switches[v].value();
    servers_[s] = degrees[s];
  }
  build(Steering::kRefine, servers_);
  return best;
}

std::optional<uint32_t> BatchOffers::LeastAlone(const BatchShape& shape, uint32_t most_roots) {
  const TwinClasses& twins = snapshot_.routes->distances().classes();
  const absl::Span<const uint32_t> limits = state_.limits();
  std::set<std::pair<uint32_t, uint32_t>> seen;  // class, limit
  std::optional<uint32_t> least;
  for (const SwitchIndex root : shape.nearest) {
    if (limits[root.value()] == 0 || seen.size() >= most_roots) continue;
    if (!seen.emplace(twins.class_of(root), limits[root.value()]).second) continue;
    const std::optional<BatchTree> tree = TreeTo(shape, root, shape.nearest_hops, limits);
    if (!tree) continue;
    const auto entries = static_cast<uint32_t>(tree->serving.size());
    least = std::min(least.value_or(entries), entries);
    if (*least == shape.fewest) break;
  }
  return least;
}

// True if there is such a tree; keeps it if it is the best.
bool BatchOffers::Try(const BatchShape& shape, Root root, std::optional<BatchOffer>& best) {
  std::optional<BatchTree> tree = TreeTo(shape, root.index, root.hops, state_.degrees());
  if (!tree) return false;
  if (best && tree->serving.size() > best->tree.serving.size()) return true;
  BatchOffer offer = Price(*std::move(tree));
  if (!best || best->BeatenBy(offer)) best = std::move(offer);
  return true;
}

// Up to `most_roots` that work, and not too many that do not.
void BatchOffers::TryAll(const BatchShape& shape, std::vector<Root>& roots, uint32_t most_roots,
                         std::optional<BatchOffer>& best) {
  uint32_t worked = 0, failed = 0;
  for (const Root& root : roots) {
    (Try(shape, root, best) ? worked : failed) += 1;
    if (worked >= most_roots || failed >= kMaxFailures * most_roots) return;
  }
}

std::optional<BatchOffer> BatchOffers::Nearest(const BatchShape& shape, uint32_t most_roots) {
  roots_.clear();
  for (const SwitchIndex root : shape.nearest) roots_.push_back({root, shape.nearest_hops, false});
  SortByPromise(roots_, size_t{kMaxFailures} * most_roots);
  std::optional<BatchOffer> best;
  TryAll(shape, roots_, most_roots, best);
  return best;
}

std::optional<BatchOffer> BatchOffers::Farther(const BatchShape& shape, uint32_t most_roots) {
  const std::vector<uint8_t> farthest = FarthestHops(snapshot_, shape.leaves);
  std::map<uint32_t, std::vector<Root>> by_hops;
  for (uint32_t s = 0; s < farthest.size(); ++s) {
    const uint32_t hops = farthest[s];
    if (hops == SwitchDistances::kUnreachable || hops <= shape.nearest_hops) continue;
    if (state_.degrees()[s] == 0) continue;
    by_hops[hops].push_back({SwitchIndex(s), hops, LacksServers(shape, SwitchIndex(s), farthest)});
  }
  std::optional<BatchOffer> best;
  for (auto& [hops, roots] : by_hops) {
    SortByPromise(roots, size_t{kMaxFailures} * most_roots);
    TryAll(shape, roots, most_roots, best);
    if (!best) continue;
    if (options_.reach != RootReach::kAny || best->tree.serving.size() == shape.fewest) break;
  }
  return best;
}

std::optional<BatchOffer> BatchOffers::Any(const BatchShape& shape, uint32_t most_roots) {
  std::optional<BatchOffer> best = Nearest(shape, most_roots);
  if (options_.reach == RootReach::kNearest) return best;
  if (best && options_.reach == RootReach::kToAdmit) return best;
  if (best && best->tree.serving.size() == shape.fewest) return best;
  std::optional<BatchOffer> farther = Farther(shape, most_roots);
  if (!best || (farther && best->BeatenBy(*farther))) return farther;
  return best;
}

}  // namespace coppice
