#include "daemon/tree/forest/shapes.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr double kShareRounding = 1e-9;
// Of the inner nodes that are equally near, so many are compared by the links between.
constexpr size_t kMaxRoutesCompared = 4;

class ForestBuilder {
 public:
  ForestBuilder(const ForestHosts& hosts, const ForestShape& shape, ForestRoutes& routes)
      : hosts_(hosts),
        shape_(shape),
        routes_(routes),
        slots_(hosts.count(), 0),
        seen_(hosts.count(), 0),
        load_(hosts.count(), 0),
        parent_(hosts.count()),
        spokesman_(hosts.count()) {
    for (const std::vector<uint32_t>& ranks : hosts.ranks) {
      for (const uint32_t rank : ranks) {
        rank_count_ = std::max(rank_count_, rank + 1);
      }
    }
    DealOut();
  }

  absl::StatusOr<std::vector<ShapedTree>> Build() {
    std::vector<ShapedTree> trees;
    size_t all = 0;
    for (const std::vector<uint32_t>& inner : inner_) all += inner.size();
    for (tree_ = 0; tree_ < shape_.trees; ++tree_) {
      share_ = shape_.inner == InnerHosts::kInTurn
                   ? static_cast<double>(inner_[tree_].size()) / static_cast<double>(all)
                   : 1.0 / shape_.trees;
      ASSIGN_OR_RETURN(ShapedTree tree, BuildTree());
      trees.push_back(std::move(tree));
    }
    return trees;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // inner_[tree]: hosts in order of place.
  void DealOut() {
    inner_.resize(shape_.trees);
    switch (shape_.inner) {
      case InnerHosts::kInTurn:
        DealInTurn();
        break;
      case InnerHosts::kOneALeaf:
        DealOneALeaf();
        break;
      case InnerHosts::kAll:
      case InnerHosts::kHalves:
        for (std::vector<uint32_t>& inner : inner_) {
          inner.resize(hosts_.count());
          std::iota(inner.begin(), inner.end(), 0U);
        }
    }
    for (const std::vector<uint32_t>& inner : inner_) {
      for (const uint32_t host : inner) ++slots_[host];
    }
  }

  void DealInTurn() {
    const uint32_t count = hosts_.count();
    const uint32_t rounds = (shape_.trees + count - 1) / count;  // no tree without inner nodes
    for (uint32_t slot = 0; slot < count * rounds; ++slot) {
      std::vector<uint32_t>& inner = inner_[slot % shape_.trees];
      const uint32_t host = slot / rounds;
      if (inner.empty() || inner.back() != host) inner.push_back(host);
    }
  }

  void DealOneALeaf() {
    const std::vector<uint32_t>& leaf = hosts_.groups[0];
    for (uint32_t begin = 0, end = 0; begin < hosts_.count(); begin = end) {
      while (end < hosts_.count() && leaf[end] == leaf[begin]) ++end;
      for (uint32_t t = 0; t < shape_.trees; ++t) inner_[t].push_back(begin + t % (end - begin));
    }
  }

  absl::StatusOr<ShapedTree> BuildTree() {
    std::fill(parent_.begin(), parent_.end(), kNone);
    is_inner_.assign(hosts_.count(), false);
    for (const uint32_t host : inner_[tree_]) {
      is_inner_[host] = true;
      ++seen_[host];
    }
    ChooseSpokesmen();
    const uint32_t root = JoinGroups();
    load_[root] -= share_;  // nothing comes down to it
    RETURN_IF_ERROR(HangLeaves());
    return Finish(root);
  }

  // Ranks of one host take runs of trees in turn, and each host begins its runs at another tree: a
  // rank reduces what its host has tree by tree, and the first trees are not those of all hosts.
  void ChooseSpokesmen() {
    for (uint32_t h = 0; h < hosts_.count(); ++h) {
      const auto ranks = static_cast<uint32_t>(hosts_.ranks[h].size());
      const uint32_t run = (shape_.trees + ranks - 1) / ranks;
      const uint32_t turn = (tree_ + h % run) % shape_.trees;
      spokesman_[h] = hosts_.ranks[h][uint64_t{turn} * ranks / shape_.trees];
    }
  }

  void Hang(uint32_t host, uint32_t parent) {
    parent_[host] = parent;
    load_[parent] += share_;
  }

  // --- The top ---

  uint32_t JoinGroups() {
    if (shape_.inner == InnerHosts::kHalves) {
      const auto root = static_cast<uint32_t>(uint64_t{tree_} * hosts_.count() / shape_.trees);
      JoinHalves(0, hosts_.count(), root);
      return root;
    }
    std::vector<uint32_t> heads = inner_[tree_];
    if (shape_.by_group) {
      for (const std::vector<uint32_t>& group : hosts_.groups) heads = JoinWithin(group, heads);
    }
    return JoinAll(heads);
  }

  // One head is left of each group.
  std::vector<uint32_t> JoinWithin(const std::vector<uint32_t>& group,
                                   const std::vector<uint32_t>& heads) {
    std::vector<uint32_t> left;
    for (size_t begin = 0, end = 0; begin < heads.size(); begin = end) {
      while (end < heads.size() && group[heads[end]] == group[heads[begin]]) ++end;
      left.push_back(JoinAll({heads.begin() + static_cast<ptrdiff_t>(begin),
                              heads.begin() + static_cast<ptrdiff_t>(end)}));
    }
    return left;
  }

  // The root of a tree over `heads`.
  uint32_t JoinAll(std::vector<uint32_t> heads) {
    std::rotate(heads.begin(), heads.begin() + static_cast<ptrdiff_t>(LeastLoaded(heads)),
                heads.end());
    JoinBelow(heads, 0, heads.size());
    return heads.front();
  }

  // heads[begin] is the root of the others up to `end`, in `fanout` runs of neighbours.
  void JoinBelow(const std::vector<uint32_t>& heads, size_t begin, size_t end) {
    const size_t rest = end - begin - 1;
    const size_t runs = std::min<size_t>(rest, shape_.fanout);
    for (size_t run = 0; run < runs; ++run) {
      const size_t from = begin + 1 + rest * run / runs, to = begin + 1 + rest * (run + 1) / runs;
      Hang(heads[from], heads[begin]);
      JoinBelow(heads, from, to);
    }
  }

  // Between `begin` and `end`: `root`'s half sends through it, the other half through the host that
  // has its place there.
  void JoinHalves(uint32_t begin, uint32_t end, uint32_t root) {
    if (end - begin == 1) return;
    const uint32_t middle = end - (end - begin) / 2;
    const bool is_first = root < middle;
    const uint32_t other =
        is_first ? std::min(middle + (root - begin), end - 1) : begin + (root - middle);
    Hang(other, root);
    JoinHalves(begin, middle, is_first ? root : other);
    JoinHalves(middle, end, is_first ? other : root);
  }

  // By what it may still take on; of those alike the one whose turn it is.
  size_t LeastLoaded(const std::vector<uint32_t>& heads) const {
    const size_t turn = shape_.inner == InnerHosts::kAll
                            ? uint64_t{tree_} * heads.size() / shape_.trees
                            : tree_ % heads.size();
    size_t best = turn;
    for (size_t i = 1; i < heads.size(); ++i) {
      const size_t at = (turn + i) % heads.size();
      if (Room(heads[at]) > Room(heads[best]) + kShareRounding) best = at;
    }
    return best;
  }

  // --- Leaves ---

  // What a host may receive going up so far, in messages, less what it does.
  double Room(uint32_t host) const {
    if (shape_.inner != InnerHosts::kInTurn) return -load_[host];
    const double all = (hosts_.count() - 1.0) / hosts_.count();
    return all * seen_[host] / slots_[host] - load_[host];
  }

  absl::Status HangLeaves() {
    std::vector<uint32_t> far;
    const std::vector<uint32_t>& inner = inner_[tree_];
    for (uint32_t h = 0; h < hosts_.count(); ++h) {
      if (is_inner_[h]) continue;
      const uint32_t near = MostRoomInLeaf(h);
      if (near != kNone &&
          (shape_.inner != InnerHosts::kInTurn || Room(near) >= share_ - kShareRounding)) {
        Hang(h, near);
      } else {
        far.push_back(h);
      }
    }
    for (const uint32_t h : far) {
      ASSIGN_OR_RETURN(const uint32_t parent, ParentFor(h, inner));
      Hang(h, parent);
    }
    return absl::OkStatus();
  }

  uint32_t MostRoomInLeaf(uint32_t host) const {
    const std::vector<uint32_t>& inner = inner_[tree_];
    const std::vector<uint32_t>& leaf = hosts_.groups[0];
    uint32_t best = kNone;
    const auto from = std::partition_point(inner.begin(), inner.end(),
                                           [&](uint32_t h) { return leaf[h] < leaf[host]; });
    for (auto i = from; i != inner.end() && leaf[*i] == leaf[host]; ++i) {
      if (best == kNone || Room(*i) > Room(best) + kShareRounding) best = *i;
    }
    return best;
  }

  // Levels up to a group that holds both.
  uint32_t Apart(uint32_t a, uint32_t b) const {
    uint32_t level = 0;
    while (level + 1 < hosts_.groups.size() && hosts_.groups[level][a] != hosts_.groups[level][b]) {
      ++level;
    }
    return level;
  }

  absl::StatusOr<uint32_t> ParentFor(uint32_t host, const std::vector<uint32_t>& inner) {
    uint32_t nearest = UINT32_MAX, most_room = inner[0];
    for (const uint32_t h : inner) {
      if (Room(h) > Room(most_room) + kShareRounding) most_room = h;
      if (Room(h) >= share_ - kShareRounding) nearest = std::min(nearest, Apart(h, host));
    }
    if (nearest == UINT32_MAX) return most_room;
    std::vector<uint32_t> near;
    for (const uint32_t h : inner) {
      if (Room(h) >= share_ - kShareRounding && Apart(h, host) == nearest) near.push_back(h);
    }
    const size_t compared = std::min(near.size(), kMaxRoutesCompared);
    std::partial_sort(near.begin(), near.begin() + static_cast<ptrdiff_t>(compared), near.end(),
                      [&](uint32_t a, uint32_t b) {
                        return std::make_pair(-Room(a), a) < std::make_pair(-Room(b), b);
                      });
    near.resize(compared);
    return LeastUsedRoute(host, near);
  }

  absl::StatusOr<uint32_t> LeastUsedRoute(uint32_t host, const std::vector<uint32_t>& parents) {
    uint32_t best = parents[0];
    double least = 0;
    for (size_t i = 0; i < parents.size(); ++i) {
      double used = 0;
      for (const bool up : {true, false}) {
        const uint32_t child = spokesman_[host], parent = Receiver(parents[i]);
        ASSIGN_OR_RETURN(const uint32_t route,
                         up ? routes_.Find(child, parent) : routes_.Find(parent, child));
        for (const uint32_t hop : routes_.hops(routes_.route(route)))
          used = std::max(used, Used(hop));
      }
      if (i > 0 && used >= least - kShareRounding * least) continue;
      least = used;
      best = parents[i];
    }
    return best;
  }

  double Used(uint32_t hop) const { return hop < used_.size() ? used_[hop] : 0; }

  // --- The ranks ---

  absl::StatusOr<ShapedTree> Finish(uint32_t root) {
    ShapedTree tree{.parents = std::vector<int32_t>(rank_count_, AggregationTree::kNoParent),
                    .share = share_};
    for (uint32_t h = 0; h < hosts_.count(); ++h) {
      const uint32_t speaks = spokesman_[h];
      JoinHost(hosts_.ranks[h], speaks, tree.parents);
      if (h == root) continue;
      const uint32_t parent = Receiver(parent_[h]);
      tree.parents[speaks] = static_cast<int32_t>(parent);
      RETURN_IF_ERROR(Use(speaks, parent));
      RETURN_IF_ERROR(Use(parent, speaks));
    }
    return tree;
  }

  // In a chain each rank reduces what one other has; in a star one does so for all others.
  void JoinHost(const std::vector<uint32_t>& ranks, uint32_t speaks,
                std::vector<int32_t>& parents) {
    const size_t first =
        static_cast<size_t>(std::find(ranks.begin(), ranks.end(), speaks) - ranks.begin());
    for (size_t i = 0; i + 1 < ranks.size(); ++i) {
      const uint32_t parent = !shape_.host_chain ? speaks : ranks[(first + i) % ranks.size()];
      parents[ranks[(first + i + 1) % ranks.size()]] = static_cast<int32_t>(parent);
    }
  }

  // The rank of `host` that other hosts send to: in a chain its last one, so that none has two
  // children.
  uint32_t Receiver(uint32_t host) const {
    const std::vector<uint32_t>& ranks = hosts_.ranks[host];
    if (!shape_.host_chain) return spokesman_[host];
    const auto first = static_cast<size_t>(std::find(ranks.begin(), ranks.end(), spokesman_[host]) -
                                           ranks.begin());
    return ranks[(first + ranks.size() - 1) % ranks.size()];
  }

  absl::Status Use(uint32_t from, uint32_t to) {
    ASSIGN_OR_RETURN(const uint32_t route, routes_.Find(from, to));
    used_.resize(routes_.channels().size(), 0);
    for (const uint32_t hop : routes_.hops(routes_.route(route))) {
      used_[hop] += share_ * routes_.channels()[hop].us_per_byte;
    }
    return absl::OkStatus();
  }

  const ForestHosts& hosts_;
  const ForestShape& shape_;
  ForestRoutes& routes_;
  std::vector<std::vector<uint32_t>> inner_;  // [tree] hosts
  std::vector<uint32_t> slots_, seen_;        // [host] trees that it is inside of: all, so far
  std::vector<double> load_;                  // [host] what it receives, in messages
  std::vector<double> used_;                  // [position of a channel] microseconds a byte
  uint32_t rank_count_ = 0;

  uint32_t tree_ = 0;  // that is built
  double share_ = 0;
  std::vector<bool> is_inner_;
  std::vector<uint32_t> parent_, spokesman_;  // [host] a host, a rank
};

// From 0 on, in order: equal ones are neighbours.
void NumberInOrder(std::vector<uint32_t>& group) {
  uint32_t number = 0, last = group.front();
  for (uint32_t& g : group) {
    if (g != last) ++number;
    last = std::exchange(g, number);
  }
}

bool AnyHostIsShared(const ForestHosts& hosts) {
  return std::any_of(hosts.ranks.begin(), hosts.ranks.end(),
                     [](const std::vector<uint32_t>& ranks) { return ranks.size() > 1; });
}

}  // namespace

