// From counts to hosts, from many to few:
//
//     pods, unions of pods   PodRegions \                    host_set.h, if few
//     balls                  Balls       +--> ImproveCounts --> measured in full --> choices
//     any counts             AnyCounts  /                               |
//     lower bound            FillLeaves over everything <--- equal?  ---+--> SearchExactly
#include "daemon/placement/placement_search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "daemon/placement/count_state.h"
#include "daemon/placement/host_set.h"
#include "daemon/placement/placement_request.h"

namespace coppice {
namespace {

constexpr uint32_t kFewLeaves = 64;  // all balls are grown and improved
constexpr uint32_t kRegions = 3;     // of each kind
constexpr size_t kMaxField = 512;    // leaf switches that moves look at
struct CountChoice {
  LeafCounts counts;
  double cost = 0;
  uint32_t scope = 0;
};

struct HostChoice {
  std::vector<uint32_t> hosts;  // positions in OpenHosts::hosts
  double cost = 0;
  uint32_t scope = 0;
};

// What using a leaf switch costs in itself, [position in OpenHosts::leaves]: entries that it lacks,
// exactly; with `estimate_links`, also what its share of links that others use and of load may be.
std::vector<double> PenaltiesOf(const PlacementQuestion& question, bool estimate_links) {
  const PlacementObjective& o = question.request.objective;
  const Occupancy& occupancy = question.occupancy;
  const bool entries =
      o.entries > 0 && question.request.trees > 0 && !occupancy.entries_left.empty();
  const bool links = estimate_links && question.hosts_matter();
  if (!entries && !links) return {};
  const double n = question.request.constraints.host_count;
  std::vector<double> penalties;
  for (const OpenLeaf& leaf : question.open.leaves) {
    double penalty = 0;
    const auto s = question.index.switch_of(leaf.leaf);
    if (s && entries && occupancy.entries_left[s->value()] < question.request.trees) {
      penalty += o.entries;
    }
    if (s && links) {
      double shared = 0, load = 0;
      const auto channels = question.index.fabric().switch_channels(*s);
      for (const Channel& channel : channels) {
        const uint32_t out = channel.index.value(), in = Fabric::Reverse(channel.index).value();
        const std::vector<uint32_t>& users = occupancy.channel_users;
        shared += !users.empty() && (users[out] > 0 || users[in] > 0) ? 1 : 0;
        load += question.snapshot.utilisation(channel.index) +
                question.snapshot.utilisation(ChannelIndex(in));
      }
      if (!channels.empty()) {
        const double ports = static_cast<double>(channels.size());
        shared *= std::min(1.0, n / ports);
        load /= 2 * ports * std::max(1.0, n / std::max(1U, leaf.most));
      }
      // In steps, so that alike leaf switches stay alike where it hardly matters.
      penalty += std::round(4 * (o.shared_links * shared + o.load * load)) / 4;
    }
    penalties.push_back(penalty);
  }
  return penalties;
}

class Searcher {
 public:
  Searcher(const PlacementQuestion& question, const SearchLimits& limits)
      : question_(question),
        limits_(limits),
        c_(question.request.constraints),
        penalties_(PenaltiesOf(question, true)),
        scopes_(FindScopes(question.index, question.open, c_)) {
    count_patience_ = limits.count_patience;
    host_patience_ = limits.host_patience;
  }

  SearchResult Search() {
    for (uint32_t s = 0; s < scopes_.size(); ++s) StartIn(s);
    KeepBestCounts();
    uint64_t routes = limits_.routes;
    for (const CountChoice& counts : counts_) {
      if (!result_.choices.empty() && routes == 0) break;
      MeasureCounts(counts);
      if (question_.hosts_matter()) {
        routes -= std::min<uint64_t>(routes, c_.host_count * counts.counts.size());
      }
    }
    SortChoices();
    const double bound = LowerBound();
    if (!ProvenBy(bound)) Deepen(bound);
    if (question_.request.pattern != nullptr) AddLeastCut();
    return std::move(result_);
  }

