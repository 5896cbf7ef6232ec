#include "daemon/tree/type2_candidate.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {

// Minimum cost of a type II tree, exact for arbitrary degree limits (Chen 2024, 4.2, algorithm 5).
//
//          R  K=5          An item is a member or a serving switch without a parent yet. s items
//        / | \             reach v; serving turns them into max(1, s - (K(v) - 1)), i.e. v absorbs
//       A  B  C  K=5       x(v) <= c(v) = K(v) - 1 of them and always leaves one.
//      /|\ |\ |\           .
//      m m m  m m ...      P members need sum x(v) = P - 1 with few v of x(v) > 0.
//
// Let a(u, j) be the most items that j serving switches in the subtree of u absorb, and P(u) the
// members there. (out(u, j) = P(u) - a(u, j) is the usual formulation, combined by min-plus.) Then
//
//     a(u, .) = min( P(u) - 1,  a(child 1, .) (+) a(child 2, .) (+) ... (+) {0, c(u)} )
//
// with (+) the max-plus convolution over j. {0, c(u)} is concave in j, max-plus convolution keeps
// concavity (it merges the sorted gains), and so does the minimum with a constant (it cuts the sum
// of the gains off, smallest first). By induction every a(u, .) is concave, i.e. is the sorted list
// of its gains, and each gain belongs to one switch. So:
//
//     gains(u) = merge of the children's gains, plus c(u);
//     while their sum exceeds P(u) - 1: shrink the smallest, dropping it at 0.
//
// If the root's gains sum to P - 1, their switches are a least set: fewer would absorb less. The
// lists are mergeable heaps (leftist trees, Crane 1972), smallest first: O(log s) for each of at
// most s merges, insertions and removals.
//
// Departs from the paper: children are lifted one by one, K(v) may be less than v's children in the
// physical tree, and switches that can only forward stay in it.

namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Heaps of gains, smallest on top, one heap node per vertex.
class GainHeaps {
 public:
  explicit GainHeaps(const ReductionProblem& problem)
      : nodes_(problem.parents.size()), preference_(problem.preference) {}

  uint32_t Single(uint32_t vertex, uint64_t gain) {
    nodes_[vertex] = {gain, kNone, kNone, 1};
    return vertex;
  }

  // The right spine has O(log n) nodes, which bounds the recursion.
  uint32_t Merge(uint32_t a, uint32_t b) {
    if (a == kNone) return b;
    if (b == kNone) return a;
    if (GivesWay(b, a)) std::swap(a, b);
    Node& top = nodes_[a];
    top.right = Merge(top.right, b);
    if (Rank(top.left) < Rank(top.right)) std::swap(top.left, top.right);
    top.rank = Rank(top.right) + 1;
    return a;
  }

  uint64_t& gain(uint32_t top) { return nodes_[top].gain; }
  uint32_t Pop(uint32_t top) { return Merge(nodes_[top].left, nodes_[top].right); }

  void Collect(uint32_t top, std::vector<uint32_t>& vertices) const {
    std::vector<uint32_t> open;
    if (top != kNone) open.push_back(top);
    while (!open.empty()) {
      const uint32_t v = open.back();
      open.pop_back();
      vertices.push_back(v);
      for (const uint32_t below : {nodes_[v].left, nodes_[v].right}) {
        if (below != kNone) open.push_back(below);
      }
    }
  }

 private:
  struct Node {
    uint64_t gain;
    uint32_t left, right, rank;
  };

  uint32_t Rank(uint32_t v) const { return v == kNone ? 0 : nodes_[v].rank; }

  // True if `a` is dropped before `b`.
  bool GivesWay(uint32_t a, uint32_t b) const {
    if (nodes_[a].gain != nodes_[b].gain) return nodes_[a].gain < nodes_[b].gain;
    if (!preference_.empty() && preference_[a] != preference_[b]) {
      return preference_[a] > preference_[b];
    }
    return a > b;
  }

  std::vector<Node> nodes_;
  absl::Span<const uint32_t> preference_;
};

// What is known of one subtree: gains as a heap, their sum and number, and its members.
struct Subtree {
  uint32_t heap = kNone;
  uint32_t count = 0;
  uint64_t absorbed = 0;
  uint64_t members = 0;
};

