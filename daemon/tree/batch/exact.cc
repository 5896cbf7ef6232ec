// Branch and bound over who takes which set of switches:
//
//     options of a shape = every root in reach x every physical tree to it x every set that can
//                          serve there, without those that contain another as near
//     search             = one option or none per communicator, fewest options first, cut off where
//                          what is spent and the least of the rest cannot beat the best plan known
//
// A serving set may be larger than the least one: it may be all that full switches leave.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "daemon/tree/batch/repair.h"
#include "daemon/tree/batch/tree_builder.h"
#include "daemon/tree/root_choice.h"

namespace coppice {
namespace {

constexpr size_t kMaxCommunicators = 12, kMaxSwitches = 64;
constexpr uint64_t kMaxSets = 200'000;    // serving sets looked at
constexpr uint64_t kMaxVisits = 400'000;  // nodes of the search

struct Option {
  uint64_t switches = 0;  // bits of numbered switches
  uint32_t count = 0;
  bool farther = false;
  BatchTree tree;
};

// Collects the options of one shape. Work is counted over all shapes.
class OptionFinder {
 public:
  OptionFinder(const Snapshot& snapshot, const BatchState& state, RootReach reach)
      : snapshot_(snapshot),
        fabric_(*snapshot.fabric),
        limits_(state.limits()),
        reach_(reach),
        bit_(fabric_.switch_count(), 0) {
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) {
      if (limits_[s] == 0) continue;
      bit_[s] = servers_ < kMaxSwitches ? uint64_t{1} << servers_ : 0;
      ++servers_;
    }
  }

  // False: there is too much to look at.
  bool Find(const BatchShape& shape, std::vector<Option>& options) {
    if (servers_ > kMaxSwitches) return false;
    const std::vector<uint8_t> farthest = FarthestHops(snapshot_, shape.leaves);
    for (uint32_t s = 0; s < farthest.size(); ++s) {
      if (limits_[s] == 0 || farthest[s] == SwitchDistances::kUnreachable) continue;
      if (reach_ == RootReach::kNearest && farthest[s] > shape.nearest_hops) continue;
      shape_ = &shape;
      options_ = &options;
      extra_hops_ = farthest[s] - shape.nearest_hops;
      if (!LookAt(SwitchIndex(s))) return false;
    }
    absl::c_sort(options, [](const Option& a, const Option& b) {
      return std::make_tuple(a.farther, a.count, a.switches) <
             std::make_tuple(b.farther, b.count, b.switches);
    });
    return true;
  }

 private:
  struct Step {
    SwitchIndex at, next;
    ChannelIndex up;
  };

  bool LookAt(SwitchIndex root) {
    root_ = root;
    steps_.clear();
    pending_ = shape_->leaves;
    met_.assign(fabric_.switch_count(), false);
    for (const SwitchIndex leaf : pending_) met_[leaf.value()] = true;
    return Grow();
  }

  // Branches over where the farthest switch of `pending_` sends to.
  bool Grow() {
    const auto hops = [&](SwitchIndex s) {
      return snapshot_.routes->distances().Between(s, root_);
    };
    const auto farthest = absl::c_max_element(
        pending_, [&](SwitchIndex a, SwitchIndex b) { return hops(a) < hops(b); });
    const SwitchIndex at = *farthest;
    if (pending_.size() == 1 && at == root_) return LookAtSets();
    pending_.erase(farthest);
    std::vector<SwitchIndex> tried;
    bool small = true;
    for (const Channel& channel : fabric_.switch_channels(at)) {
      const SwitchIndex next = fabric_.AsSwitch(channel.to);
      if (!LeadsOn(at, next, channel.index) || !small) continue;
      if (absl::c_find(tried, next) != tried.end()) continue;
      tried.push_back(next);
      const std::vector<SwitchIndex> pending = pending_;
      const bool is_new = !met_[next.value()];
      if (is_new) pending_.push_back(next);
      met_[next.value()] = true;
      steps_.push_back({at, next, channel.index});
      small = Grow();
      steps_.pop_back();
      if (is_new) met_[next.value()] = false;
      pending_ = pending;
    }
    return small;
  }

  bool LeadsOn(SwitchIndex at, SwitchIndex next, ChannelIndex channel) const {
    if (snapshot_.routes->kind() != RouteKind::kShortestPath) {
      return at != root_ && channel == snapshot_.routes->NextChannel(at, fabric_.Vertex(root_)) &&
             absl::c_none_of(steps_, [&](const Step& step) { return step.at == next; });
    }
    const SwitchDistances& distances = snapshot_.routes->distances();
    return distances.Between(next, root_) + 1 == distances.Between(at, root_);
  }