 private:
  // What takes longer than the bound did.
  void Deepen(double bound) {
    if (HostsAreWorthIt()) ImproveChoices();
    if (!ProvenBy(bound) && limits_.exact_patience > 0) Prove();
    if (!result_.is_optimal && !improved_.empty()) ShakeChoices();
  }

  // With a pattern: from the best counts, the set that the least cut takes out of the free hosts.
  void AddLeastCut() {
    const CountChoice& start = counts_.front();
    const OpenScope& scope = scopes_[start.scope];
    const LeafField field = FieldOf(NearbyField(scope, start.counts));
    CountState state(field);
    state.Assign(start.counts);
    uint64_t patience = limits_.count_patience;
    ImproveCut(field, state, patience);
    MeasureCounts({state.Counts(), 0, start.scope});
    Choice cut = std::move(result_.choices.back());
    result_.choices.pop_back();
    const auto same = [&](const Choice& choice) { return choice.hosts == cut.hosts; };
    if (absl::c_none_of(result_.choices, same)) {
      result_.choices.push_back(std::move(cut));
    }
  }

  Region Everything(const OpenScope& scope) const {
    Region region(scope.end - scope.begin);
    absl::c_iota(region, scope.begin);
    return region;
  }
  LeafField FieldOf(const Region& region) const {
    return LeafField(question_.index, question_.open, question_.request, penalties_, region);
  }

  void StartIn(uint32_t s) {
    const OpenScope& scope = scopes_[s];
    const uint32_t size = scope.end - scope.begin;
    const bool few = size <= kFewLeaves;
    if (c_.hosts_per_leaf == 0) {
      for (const Region& region : PodRegions(question_, scope, kRegions)) Fill(s, region);
      if (c_.host_count <= question_.index.largest_leaf()) StartOnOneLeaf(s);
    }
    // Pods say nothing where there are none, and a hint only where they are few.
    const bool pods_tell = !few && question_.index.pod_count() >= kFewLeaves / 4;
    if (!pods_tell || counts_.empty()) {
      // Where hosts are spread evenly, seeds differ less, and each ball is larger.
      const uint64_t patience = limits_.ball_patience / (c_.hosts_per_leaf > 0 && !few ? 8 : 1);
      const auto seeds = static_cast<uint32_t>(std::max<uint64_t>(8, patience / size));
      for (const Ball& ball : Balls(question_, scope, seeds, few ? kFewLeaves : 4)) {
        Improve(s, few ? Everything(scope) : ball.region, ball.counts);
      }
    }
    const bool restricted = c_.hosts_per_leaf > 0 || c_.max_leaf_switches > 0 || c_.min_pods > 1 ||
                            c_.min_leaf_switches > 1 || counts_.empty();
    if (!restricted) return;
    if (const auto any = AnyCounts(question_.index, question_.open, scope, c_)) {
      Improve(s, NearbyField(scope, *any), *any);
    }
  }

  // The leaf switch with room for all that has fewest hosts left over, wherever it is.
  void StartOnOneLeaf(uint32_t s) {
    const OpenScope& scope = scopes_[s];
    uint32_t best = scope.end;
    double least = 0;
    for (uint32_t i = scope.begin; i < scope.end; ++i) {
      const OpenLeaf& leaf = question_.open.leaves[i];
      if (leaf.most < c_.host_count || leaf.required < question_.open.required) continue;
      const double penalty = penalties_.empty() ? 0 : penalties_[i];
      const double cost =
          LeafSums::Of(leaf, c_.host_count, penalty).Cost(question_.request.objective) +
          LeafField::kMaxTie * leaf.free;
      if (best < scope.end && cost >= least) continue;
      best = i;
      least = cost;
    }
    if (best < scope.end) Improve(s, Region{best}, {{best, c_.host_count}});
  }