// Computes all subtrees bottom-up. Above the vertex `top` nothing serves.
std::vector<Subtree> AbsorbUpTo(const ReductionProblem& problem, uint32_t top, GainHeaps& heaps) {
  const uint32_t n = static_cast<uint32_t>(problem.parents.size());
  std::vector<Subtree> subtrees(n);
  for (uint32_t v = n; v-- > top;) {
    Subtree& here = subtrees[v];
    here.members += problem.members[v];
    if (problem.degrees[v] >= 2 && here.members >= 2) {
      const uint64_t gain = problem.degrees[v] - uint64_t{1};
      here.heap = heaps.Merge(here.heap, heaps.Single(v, gain));
      here.absorbed += gain;
      ++here.count;
    }
    const uint64_t most = here.members == 0 ? 0 : here.members - 1;
    while (here.absorbed > most) {
      uint64_t& smallest = heaps.gain(here.heap);
      const uint64_t excess = here.absorbed - most;
      if (smallest > excess) {
        smallest -= excess;
        here.absorbed = most;
      } else {
        here.absorbed -= smallest;
        here.heap = heaps.Pop(here.heap);
        --here.count;
      }
    }
    if (v == top) break;
    Subtree& above = subtrees[static_cast<uint32_t>(problem.parents[v])];
    above.heap = heaps.Merge(above.heap, here.heap);
    above.count += here.count;
    above.absorbed += here.absorbed;
    above.members += here.members;
  }
  return subtrees;
}

// The lowest vertex that has all members below or at it and needs no more serving switches than the
// whole tree: the vertices that have all members are a path down from the root.
uint32_t LowestTop(absl::Span<const Subtree> subtrees) {
  uint32_t lowest = 0;
  for (uint32_t v = 1; v < subtrees.size(); ++v) {
    if (subtrees[v].members == subtrees[0].members && subtrees[v].count == subtrees[0].count &&
        subtrees[v].absorbed == subtrees[0].absorbed) {
      lowest = v;
    }
  }
  return lowest;
}

}  // namespace

ReductionChoice ChooseServing(const ReductionProblem& problem) {
  ReductionChoice choice;
  if (problem.parents.empty()) return {.feasible = true, .serving = {}, .in_the_way = {}};
  GainHeaps heaps(problem);
  std::vector<Subtree> subtrees = AbsorbUpTo(problem, 0, heaps);
  const uint64_t members = subtrees[0].members;
  choice.feasible = members <= 1 || subtrees[0].absorbed == members - 1;
  if (!choice.feasible) {
    for (uint32_t v = 0; v < subtrees.size(); ++v) {
      if (subtrees[v].members >= 2 && problem.degrees[v] < 2) choice.in_the_way.push_back(v);
    }
    return choice;
  }
  const uint32_t top = LowestTop(subtrees);
  if (top != 0) subtrees = AbsorbUpTo(problem, top, heaps);
  heaps.Collect(subtrees[top].heap, choice.serving);
  absl::c_sort(choice.serving);
  return choice;
}

namespace {

// Lists of items, one per vertex, that are joined in O(1) and keep their order. Items 0..n-1 are
// the serving vertices, n.. the members.
class ItemLists {
 public:
  ItemLists(size_t lists, size_t items)
      : heads_(lists, kNone), tails_(lists, kNone), sizes_(lists, 0), next_(items, kNone) {}
  void Push(uint32_t list, uint32_t item) {
    next_[item] = kNone;
    Link(list, item, item, 1);
  }
  // Appends list `from` to list `to`; `from` must not be used afterwards.
  void Join(uint32_t to, uint32_t from) {
    if (heads_[from] != kNone) Link(to, heads_[from], tails_[from], sizes_[from]);
  }
  uint32_t size(uint32_t list) const { return sizes_[list]; }
  void Take(uint32_t list, std::vector<uint32_t>& items) {
    items.clear();
    for (uint32_t i = heads_[list]; i != kNone; i = next_[i]) items.push_back(i);
    heads_[list] = tails_[list] = kNone;
    sizes_[list] = 0;
  }

