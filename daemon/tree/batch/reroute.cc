// Leaves join one after another, those with most ranks first, as in a Steiner tree grown by
// shortest paths; here a shortest path is one of those with fewest hops to the root whose links are
// least loaded:
//
//     cost(v) = 0                                       v serves and has room
//     cost(v) = min over w nearer to the root of price(v -> w) + cost(w)
//     price(v -> w) = n * 4^max(0, n + 8 - M),    n = packets on it, this tree's and the leaf's too
//
// where M is what the batch's most loaded link carries: below M - 8 loads count in proportion,
// above the most loaded link of a path counts for more than all others. Inside the tree a switch
// has one parent, and whoever meets it goes the same way.
//
//       root    a leaf (l) sees past the spine (s) that server t has room and what the links to it
//      /  |     carry; with t full it goes round it, by u.
//     t   u
//      \ / \    Costs are found once and stay until a server is full: what the tree's own packets
//       s   s'  do to them is seen where a path is chosen, one hop ahead.
//       |
//       l
#include "daemon/tree/batch/reroute.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "daemon/tree/batch/tree_builder.h"
#include "daemon/tree/root_choice.h"

namespace coppice {
namespace {

constexpr uint64_t kNoWay = uint64_t{1} << 62;
constexpr uint64_t kNoRoom = uint64_t{1} << 58;  // above any path's price
constexpr uint32_t kSteep = 8;                   // loads below the greatest that count as near it

}  // namespace

PathSpreader::PathSpreader(const Snapshot& snapshot, const LinkLoads& loads)
    : snapshot_(snapshot),
      fabric_(*snapshot.fabric),
      loads_(loads),
      nodes_(fabric_.switch_count()) {}

std::optional<BatchTree> PathSpreader::Build(const BatchShape& shape, SwitchIndex root,
                                             absl::Span<const uint32_t> degrees) {
  if (snapshot_.routes->kind() != RouteKind::kShortestPath) return std::nullopt;
  if (degrees[root.value()] == 0) return std::nullopt;
  const SwitchDistances& distances = snapshot_.routes->distances();
  degrees_ = degrees;
  root_ = root;
  row_ = distances.ClassRowTo(distances.classes().class_of(root));
  ++tree_;
  ++valuation_;
  waiting_servers_ =
      static_cast<uint32_t>(absl::c_count_if(degrees, [](uint32_t d) { return d > 0; }) - 1);
  Node& top = nodes_[root.value()];
  top.member = tree_;
  top.met = 0;
  members_.assign(1, root);
  std::vector<uint32_t> order(shape.leaves.size());
  absl::c_iota(order, 0U);
  absl::c_stable_sort(
      order, [&](uint32_t a, uint32_t b) { return shape.ranks_on[a] > shape.ranks_on[b]; });
  for (const uint32_t i : order) {
    if (!Insert(shape.leaves[i], shape.ranks_on[i])) return std::nullopt;
  }
  return Lay(shape);
}

bool PathSpreader::Insert(SwitchIndex leaf, uint32_t ranks) {
  if (ranks != ranks_) ++valuation_;
  ranks_ = ranks;
  const size_t first = members_.size();
  for (SwitchIndex at = leaf; !IsMember(at);) {
    Node& node = nodes_[at.value()];
    if (!FindWay(at, node)) return false;
    node.member = tree_;
    node.met = 0;
    node.valued = 0;
    members_.push_back(at);
    at = node.next;
  }
  std::reverse(members_.begin() + static_cast<int64_t>(first), members_.end());
  Carry(leaf, ranks);
  return true;
}

// Adds packets that reach `from` up to the root.
void PathSpreader::Carry(SwitchIndex from, uint32_t ranks) {
  uint32_t more = ranks;
  for (SwitchIndex at = from;; at = nodes_[at.value()].next) {
    Node& node = nodes_[at.value()];
    const uint32_t before = Leaving(at);
    const bool had_room = HasRoom(at);
    if (degrees_[at.value()] > 0 && at != root_ && node.met == 0) --waiting_servers_;
    node.met += more;
    node.valued = 0;
    if (had_room && !HasRoom(at)) ++valuation_;
    if (at == root_) return;
    more = Leaving(at) - before;
  }
}

uint32_t PathSpreader::Leaving(SwitchIndex at) const {
  const uint32_t met = nodes_[at.value()].met, degree = degrees_[at.value()];
  return degree > 0 && met > 0 ? (met > degree ? met - degree + 1 : 1) : met;
}

bool PathSpreader::HasRoom(SwitchIndex at) const {
  const uint32_t degree = degrees_[at.value()];
  if (degree == 0) return false;
  const uint32_t met = IsMember(at) ? nodes_[at.value()].met : 0;
  return met + (at == root_ ? waiting_servers_ : 0) < degree;
}

// Of the packet that comes after `load` others. At most 2^40.
uint64_t PathSpreader::PriceAt(uint32_t load) const {
  constexpr uint32_t kMaxLoad = 4000, kMaxSteps = 14;
  const uint64_t packets = std::min(load, kMaxLoad) + uint64_t{1};
  if (load + kSteep < most_) return packets;
  return packets << 2 * std::min(load + kSteep + 1 - most_, kMaxSteps);
}

uint64_t PathSpreader::PriceOf(const BatchTree& tree) const {
  uint64_t price = 0;
  tree.ForEachLink([&](uint32_t, ChannelIndex up, uint32_t packets) {
    for (uint32_t i = 0; i < packets; ++i) price += PriceAt(loads_.on(up) + i);
  });
  return price;
}

// The last of the leaf's packets stands for all of them.
uint64_t PathSpreader::Price(ChannelIndex over, uint32_t own) const {
  constexpr uint32_t kMaxRanks = 1 << 14;
  return PriceAt(loads_.on(over) + own + ranks_ - 1) * std::min(ranks_, kMaxRanks);
}

uint64_t PathSpreader::CostFrom(SwitchIndex at) {
  if (HasRoom(at)) return 0;
  if (at == root_) return kNoRoom;
  Node& node = nodes_[at.value()];
  if (node.valued == valuation_) return node.cost;
  uint64_t cost = kNoWay;
  if (IsMember(at)) {
    cost = Price(node.up, Leaving(at)) + CostFrom(node.next);
  } else {
    Node way;
    if (FindWay(at, way)) cost = way.cost;
  }
  node.valued = valuation_;
  node.cost = cost;
  return cost;
}

// Sets `cost`, `next` and `up` of the best way on. `row_` says 0 for the root's twins, too, which
// are 2 hops away.
bool PathSpreader::FindWay(SwitchIndex at, Node& way) {
  const TwinClasses& twins = snapshot_.routes->distances().classes();
  const uint8_t here = row_[twins.class_of(at)];
  if (here == SwitchDistances::kUnreachable) return false;
  const uint8_t wanted = here == 0 ? 1 : here - 1;
  const absl::Span<const Channel> channels = fabric_.switch_channels(at);
  const absl::Span<const uint32_t> classes = twins.classes_beside(at);
  const size_t n = channels.size();
  const size_t first = n == 0 ? 0 : root_.value() % n;  // equally good ones take turns
  uint64_t least = kNoWay;
  for (size_t turn = 0; turn < n; ++turn) {
    const size_t i = turn + first < n ? turn + first : turn + first - n;
    if (row_[classes[i]] != wanted) continue;
    const SwitchIndex to = fabric_.AsSwitch(channels[i].to);
    if (wanted == 0 && to != root_) continue;
    const uint64_t cost = Price(channels[i].index, 0) + CostFrom(to);
    if (cost >= least) continue;
    least = cost;
    way.next = to;
    way.up = channels[i].index;
  }
  way.cost = least;
  return least < kNoWay;
}

std::optional<BatchTree> PathSpreader::Lay(const BatchShape& shape) {
  if (nodes_[root_.value()].met > degrees_[root_.value()]) return std::nullopt;
  BatchTree tree;
  SwitchTree& physical = tree.physical;
  physical.switches = members_;
  physical.parents.reserve(members_.size());
  physical.up.reserve(members_.size());
  for (uint32_t v = 0; v < members_.size(); ++v) {
    Node& node = nodes_[members_[v].value()];
    node.position = v;
    physical.parents.push_back(v == 0 ? -1
                                      : static_cast<int32_t>(nodes_[node.next.value()].position));
    physical.up.push_back(v == 0 ? kNoChannel : node.up);
    if (degrees_[members_[v].value()] > 0 && node.met > 1) tree.serving.push_back(v);
  }
  if (tree.serving.empty() || tree.serving[0] != 0) return std::nullopt;
  physical.ranks_on.assign(members_.size(), 0);
  for (size_t i = 0; i < shape.leaves.size(); ++i) {
    physical.ranks_on[nodes_[shape.leaves[i].value()].position] = shape.ranks_on[i];
  }
  CountPackets(degrees_, tree);
  return tree;
}

// Rip up and reroute under exponential prices: with M the greatest load, the packet that brings a
// link to M - i costs about 4^-i of one that brings it to M (PathSpreader::PriceAt). Sending each
// packet over the cheapest path under such prices is within O(log links) of the least greatest load
// even if nothing is ever moved (Aspnes, Azar, Fiat, Plotkin and Waarts, J. ACM 44(3), 1997);
// here the sum of all prices falls with each tree that is moved, which ends it, and what it
// gains in one pass over the trees a descent from link to link takes hundreds of moves for.
//
//     for each tree, taken out, prices of its links found, the cheapest of these put back:
//       the old one
//       its root and servers, other paths                             (spread_paths)
//       a switch that sends over one of its hottest links becomes     (TryHotSender)
//         a server in the place of another, or the root: what meets
//         there no longer crosses that link
//       a root of the next distance by turns, with the old servers,   (TryOtherRoot)
//         or with such as lie on most ranks' way to it
//
// About four trees a communicator and pass.

namespace {

constexpr int kWalks = 4;                    // towards a root, in search of a server
constexpr size_t kNearRoots = 32;            // roots of a distance that take turns
constexpr size_t kTurn = 7919;               // prime: visits all of any shorter list
constexpr uint32_t kMaxRootsKept = 2 << 20;  // 48 MiB

}  // namespace

RootCandidates::RootCandidates(const Snapshot& snapshot, const BatchShapes& shapes,
                               const BatchState& state)
    : snapshot_(snapshot),
      shapes_(shapes),
      state_(state),
      most_lists_(kMaxRootsKept / std::max(snapshot.fabric->switch_count(), 1U) + 1) {}

absl::Span<const uint32_t> RootCandidates::Distances(uint32_t shape, uint32_t most_extra) {
  const std::vector<uint32_t>& all = RootsOf(shape).distances;
  const uint64_t most = uint64_t{shapes_.shapes[shape].nearest_hops} + most_extra;
  const auto end = absl::c_upper_bound(all, most);
  return absl::MakeConstSpan(all).first(static_cast<size_t>(end - all.begin()));
}

bool RootCandidates::IsBefore(const Root& a, const Root& b) const {
  const auto key = [&](const Root& r) {
    return std::make_tuple(r.total_hops, state_.loads().through(r.index), r.index);
  };
  return key(a) < key(b);
}

absl::Span<const SwitchIndex> RootCandidates::PutForward(uint32_t shape, uint32_t hops,
                                                         size_t wanted) {
  const std::vector<Root>& all = RootsOf(shape).all;
  near_.clear();
  forward_.clear();
  auto r =
      absl::c_lower_bound(all, hops, [](const Root& root, uint32_t h) { return root.hops < h; });
  for (; r != all.end() && r->hops == hops; ++r) {
    if (state_.degrees()[r->index.value()] == 0) continue;
    if (near_.size() >= kNearRoots && r->total_hops > near_[0].total_hops) break;
    near_.push_back(*r);
  }
  if (near_.empty()) return forward_;
  const auto first =
      absl::c_min_element(near_, [&](const Root& a, const Root& b) { return IsBefore(a, b); });
  std::swap(near_[0], *first);
  for (size_t i = 0; i < wanted && i < near_.size(); ++i) {
    if (i > 0) {
      turn_ += kTurn;
      std::swap(near_[i], near_[i + turn_ % (near_.size() - i)]);
    }
    forward_.push_back(near_[i].index);
  }
  return forward_;
}

const RootCandidates::Roots& RootCandidates::RootsOf(uint32_t shape) {
  if (const auto known = roots_.find(shape); known != roots_.end()) return known->second;
  if (roots_.size() >= most_lists_) roots_.clear();
  Roots& roots = roots_[shape];
  const BatchShape& of = shapes_.shapes[shape];
  const SwitchDistances& distances = snapshot_.routes->distances();
  const TwinClasses& twins = distances.classes();
  // Of twins the rows say 0 hops; they are 2 apart.
  std::vector<uint64_t> total;                                     // [class]
  std::vector<uint32_t> own(snapshot_.fabric->switch_count(), 0);  // [switch] ranks on it
  for (size_t i = 0; i < of.leaves.size(); ++i) {
    const uint32_t leaf_class = twins.class_of(of.leaves[i]);
    const absl::Span<const uint8_t> row = distances.ClassRowTo(leaf_class);
    total.resize(row.size(), 0);
    for (size_t k = 0; k < row.size(); ++k) total[k] += uint64_t{row[k]} * of.ranks_on[i];
    total[leaf_class] += uint64_t{2} * of.ranks_on[i];
    own[of.leaves[i].value()] = of.ranks_on[i];
  }
  const std::vector<uint8_t> farthest = FarthestHops(snapshot_, of.leaves);
  roots.all.reserve(farthest.size());
  for (uint32_t s = 0; s < farthest.size(); ++s) {
    if (farthest[s] == SwitchDistances::kUnreachable) continue;
    const uint64_t all_hops = total[twins.class_of(SwitchIndex(s))] - uint64_t{2} * own[s];
    roots.all.push_back({farthest[s], all_hops, SwitchIndex(s)});
  }
  absl::c_sort(roots.all, [](const Root& a, const Root& b) {
    return std::tie(a.hops, a.total_hops, a.index) < std::tie(b.hops, b.total_hops, b.index);
  });
  for (const Root& root : roots.all) {
    if (roots.distances.empty() || roots.distances.back() < root.hops) {
      roots.distances.push_back(root.hops);
    }
  }
  return roots;
}

// What one communicator could have instead of `old`, while it has nothing.
struct TreeRerouter::Search {
  uint32_t communicator;
  const BatchShape& shape;
  const BatchTree& old;
  uint32_t most;        // greatest load with `old`
  uint64_t price;       // of `best`, or else of `old`
  uint32_t most_extra;  // hops
  std::optional<BatchTree> best;
};

TreeRerouter::TreeRerouter(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
                           BatchState& state, BatchOffers& offers, RootCandidates& candidates)
    : snapshot_(snapshot),
      shapes_(shapes),
      reach_(reach),
      state_(state),
      offers_(offers),
      candidates_(candidates),
      spreader_(snapshot, state.loads()) {}

bool TreeRerouter::Pass() {
  if (snapshot_.routes->kind() != RouteKind::kShortestPath) return false;
  spreader_.set_most(state_.loads().most());
  bool changed = false;
  for (uint32_t c = 0; c < state_.size() && !offers_.exhausted(); ++c) {
    if (!state_.tree(c).has_value() || state_.tree(c)->serving.empty()) continue;
    changed |= Reroute(c);
  }
  state_.ForgetJournal();
  return changed;
}

bool TreeRerouter::Reroute(uint32_t communicator) {
  state_.ForgetJournal();
  const BatchTree old = *state_.tree(communicator);
  const uint32_t most = state_.loads().most();
  state_.Replace(communicator, std::nullopt);
  Search search{communicator,
                shapes_.of(communicator),
                old,
                most,
                spreader_.PriceOf(old),
                reach_ == RootReach::kAny ? UINT32_MAX : old.extra_hops,
                std::nullopt};
  Consider(Spread(communicator, old), old.extra_hops, search);
  TryHotSender(search);
  TryOtherRoot(search);
  if (!search.best) {
    state_.RevertTo(0);
    return false;
  }
  state_.Replace(communicator, std::move(search.best));
  return true;
}

void TreeRerouter::Consider(std::optional<BatchTree> tree, uint32_t extra_hops,
                            Search& search) const {
  if (!tree || tree->serving.size() > search.old.serving.size()) return;
  const uint64_t price = spreader_.PriceOf(*tree);
  if (price >= search.price) return;
  if (PeakOf(*tree, state_.loads(), /*is_counted=*/false) > search.most) return;
  tree->extra_hops = extra_hops;
  search.price = price;
  search.best = std::move(tree);
}

// Of the switches that send over links with the greatest load or nearly so, one by turns.
void TreeRerouter::TryHotSender(Search& search) {
  const BatchTree& old = search.old;
  found_.clear();
  old.ForEachLink([&](uint32_t v, ChannelIndex up, uint32_t packets) {
    const SwitchIndex sender = old.physical.switches[v];
    const uint32_t load = state_.loads().on(up) + packets;
    if (load + 1 >= search.most && state_.degrees()[sender.value()] > 0) found_.push_back(sender);
  });
  if (found_.empty()) return;
  const SwitchIndex sender = found_[Turn(found_.size())];
  const SwitchIndex root = old.physical.root();
  const size_t others = old.serving.size() - 1;
  if (others > 0) {
    SetServers(old);
    MoveServer(old.physical.switches[old.serving[1 + Turn(others)]], sender);
    Consider(Build(search.shape, root), old.extra_hops, search);
  }
  uint32_t hops = 0;
  for (const SwitchIndex leaf : search.shape.leaves) {
    hops = std::max<uint32_t>(hops, snapshot_.routes->distances().Between(leaf, sender));
  }
  if (hops - search.shape.nearest_hops > search.most_extra) return;
  SetServers(old);
  MoveServer(root, sender);
  Consider(Build(search.shape, sender), hops - search.shape.nearest_hops, search);
}

void TreeRerouter::TryOtherRoot(Search& search) {
  const uint32_t shape = shapes_.shape_of[search.communicator];
  const absl::Span<const uint32_t> distances = candidates_.Distances(shape, search.most_extra);
  if (distances.empty()) return;
  const uint32_t hops = distances[Turn(distances.size())];
  const absl::Span<const SwitchIndex> roots = candidates_.PutForward(shape, hops, 2);
  if (roots.empty()) return;
  const SwitchIndex root = roots[Turn(roots.size())];
  SetServers(search.old);
  MoveServer(search.old.physical.root(), root);
  std::optional<BatchTree> tree = Build(search.shape, root);
  if (!tree && FindServers(search.shape, root, search.old.serving.size())) {
    tree = Build(search.shape, root);
  }
  Consider(std::move(tree), hops - search.shape.nearest_hops, search);
}

// Every call the next number below `of`, in an order that visits all.
size_t TreeRerouter::Turn(size_t of) {
  turn_ += kTurn;
  return turn_ % of;
}

std::optional<BatchTree> TreeRerouter::Spread(uint32_t communicator, const BatchTree& like) {
  SetServers(like);
  return Build(shapes_.of(communicator), like.physical.root());
}

std::optional<BatchTree> TreeRerouter::Build(const BatchShape& shape, SwitchIndex root) {
  offers_.Count();
  return spreader_.Build(shape, root, servers_);
}

void TreeRerouter::SetServers(const BatchTree& like) {
  servers_.assign(state_.limits().size(), 0);
  for (const uint32_t v : like.serving) {
    const uint32_t s = like.physical.switches[v].value();
    servers_[s] = state_.limits()[s];
  }
}

void TreeRerouter::MoveServer(SwitchIndex from, SwitchIndex to) {
  servers_[from.value()] = 0;
  servers_[to.value()] = state_.limits()[to.value()];
}

// Fills servers_ with the root and others that have an entry: of a few switches met on walks
// towards the root those that most ranks could send to on their way, then those farthest from the
// root, where packets come together before they cross links, then those through which least is
// promised.
bool TreeRerouter::FindServers(const BatchShape& shape, SwitchIndex root, size_t count) {
  const SwitchDistances& distances = snapshot_.routes->distances();
  const absl::Span<const uint32_t> degrees = state_.degrees();
  servers_.assign(degrees.size(), 0);
  servers_[root.value()] = degrees[root.value()];
  const auto key = [&](SwitchIndex s) {
    uint32_t ranks = 0;
    for (size_t i = 0; i < shape.leaves.size(); ++i) {
      const uint32_t by_way = distances.Between(shape.leaves[i], s) + distances.Between(s, root);
      if (by_way == distances.Between(shape.leaves[i], root)) ranks += shape.ranks_on[i];
    }
    return std::make_tuple(UINT32_MAX - std::min(ranks, degrees[s.value()]),
                           UINT32_MAX - distances.Between(s, root), state_.loads().through(s));
  };
  for (; count > 1; --count) {
    found_.clear();
    for (int walk = 0; walk < kWalks; ++walk) {
      std::optional<SwitchIndex> at = shape.leaves[Turn(shape.leaves.size())];
      while (at && *at != root) {
        if (degrees[at->value()] > 0 && servers_[at->value()] == 0) found_.push_back(*at);
        at = StepTowards(*at, root);
      }
    }
    if (found_.empty()) return false;
    const SwitchIndex best =
        *absl::c_min_element(found_, [&](SwitchIndex a, SwitchIndex b) { return key(a) < key(b); });
    servers_[best.value()] = degrees[best.value()];
  }
  return true;
}

// One of the neighbours that are nearer to the root, by turns.
std::optional<SwitchIndex> TreeRerouter::StepTowards(SwitchIndex at, SwitchIndex root) {
  const Fabric& fabric = *snapshot_.fabric;
  const SwitchDistances& distances = snapshot_.routes->distances();
  const absl::Span<const Channel> channels = fabric.switch_channels(at);
  const size_t first = channels.empty() ? 0 : Turn(channels.size());
  for (size_t i = 0; i < channels.size(); ++i) {
    const SwitchIndex next = fabric.AsSwitch(channels[(first + i) % channels.size()].to);
    if (distances.Between(next, root) + 1U == distances.Between(at, root)) return next;
  }
  return std::nullopt;
}

}  // namespace coppice