ForestHosts FindForestHosts(const Snapshot& snapshot, const MemberPlaces& places) {
  const std::vector<Hierarchy::Level>& levels = snapshot.hierarchy->levels;
  const auto place_of = [&](uint32_t position) {  // from the widest group to the port
    std::vector<uint32_t> place;
    const uint32_t e = places.endpoints[position].value();
    for (size_t level = levels.size(); level-- > 0;) place.push_back(levels[level].group[e]);
    place.push_back(e);
    return place;
  };
  std::vector<std::pair<std::vector<uint32_t>, uint32_t>> order;
  for (uint32_t p = 0; p < places.endpoints.size(); ++p) order.emplace_back(place_of(p), p);
  std::sort(order.begin(), order.end());
  std::vector<std::vector<uint32_t>> ranks_at(places.endpoints.size());
  for (uint32_t r = 0; r < places.endpoint_of_rank.size(); ++r) {
    ranks_at[places.endpoint_of_rank[r]].push_back(r);
  }
  ForestHosts hosts;
  hosts.groups.resize(levels.size() - 1);
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t e = places.endpoints[order[i].second].value();
    const bool same_host =
        i > 0 && snapshot.fabric->bundle(EndpointIndex(e)) ==
                     snapshot.fabric->bundle(places.endpoints[order[i - 1].second]);
    if (!same_host) {
      hosts.ranks.emplace_back();
      for (size_t level = 1; level < levels.size(); ++level) {
        hosts.groups[level - 1].push_back(levels[level].group[e]);
      }
    }
    const std::vector<uint32_t>& here = ranks_at[order[i].second];
    hosts.ranks.back().insert(hosts.ranks.back().end(), here.begin(), here.end());
  }
  for (std::vector<uint32_t>& group : hosts.groups) NumberInOrder(group);
  return hosts;
}