 private:
  void Link(uint32_t list, uint32_t head, uint32_t tail, uint32_t count) {
    if (heads_[list] == kNone) {
      heads_[list] = head;
    } else {
      next_[tails_[list]] = head;
    }
    tails_[list] = tail;
    sizes_[list] += count;
  }
  std::vector<uint32_t> heads_, tails_, sizes_, next_;
};

}  // namespace

ReductionTree HangItems(const ReductionProblem& problem, absl::Span<const uint32_t> serving) {
  const uint32_t n = static_cast<uint32_t>(problem.parents.size());
  ReductionTree tree;
  tree.first_member.resize(n + 1, 0);
  for (uint32_t v = 0; v < n; ++v)
    tree.first_member[v + 1] = tree.first_member[v] + problem.members[v];
  tree.serving_parents.assign(n, ReductionProblem::kNoParent);
  tree.member_parents.assign(tree.first_member[n], ReductionProblem::kNoParent);

  ItemLists lists(n, size_t{n} + tree.first_member[n]);
  std::vector<uint32_t> level(n + tree.first_member[n], 0);  // serving vertices on a path below
  std::vector<uint32_t> items;
  size_t left = serving.size();
  for (uint32_t v = n; v-- > 0;) {
    for (uint32_t m = tree.first_member[v]; m < tree.first_member[v + 1]; ++m) lists.Push(v, n + m);
    if (left > 0 && serving[left - 1] == v) {
      --left;
      lists.Take(v, items);
      const size_t room = std::min<size_t>(items.size(), problem.degrees[v]);
      if (room < items.size()) {
        absl::c_stable_sort(items, [&](uint32_t a, uint32_t b) { return level[a] < level[b]; });
      }
      for (size_t i = 0; i < items.size(); ++i) {
        const uint32_t item = items[i];
        if (i >= room) {
          lists.Push(v, item);
          continue;
        }
        level[v] = std::max(level[v], level[item] + 1);
        (item < n ? tree.serving_parents[item] : tree.member_parents[item - n]) =
            static_cast<int32_t>(v);
      }
      lists.Push(v, v);
    }
    if (problem.parents[v] >= 0) lists.Join(static_cast<uint32_t>(problem.parents[v]), v);
  }
  assert(lists.size(0) <= 1 || serving.empty());
  return tree;
}

Type2Candidate MakeType2Candidate(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
                                  const MemberPlaces& places, uint32_t highest,
                                  PhysicalTree physical) {
  Type2Candidate candidate;
  const size_t n = physical.vertices.size();
  const size_t switches = n - places.endpoints.size();
  candidate.members.resize(n, 0);
  candidate.degrees.resize(n, 0);
  std::copy(places.ranks_at.begin(), places.ranks_at.end(),
            candidate.members.begin() + static_cast<int64_t>(switches));
  candidate.members_on.resize(switches, 0);
  for (size_t v = switches; v < n; ++v) {
    candidate.members_on[static_cast<size_t>(physical.parents[v])] += candidate.members[v];
  }
  for (size_t v = 0; v < switches; ++v) {
    const SwitchCapacity& c = capacity[fabric.AsSwitch(physical.vertices[v]).value()];
    candidate.degrees[v] = c.entries_free > 0 ? c.degree_limit : 0;
    candidate.has_weaker |= candidate.degrees[v] < highest;
  }
  candidate.physical = std::make_shared<const PhysicalTree>(std::move(physical));
  return candidate;
}

std::vector<uint32_t> Helpers(const Type2Candidate& candidate) {
  std::vector<uint64_t> below(candidate.members_on.begin(), candidate.members_on.end());
  std::vector<uint32_t> helpers;
  for (size_t v = below.size(); v-- > 0;) {
    if (candidate.degrees[v] >= 2 && below[v] >= 2) helpers.push_back(static_cast<uint32_t>(v));
    if (v > 0) below[static_cast<size_t>(candidate.physical->parents[v])] += below[v];
  }
  absl::c_reverse(helpers);
  return helpers;
}