  // The leaf switches of the counts and those nearest to the first of them.
  Region NearbyField(const OpenScope& scope, const LeafCounts& counts) const {
    Region region = Everything(scope);
    if (region.size() <= kMaxField) return region;
    const uint32_t center = question_.open.leaves[counts.front().first].leaf;
    absl::c_stable_sort(region, [&](uint32_t a, uint32_t b) {
      return question_.index.Hops(center, question_.open.leaves[a].leaf) <
             question_.index.Hops(center, question_.open.leaves[b].leaf);
    });
    region.resize(kMaxField);
    for (const auto& [position, count] : counts) region.push_back(position);
    absl::c_sort(region);
    region.erase(std::unique(region.begin(), region.end()), region.end());
    return region;
  }

  void Fill(uint32_t s, const Region& region) {
    const LeafField field = FieldOf(region);
    double hops = 0;
    for (const float h : field.matrix) hops += h;
    hops /= static_cast<double>(field.matrix.size());
    const auto fill = FillLeaves(field, c_.host_count, hops);
    if (fill) Improve(s, field, fill->counts);
  }

  void Improve(uint32_t s, const Region& region, const LeafCounts& counts) {
    Improve(s, FieldOf(region), counts);
  }

  void Improve(uint32_t s, const LeafField& field, const LeafCounts& counts) {
    CountState state(field);
    state.Assign(counts);
    if (!MendCounts(field, state)) return;
    ImproveCounts(field, state, count_patience_);
    counts_.push_back({state.Counts(), state.cost() + state.tie(), s});
  }

  void KeepBestCounts() {
    absl::c_stable_sort(counts_, [](const auto& a, const auto& b) { return a.cost < b.cost; });
    std::set<LeafCounts> seen;
    std::vector<CountChoice> kept;
    for (CountChoice& choice : counts_) {
      if (kept.size() < limits_.measured && seen.insert(choice.counts).second) {
        kept.push_back(std::move(choice));
      }
    }
    counts_ = std::move(kept);
  }

  void MeasureCounts(const CountChoice& counts) {
    Choice choice;
    choice.hosts = question_.FirstHosts(counts.counts);
    choice.measures = question_.Measure(choice.hosts);
    choice.cost = choice.measures->cost;
    result_.choices.push_back(std::move(choice));
  }

  void SortChoices() {
    absl::c_stable_sort(result_.choices,
                        [](const Choice& a, const Choice& b) { return a.cost < b.cost; });
  }

  // What no answer is below: see placement_starts.cc; links, load and the trees' root only add to
  // it.
  double LowerBound() const {
    const std::vector<double> entries = PenaltiesOf(question_, false);
    double least = INFINITY;
    for (const OpenScope& scope : scopes_) {
      const LeafField field(question_.index, question_.open, question_.request, entries,
                            Everything(scope), LeafField::Distances::kNone);
      const auto fill = FillLeaves(field, c_.host_count, question_.index.least_hops());
      if (!fill) return -INFINITY;
      const double pods = question_.request.objective.pods * LeastPods(scope);
      least = std::min(least, fill->cost + pods);
    }
    return least;
  }

  uint32_t LeastPods(const OpenScope& scope) const {
    std::vector<uint64_t> room(question_.index.pod_count(), 0);
    for (uint32_t i = scope.begin; i < scope.end; ++i) {
      room[question_.index.pod_of(question_.open.leaves[i].leaf)] += question_.open.leaves[i].most;
    }
    absl::c_sort(room, std::greater<>());
    uint32_t pods = 0;
    for (uint64_t sum = 0; sum < c_.host_count && pods < room.size(); ++pods) sum += room[pods];
    return std::max(pods, c_.min_pods);
  }

  bool ProvenBy(double bound) {
    const double cost = result_.choices.front().cost;
    result_.is_optimal = cost <= bound + kEqualCost * (1 + std::abs(cost));
    return result_.is_optimal;
  }