std::vector<ForestShape> ShapesToTry(const ForestHosts& hosts, uint32_t max_trees) {
  const uint32_t count = hosts.count();
  const uint32_t leaves = hosts.groups[0].back() + 1;
  std::set<uint32_t> numbers = {
      count / leaves, (count + leaves - 1) / leaves, leaves, 1, 3, 6, 12, 24, 48};
  for (uint32_t part = 1; part <= 3; ++part) {
    numbers.insert(count / part);
    numbers.insert(count * part);
    numbers.insert(leaves * part);
  }
  for (uint32_t k = 1; k <= max_trees; k *= 2) numbers.insert(k);
  const bool has_levels = hosts.groups.size() > 2;
  const bool is_shared = AnyHostIsShared(hosts);
  std::vector<ForestShape> shapes;
  for (const uint32_t trees : numbers) {
    if (trees == 0 || trees > max_trees) continue;
    for (const InnerHosts kind :
         {InnerHosts::kInTurn, InnerHosts::kOneALeaf, InnerHosts::kAll, InnerHosts::kHalves}) {
      const bool is_everyone = kind == InnerHosts::kAll || kind == InnerHosts::kHalves;
      const uint32_t inner = is_everyone                     ? count
                             : kind == InnerHosts::kOneALeaf ? leaves
                                                             : (count + trees - 1) / trees;
      for (const uint32_t fanout : {1U, 2U, 4U, count}) {
        if (fanout != count && fanout + 1 >= inner) continue;  // the same as `count`
        if (is_everyone && fanout > 1) continue;               // ports would be uneven
        for (const bool by_group : {false, true}) {
          if (by_group && kind == InnerHosts::kHalves) continue;  // halves are near already
          if (by_group && (inner <= 2 || (!has_levels && inner <= leaves))) continue;
          shapes.push_back({trees, kind, fanout, by_group, false});
          if (is_shared) shapes.push_back({trees, kind, fanout, by_group, true});
        }
      }
    }
  }
  return shapes;
}

absl::StatusOr<std::vector<ShapedTree>> BuildForest(const ForestHosts& hosts,
                                                    const ForestShape& shape,
                                                    ForestRoutes& routes) {
  return ForestBuilder(hosts, shape, routes).Build();
}

}  // namespace coppice