std::vector<uint32_t> ServingPreference(const Snapshot& snapshot, const Type2Candidate& candidate,
                                        bool deepest_first) {
  constexpr uint32_t kLoadSteps = 1 << 20;
  const PhysicalTree& physical = *candidate.physical;
  const size_t n = candidate.switch_count();
  std::vector<uint32_t> depth(n, 0), preference(n, 0);
  for (size_t v = 1; v < n; ++v) depth[v] = depth[static_cast<size_t>(physical.parents[v])] + 1;
  for (size_t v = 0; v < n; ++v) {
    uint32_t load = 0;
    if (v > 0) {
      const float up = snapshot.utilisation(physical.up[v]);
      const float down = snapshot.utilisation(Fabric::Reverse(physical.up[v]));
      load = static_cast<uint32_t>(std::clamp(std::max(up, down), 0.0F, 1.0F) * kLoadSteps);
    }
    const uint32_t rank = deepest_first ? 255 - std::min(depth[v], 255U) : depth[v];
    preference[v] = rank * (kLoadSteps + 1) + load;
  }
  return preference;
}

AggregationTree RanksOnly(const Fabric& fabric, Members members) {
  AggregationTree tree;
  tree.type = TreeType::kTypeII;
  tree.builder = TreeBuilder::kMinimumCost;
  tree.rank_count = static_cast<uint32_t>(members.size());
  tree.vertices.reserve(members.size() + 16);
  for (const EndpointIndex e : members) tree.vertices.push_back(fabric.Vertex(e));
  return tree;
}

// Numbers the nodes: ranks, then serving switches by index.
AggregationTree HangRanks(const Fabric& fabric, Members ranks, const MemberPlaces& places,
                          const PhysicalTree& physical, absl::Span<const uint32_t> members,
                          absl::Span<const uint32_t> degrees, absl::Span<const uint32_t> serving) {
  const ReductionTree hung = HangItems({physical.parents, members, degrees, {}}, serving);
  AggregationTree tree = RanksOnly(fabric, ranks);
  std::vector<uint32_t> order(serving.begin(), serving.end());
  absl::c_sort(order,
               [&](uint32_t a, uint32_t b) { return physical.vertices[a] < physical.vertices[b]; });
  std::vector<int32_t> node(degrees.size(), AggregationTree::kNoParent);
  for (const uint32_t v : order) {
    node[v] = static_cast<int32_t>(tree.vertices.size());
    tree.vertices.push_back(physical.vertices[v]);
  }
  const auto node_of = [&](int32_t vertex) {
    return vertex < 0 ? AggregationTree::kNoParent : node[static_cast<size_t>(vertex)];
  };
  const size_t first = degrees.size() - places.endpoints.size();
  std::vector<uint32_t> next(hung.first_member.begin() + static_cast<int64_t>(first),
                             hung.first_member.end());
  tree.parents.reserve(tree.vertices.size());
  for (uint32_t rank = 0; rank < tree.rank_count; ++rank) {
    tree.parents.push_back(node_of(hung.member_parents[next[places.endpoint_of_rank[rank]]++]));
  }
  for (const uint32_t v : order) tree.parents.push_back(node_of(hung.serving_parents[v]));
  return tree;
}

// Walks from every endpoint towards the root until it meets a switch that is in the tree already:
//
//        root                 a: walks a1, a2, root                 vertices: root a2 a1 | a b
//       /                     b: walks a1, which is known           (unwound, so parents come
//       first)
//      a2 -- a1 -- a, b
//
// Each switch is walked once, so the whole costs one routing step per vertex of the tree.

namespace {

constexpr int32_t kUnseen = -1;
constexpr int32_t kOnThisWalk = -2;

class PhysicalWalker {
 public:
  PhysicalWalker(const Snapshot& snapshot, SwitchIndex root)
      : snapshot_(snapshot),
        fabric_(*snapshot.fabric),
        root_(root),
        least_loaded_(snapshot.routes->kind() == RouteKind::kShortestPath &&
                      !snapshot.load->empty()),
        positions_(fabric_.switch_count(), kUnseen) {
    tree_.root = fabric_.Vertex(root);
    Append(tree_.root, -1, kNoChannel);
    positions_[root.value()] = 0;
  }

