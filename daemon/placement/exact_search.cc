// Branches on how many hosts each leaf switch gives, one leaf switch after another, most first:
//
//     L0     2 ------------- 1 ----------- 0          counts so far cost C; the r hosts still to be
//     L1   1   0           2 1 0         2            placed cost at least B; a branch with
//     L2       1             ...                      C + B >= best is cut off
//
// B adds up what no completion can avoid: as many leaf switches as the largest ones left need; for
// each pair of hosts the least distance between two leaf switches, but within leaf switches as the
// fullest packing allows; and for fragmentation that all broken leaf switches left which r hosts
// can fill are filled. Load, shared links and entries only ever add. Leaf switches that nothing
// tells apart give counts in falling order, so that each multiset of counts is met once.
//
// Where it matters which hosts of a leaf switch are taken, all subsets with the counts are
// measured.
#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "daemon/placement/count_state.h"
#include "daemon/placement/host_set.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placement_search.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxLeaves = 64;
class Brancher {
 public:
  Brancher(const PlacementQuestion& question, const LeafField& field, uint64_t patience,
           Choice& best)
      : question_(question),
        field_(field),
        c_(question.request.constraints),
        state_(field),
        host_cost_(question, field),
        best_(best),
        patience_(patience),
        n_(c_.host_count) {
    PrepareSuffixes();
  }

  // False: out of patience.
  bool Run() {
    Branch(0, n_);
    return patience_ > 0;
  }
  uint64_t patience() const { return patience_; }

 private:
  // Of leaf switches i and beyond.
  struct Suffix {
    std::vector<uint32_t> most;  // falling
    std::vector<uint32_t>
        fillable;  // free hosts of broken leaf switches that may be filled, rising
    uint32_t required = 0;
  };

  void PrepareSuffixes() {
    suffixes_.resize(field_.size() + 1);
    for (uint32_t i = field_.size(); i-- > 0;) {
      const OpenLeaf& leaf = field_.leaf(i);
      Suffix& suffix = suffixes_[i];
      suffix = suffixes_[i + 1];
      suffix.required += leaf.required;
      const auto most = absl::c_upper_bound(suffix.most, leaf.most, std::greater<>());
      suffix.most.insert(most, leaf.most);
      if (leaf.held == 0 || leaf.most < leaf.free) continue;
      suffix.fillable.insert(absl::c_upper_bound(suffix.fillable, leaf.free), leaf.free);
    }
    alike_.resize(field_.size(), false);
    for (uint32_t i = 1; i < field_.size(); ++i) alike_[i] = Alike(i - 1, i);
  }

  // Exchanging the counts of i and j changes nothing.
  bool Alike(uint32_t i, uint32_t j) const {
    if (question_.hosts_matter()) return false;
    const OpenLeaf &a = field_.leaf(i), &b = field_.leaf(j);
    const auto known = [&](const OpenLeaf& leaf) {
      const auto s = question_.index.switch_of(leaf.leaf);
      const auto& entries = question_.occupancy.entries_left;
      return s && !entries.empty() ? entries[s->value()] : 0;
    };
    return field_.class_of[i] == field_.class_of[j] && field_.pod_of[i] == field_.pod_of[j] &&
           std::tie(a.open, a.most, a.free, a.held) == std::tie(b.open, b.most, b.free, b.held) &&
           a.required == 0 && b.required == 0 && known(a) == known(b);
  }

  double Remainder(uint32_t i, uint32_t left) const {
    const Suffix& suffix = suffixes_[i];
    const PlacementObjective& o = field_.objective;
    uint32_t leaves = 0;
    double packed = 0;  // pairs within leaf switches
    for (uint32_t rest = left; rest > 0; ++leaves) {
      const double x = std::min(rest, suffix.most[leaves]);
      packed += x * (x - 1) / 2;
      rest -= static_cast<uint32_t>(x);
    }
    uint32_t filled = 0;
    for (uint32_t rest = left; filled < suffix.fillable.size(); ++filled) {
      if (suffix.fillable[filled] > rest) break;
      rest -= suffix.fillable[filled];
    }
    const double r = left, far = question_.index.least_hops();
    const double distance =
        r * (n_ - r) * far + (r * (r - 1) / 2 - packed) * far + packed * std::min(2.0, far);
    const double pods = state_.pods() == 0 ? 1 : 0;
    return o.leaf_switches * leaves + o.pods * pods - o.fragmentation * filled +
           field_.pair_weight * distance;
  }

  bool Spend(uint64_t work) {
    patience_ = patience_ > work ? patience_ - work : 0;
    return patience_ > 0;
  }

  bool IsHopeless(double cost) const {
    return !best_.hosts.empty() && cost >= best_.cost - kEqualCost * (1 + std::abs(best_.cost));
  }