  // Every set of switches of the tree in steps_ that can serve.
  bool LookAtSets() {
    BatchTree tree;
    tree.extra_hops = extra_hops_;
    if (!Lay(tree.physical)) return true;
    std::vector<uint32_t> servers;
    for (uint32_t v = 0; v < tree.physical.switches.size(); ++v) {
      if (limits_[tree.physical.switches[v].value()] > 0) servers.push_back(v);
    }
    if (servers.size() > 12) return false;
    sets_ += uint64_t{1} << servers.size();
    if (sets_ > kMaxSets) return false;
    for (uint32_t set = 1; set < 1U << servers.size(); ++set) {
      tree.serving.clear();
      for (size_t i = 0; i < servers.size(); ++i) {
        if (set >> i & 1) tree.serving.push_back(servers[i]);
      }
      Offer(tree);
    }
    return true;
  }

  // Parents before children: a parent is laid when all its children wait for it.
  bool Lay(SwitchTree& tree) const {
    std::map<SwitchIndex, int32_t> position = {{root_, 0}};
    tree.switches = {root_};
    tree.parents = {-1};
    tree.up = {kNoChannel};
    for (bool grew = true; grew;) {
      grew = false;
      for (const Step& step : steps_) {
        if (position.count(step.at) > 0 || position.count(step.next) == 0) continue;
        tree.switches.push_back(step.at);
        tree.parents.push_back(position[step.next]);
        tree.up.push_back(step.up);
        position[step.at] = static_cast<int32_t>(tree.switches.size() - 1);
        grew = true;
      }
    }
    if (tree.switches.size() != steps_.size() + 1) return false;  // a loop
    tree.ranks_on.assign(tree.switches.size(), 0);
    for (size_t i = 0; i < shape_->leaves.size(); ++i) {
      tree.ranks_on[static_cast<size_t>(position[shape_->leaves[i]])] = shape_->ranks_on[i];
    }
    return true;
  }

  // Whether `tree.serving` connects all ranks and each of them serves two children at least.
  bool Works(const BatchTree& tree) const {
    std::vector<uint32_t> items = tree.physical.ranks_on;
    size_t left = tree.serving.size();
    for (size_t v = items.size(); v-- > 0;) {
      if (left > 0 && tree.serving[left - 1] == v) {
        --left;
        if (items[v] < 2) return false;
        const uint32_t limit = limits_[tree.physical.switches[v].value()];
        items[v] = items[v] > limit ? items[v] - limit + 1 : 1;
      }
      if (v > 0) items[static_cast<size_t>(tree.physical.parents[v])] += items[v];
    }
    return items[0] == 1;
  }

  void Offer(BatchTree& tree) {
    Option option;
    for (const uint32_t v : tree.serving)
      option.switches |= bit_[tree.physical.switches[v].value()];
    option.farther = extra_hops_ > 0;
    const auto covers = [](const Option& a, const Option& b) {
      return (a.switches & b.switches) == a.switches && (!a.farther || b.farther);
    };
    const auto dearer = [&](const Option& other) { return covers(other, option); };
    if (absl::c_any_of(*options_, dearer) || !Works(tree)) return;
    const auto gone = std::remove_if(options_->begin(), options_->end(),
                                     [&](const Option& other) { return covers(option, other); });
    options_->erase(gone, options_->end());
    option.count = static_cast<uint32_t>(tree.serving.size());
    CountPackets(limits_, tree);
    option.tree = tree;
    options_->push_back(std::move(option));
  }

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const absl::Span<const uint32_t> limits_;
  const RootReach reach_;
  std::vector<uint64_t> bit_;  // [switch] 0: cannot serve
  size_t servers_ = 0;
  uint64_t sets_ = 0;
  const BatchShape* shape_ = nullptr;
  std::vector<Option>* options_ = nullptr;
  uint32_t extra_hops_ = 0;
  SwitchIndex root_;
  std::vector<SwitchIndex> pending_;
  std::vector<bool> met_;
  std::vector<Step> steps_;
};

using Cost = std::tuple<uint32_t, uint32_t, uint64_t>;  // refused, farther, entries

class AssignmentSearch {
 public:
  AssignmentSearch(std::vector<int32_t> free, bool counts_farther, Cost best)
      : free_(std::move(free)), counts_farther_(counts_farther), best_(best) {}

  void Add(const std::vector<Option>* options) { choices_.push_back(options); }