  absl::StatusOr<PhysicalTree> Walk(absl::Span<const EndpointIndex> endpoints) {
    const size_t size = endpoints.size() + 64;
    tree_.vertices.reserve(size);
    tree_.parents.reserve(size);
    tree_.up.reserve(size);
    for (const EndpointIndex endpoint : endpoints) RETURN_IF_ERROR(AddSwitches(endpoint));
    for (const EndpointIndex endpoint : endpoints) {
      const SwitchIndex attached = *fabric_.attached_switch(endpoint);
      Append(fabric_.Vertex(endpoint), positions_[attached.value()], fabric_.uplink(endpoint));
    }
    return std::move(tree_);
  }

 private:
  struct Step {
    SwitchIndex at;
    ChannelIndex next;
  };

  absl::Status AddSwitches(EndpointIndex endpoint) {
    const std::optional<SwitchIndex> attached = fabric_.attached_switch(endpoint);
    if (!attached) {
      return absl::FailedPreconditionError(
          absl::StrCat(Name(fabric_.Vertex(endpoint)), " is cabled to no switch"));
    }
    walk_.clear();
    SwitchIndex at = *attached;
    while (positions_[at.value()] == kUnseen) {
      positions_[at.value()] = kOnThisWalk;
      const ChannelIndex next = Next(at);
      walk_.push_back({at, next});
      if (next == kNoChannel || !fabric_.IsSwitch(fabric_.channel_to(next))) {
        return RouteError(endpoint, at, "breaks off at");
      }
      at = fabric_.AsSwitch(fabric_.channel_to(next));
    }
    if (positions_[at.value()] == kOnThisWalk) return RouteError(endpoint, at, "loops through");
    int32_t parent = positions_[at.value()];
    for (size_t i = walk_.size(); i-- > 0;) {
      parent = Append(fabric_.Vertex(walk_[i].at), parent, walk_[i].next);
      positions_[walk_[i].at.value()] = parent;
    }
    return absl::OkStatus();
  }

  int32_t Append(VertexIndex vertex, int32_t parent, ChannelIndex up) {
    tree_.vertices.push_back(vertex);
    tree_.parents.push_back(parent);
    tree_.up.push_back(up);
    return static_cast<int32_t>(tree_.vertices.size() - 1);
  }

  ChannelIndex Next(SwitchIndex at) const {
    const ChannelIndex routed = snapshot_.routes->NextChannel(at, tree_.root);
    if (!least_loaded_ || routed == kNoChannel) return routed;
    const auto hops = [&](SwitchIndex s) {
      return snapshot_.routes->distances().Between(s, root_);
    };
    ChannelIndex best = routed;
    float load = snapshot_.utilisation(routed);
    for (const Channel& channel : fabric_.switch_channels(at)) {
      if (hops(fabric_.AsSwitch(channel.to)) + 1 != hops(at)) continue;
      if (snapshot_.utilisation(channel.index) < load) {
        best = channel.index;
        load = snapshot_.utilisation(channel.index);
      }
    }
    return best;
  }

  std::string Name(VertexIndex vertex) const { return Describe(fabric_, vertex); }

  absl::Status RouteError(EndpointIndex endpoint, SwitchIndex at, const char* what) const {
    const bool by_table = snapshot_.routes->kind() == RouteKind::kForwardingTables;
    return absl::FailedPreconditionError(
        absl::StrCat("the route from ", Name(fabric_.Vertex(endpoint)), " to ", Name(tree_.root),
                     " ", what, " ", Name(fabric_.Vertex(at)),
                     by_table ? absl::StrCat(": check that switch's forwarding table for LID ",
                                             fabric_.lid(tree_.root).value())
                              : ": check that switch's cables"));
  }

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const SwitchIndex root_;
  const bool least_loaded_;
  PhysicalTree tree_;
  std::vector<int32_t> positions_;  // [switch] position in the tree, or a mark
  std::vector<Step> walk_;
};

}  // namespace

absl::StatusOr<PhysicalTree> BuildPhysicalTree(const Snapshot& snapshot,
                                               absl::Span<const EndpointIndex> endpoints,
                                               SwitchIndex root) {
  return PhysicalWalker(snapshot, root).Walk(endpoints);
}

}  // namespace coppice