  void Branch(uint32_t i, uint32_t left) {
    if (!Spend(1)) return;
    if (left == 0) {
      if (suffixes_[i].required == 0) Complete();
      return;
    }
    if (i == field_.size() || !Fits(i, left) || IsHopeless(state_.cost() + Remainder(i, left))) {
      return;
    }
    const OpenLeaf& leaf = field_.leaf(i);
    uint32_t most = std::min(leaf.most, left);
    if (alike_[i]) most = std::min(most, state_.count(i - 1));
    for (uint32_t count = most;; --count) {
      if (MayGive(leaf, count)) {
        state_.Change(i, static_cast<int32_t>(count));
        const uint32_t most_leaves = c_.max_leaf_switches;
        if (most_leaves == 0 || state_.leaves() <= most_leaves) Branch(i + 1, left - count);
        state_.Change(i, -static_cast<int32_t>(count));
      }
      if (count == 0 || patience_ == 0) return;
    }
  }

  bool Fits(uint32_t i, uint32_t left) const {
    uint64_t room = 0;
    for (const uint32_t most : suffixes_[i].most) room += most;
    return room >= left && suffixes_[i].required <= left;
  }

  bool MayGive(const OpenLeaf& leaf, uint32_t count) const {
    if (count < leaf.required) return false;
    if (c_.hosts_per_leaf == 0 || count == 0) return true;
    return count == c_.hosts_per_leaf || count == LastLeafHosts(c_);
  }

  void Complete() {
    if (state_.leaves() < c_.min_leaf_switches || state_.pods() < c_.min_pods) return;
    const LeafCounts counts = state_.Counts();
    if (c_.hosts_per_leaf > 0) {
      const auto lesser =
          absl::c_count_if(counts, [&](const auto& at) { return at.second < c_.hosts_per_leaf; });
      if (lesser > 1) return;
    }
    fixed_ = state_.cost() + host_cost_.OfLeaves(state_.used());
    if (IsHopeless(fixed_)) return;
    if (!host_cost_.hosts_matter()) {
      best_ = {question_.FirstHosts(counts), fixed_, std::nullopt};
      return;
    }
    sources_.assign(state_.used().begin(), state_.used().end());
    taken_.clear();
    TakeSubsets(0, 0, 0);
  }

  // All ways to take the hosts of the k-th leaf switch in use and of those after it, of which
  // `given` hosts before number `from` are taken.
  void TakeSubsets(size_t k, uint32_t from, uint32_t given) {
    if (!Spend(1 + sources_.size() / 4)) return;
    if (IsHopeless(fixed_ + host_cost_.LeastOfHosts())) return;
    if (k == sources_.size()) {
      const double cost = fixed_ + host_cost_.OfHosts();
      if (!IsHopeless(cost)) best_ = {taken_, cost, std::nullopt};
      return;
    }
    const uint32_t i = sources_[k];
    const OpenLeaf& leaf = field_.leaf(i);
    const uint32_t wanted = state_.count(i);
    if (given == wanted) return TakeSubsets(k + 1, 0, 0);
    const uint32_t last = given < leaf.required ? given : leaf.open - (wanted - given);
    for (uint32_t next = from; next <= last && patience_ > 0; ++next) {
      const uint32_t host = leaf.begin + next;
      host_cost_.Add(host, i, sources_);
      taken_.push_back(field_.open.hosts[host]);
      TakeSubsets(k, next + 1, given + 1);
      taken_.pop_back();
      host_cost_.Remove(host, i, sources_);
    }
  }

  const PlacementQuestion& question_;
  const LeafField& field_;
  const PlacementConstraints& c_;
  CountState state_;
  HostCost host_cost_;
  Choice& best_;
  uint64_t patience_;
  uint32_t n_;
  std::vector<Suffix> suffixes_;   // [i]
  std::vector<bool> alike_;        // [i] with i - 1
  double fixed_ = 0;               // cost of the present counts, whichever hosts they are
  std::vector<uint32_t> sources_;  // leaf switches in use
  std::vector<HostIndex> taken_;
};

}  // namespace

bool SearchExactly(const PlacementQuestion& question, absl::Span<const OpenScope> scopes,
                   uint64_t patience, Choice& best) {
  for (const OpenScope& scope : scopes) {
    const uint32_t leaves = scope.end - scope.begin;
    if (leaves > kMaxLeaves) return false;
    if (question.hosts_matter() &&
        !HostCost::IsAffordable(question, question.open.hosts.size(), leaves)) {
      return false;
    }
  }
  for (const OpenScope& scope : scopes) {
    std::vector<uint32_t> positions;
    for (uint32_t i = scope.begin; i < scope.end; ++i) positions.push_back(i);
    absl::c_stable_sort(positions, [&](uint32_t a, uint32_t b) {
      const auto key = [&](uint32_t i) {
        const OpenLeaf& leaf = question.open.leaves[i];
        return std::tuple(question.index.pod_of(leaf.leaf), question.index.class_of(leaf.leaf),
                          leaf.required, leaf.most, leaf.free, leaf.held);
      };
      return key(a) < key(b);
    });
    const LeafField field(question.index, question.open, question.request, {}, positions);
    Brancher brancher(question, field, patience, best);
    if (!brancher.Run()) return false;
    patience = brancher.patience();
  }
  return true;
}

}  // namespace coppice