  // [in the order of Add] the option, nullptr for none; empty if nothing beats `best`, or not
  // within the visits allowed.
  std::vector<const Option*> Run() {
    order_.resize(choices_.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    absl::c_stable_sort(
        order_, [&](size_t a, size_t b) { return choices_[a]->size() < choices_[b]->size(); });
    least_after_.assign(order_.size() + 1, 0);
    for (size_t i = order_.size(); i-- > 0;) {
      uint32_t least = UINT32_MAX;
      for (const Option& option : *choices_[order_[i]]) least = std::min(least, option.count);
      least_after_[i] = least_after_[i + 1] + (least == UINT32_MAX ? 0 : least);
    }
    chosen_.assign(choices_.size(), nullptr);
    Visit(0, {0, 0, 0});
    return visits_ > kMaxVisits ? std::vector<const Option*>() : found_;
  }

 private:
  bool CannotWin(size_t depth, const Cost& cost) const {
    const auto [refused, farther, entries] = cost;
    // Whoever is refused takes nothing: the least of the rest holds only if no more may be.
    if (std::get<0>(best_) > refused) return false;
    return Cost(refused, farther, entries + least_after_[depth]) >= best_;
  }

  void Visit(size_t depth, const Cost& cost) {
    if (++visits_ > kMaxVisits || CannotWin(depth, cost)) return;
    if (depth == order_.size()) {
      if (cost >= best_) return;
      best_ = cost;
      found_ = chosen_;
      return;
    }
    const size_t c = order_[depth];
    const auto [refused, farther, entries] = cost;
    for (const Option& option : *choices_[c]) {
      if (!Take(option, 1)) continue;
      chosen_[c] = &option;
      Visit(depth + 1, {refused, farther + (counts_farther_ && option.farther ? 1 : 0),
                        entries + option.count});
      Take(option, -1);
    }
    chosen_[c] = nullptr;
    Visit(depth + 1, {refused + 1, farther, entries});
  }

  // False, and nothing taken, if one of the switches has nothing left.
  bool Take(const Option& option, int32_t entries) {
    const auto& switches = option.tree.physical.switches;
    for (const uint32_t v : option.tree.serving) {
      if (entries > 0 && free_[switches[v].value()] < entries) return false;
    }
    for (const uint32_t v : option.tree.serving) free_[switches[v].value()] -= entries;
    return true;
  }

  std::vector<int32_t> free_;
  const bool counts_farther_;
  Cost best_;
  std::vector<const std::vector<Option>*> choices_;
  std::vector<size_t> order_;
  std::vector<uint64_t> least_after_;  // [depth] entries that the rest takes at least
  std::vector<const Option*> chosen_, found_;
  uint64_t visits_ = 0;
};

std::vector<uint32_t> Plannable(const BatchShapes& shapes) {
  std::vector<uint32_t> plannable;
  for (uint32_t c = 0; c < shapes.shape_of.size(); ++c) {
    if (shapes.IsPlannable(c)) plannable.push_back(c);
  }
  return plannable;
}

// True if no plan can be better.
bool IsBest(const BatchShapes& shapes, const BatchState& state, RootReach reach) {
  uint64_t least = 0;
  for (const uint32_t c : Plannable(shapes)) {
    if (!state.tree(c)) return false;
    least += shapes.of(c).fewest;
  }
  return state.entries() == least && (reach == RootReach::kAny || state.farther() == 0);
}

}  // namespace

void SearchSmallBatch(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
                      BatchState& state) {
  const std::vector<uint32_t> plannable = Plannable(shapes);
  if (plannable.size() > kMaxCommunicators || IsBest(shapes, state, reach)) return;
  OptionFinder finder(snapshot, state, reach);
  std::map<uint32_t, std::vector<Option>> options;  // by shape
  const bool counts_farther = reach != RootReach::kAny;
  std::vector<int32_t> free(state.free_entries().begin(), state.free_entries().end());
  uint32_t refused = 0;
  for (const uint32_t c : plannable) {
    const uint32_t shape = shapes.shape_of[c];
    if (options.count(shape) == 0 && !finder.Find(shapes.shapes[shape], options[shape])) return;
    if (!state.tree(c)) ++refused;
    if (!state.tree(c)) continue;
    const BatchTree& tree = *state.tree(c);
    for (const uint32_t v : tree.serving) ++free[tree.physical.switches[v].value()];
  }
  AssignmentSearch search(std::move(free), counts_farther,
                          {refused, counts_farther ? state.farther() : 0, state.entries()});
  for (const uint32_t c : plannable) search.Add(&options[shapes.shape_of[c]]);
  const std::vector<const Option*> found = search.Run();
  if (found.empty()) return;
  for (const uint32_t c : plannable) state.Replace(c, std::nullopt);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != nullptr) state.Replace(plannable[i], found[i]->tree);
  }
  state.ForgetJournal();
}

}  // namespace coppice
