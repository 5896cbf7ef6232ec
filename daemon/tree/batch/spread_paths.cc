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
#include "daemon/tree/batch/spread_paths.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/tree/batch/tree_builder.h"

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
  waiting_servers_ = static_cast<uint32_t>(
      std::count_if(degrees.begin(), degrees.end(), [](uint32_t d) { return d > 0; }) - 1);
  Node& top = nodes_[root.value()];
  top.member = tree_;
  top.met = 0;
  members_.assign(1, root);
  std::vector<uint32_t> order(shape.leaves.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return shape.ranks_on[a] > shape.ranks_on[b]; });
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
  for (size_t v = 1; v < tree.packets.size(); ++v) {
    if (tree.packets[v] == 0) continue;
    const uint32_t load = loads_.on(tree.physical.up[v]);
    for (uint32_t i = 0; i < tree.packets[v]; ++i) price += PriceAt(load + i);
  }
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

}  // namespace coppice