  // Host by host, where hosts or the root of trees make a difference and sets are small.
  bool HostsAreWorthIt() const {
    const bool matters = question_.hosts_matter() || question_.request.trees > 0;
    return matters && question_.open.leaves.size() <= kFewLeaves &&
           HostCost::IsAffordable(question_, question_.open.hosts.size(),
                                  question_.open.leaves.size());
  }

  void ImproveChoices() {
    std::vector<uint32_t> number(question_.index.fabric().host_count());
    for (uint32_t o = 0; o < question_.open.hosts.size(); ++o) {
      number[question_.open.hosts[o].value()] = o;
    }
    for (uint32_t s = 0; s < scopes_.size(); ++s) {
      fields_.push_back(std::make_unique<LeafField>(question_.index, question_.open,
                                                    question_.request, absl::Span<const double>(),
                                                    Everything(scopes_[s])));
      sets_.push_back(std::make_unique<HostSet>(question_, *fields_[s]));
      for (const CountChoice& counts : counts_) {
        if (counts.scope != s) continue;
        std::vector<uint32_t> hosts;
        for (const HostIndex h : question_.FirstHosts(counts.counts)) {
          hosts.push_back(number[h.value()]);
        }
        sets_[s]->Assign(hosts);
        ImproveHosts(*fields_[s], *sets_[s], host_patience_);
        AddChoice(*sets_[s], s);
      }
    }
    SortChoices();
  }

  void AddChoice(HostSet& set, uint32_t scope) {
    Choice choice;
    for (const uint32_t o : set.hosts()) choice.hosts.push_back(question_.open.hosts[o]);
    absl::c_sort(choice.hosts);
    choice.cost = set.cost();
    improved_.push_back({set.hosts(), choice.cost, scope});
    result_.choices.push_back(std::move(choice));
  }

  // Goes on from the best set with a few hosts exchanged at random, until patience ends.
  void ShakeChoices() {
    std::mt19937_64 rng(question_.request.seed);
    auto best = *absl::c_min_element(improved_,
                                     [](const auto& a, const auto& b) { return a.cost < b.cost; });
    HostSet& set = *sets_[best.scope];
    const LeafField& field = *fields_[best.scope];
    const double before = best.cost;
    while (host_patience_ > 0) {
      set.Assign(best.hosts);
      ShakeHosts(field, set, 2 + static_cast<uint32_t>(rng() % 3), rng);
      host_patience_ -= std::min<uint64_t>(host_patience_, best.hosts.size() + 1);
      ImproveHosts(field, set, host_patience_);
      const double cost = set.cost();
      if (cost < best.cost - kEqualCost) best = {set.hosts(), cost, best.scope};
    }
    if (best.cost >= before) return;
    set.Assign(best.hosts);
    AddChoice(set, best.scope);
    SortChoices();
  }

  void Prove() {
    Choice best = result_.choices.front();
    const double before = best.cost;
    result_.is_optimal = SearchExactly(question_, scopes_, limits_.exact_patience, best);
    if (best.cost < before) result_.choices.insert(result_.choices.begin(), std::move(best));
  }

  const PlacementQuestion& question_;
  const SearchLimits& limits_;
  const PlacementConstraints& c_;
  const std::vector<double> penalties_;
  const std::vector<OpenScope> scopes_;
  uint64_t count_patience_, host_patience_;
  std::vector<CountChoice> counts_;
  std::vector<std::unique_ptr<LeafField>> fields_;  // [scope], for sets_
  std::vector<std::unique_ptr<HostSet>> sets_;
  std::vector<HostChoice> improved_;
  SearchResult result_;
};

}  // namespace

SearchResult SearchPlacement(const PlacementQuestion& question, const SearchLimits& limits) {
  return Searcher(question, limits).Search();
}

}  // namespace coppice
