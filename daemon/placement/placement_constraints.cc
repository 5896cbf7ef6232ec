// Whether any counts of hosts meet the constraints is decided by exchange: among leaf switches that
// are not required, one with more open hosts serves as well as one with less, so that the largest
// of each further pod and then the largest of all are taken (AnyCounts).
//
// A refusal must say which constraint is to blame. They are switched on one after another, and the
// first with which AnyCounts finds nothing is named (BlameConstraint).
#include "daemon/placement/placement_constraints.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// The one host that is on both lists, if there is one.
std::optional<HostIndex> Common(absl::Span<const HostIndex> a, absl::Span<const HostIndex> b) {
  const absl::flat_hash_set<HostIndex> in_a(a.begin(), a.end());
  for (const HostIndex h : b) {
    if (in_a.contains(h)) return h;
  }
  return std::nullopt;
}

absl::Status CheckLists(const PlacementIndex& index, const PlacementConstraints& c) {
  const Fabric& fabric = index.fabric();
  const struct {
    const char* name;
    const std::vector<HostIndex>& hosts;
  } lists[] = {{"candidates", c.candidates}, {"include", c.include}, {"avoid", c.avoid}};
  for (const auto& list : lists) {
    absl::flat_hash_set<HostIndex> seen;
    for (const HostIndex h : list.hosts) {
      if (h.value() >= fabric.host_count()) {
        return absl::InvalidArgumentError(absl::StrCat(list.name, " has a host number ", h.value(),
                                                       " of a fabric with ", fabric.host_count(),
                                                       " hosts"));
      }
      if (!seen.insert(h).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            list.name, " names host ", fabric.host_name(h), " twice: name each host once"));
      }
    }
  }
  if (const auto h = Common(c.include, c.avoid)) {
    return absl::InvalidArgumentError(
        absl::StrCat("include and avoid contradict each other: both name host ",
                     fabric.host_name(*h), ": leave it out of one"));
  }
  return absl::OkStatus();
}

struct Bound {
  const char* name;
  uint64_t value;
};

template <class... Why>
absl::Status Contradict(absl::string_view a, absl::string_view b, const Why&... why) {
  return absl::InvalidArgumentError(
      absl::StrCat(a, " and ", b, " contradict each other: ", why...));
}

// Numbers alone, whatever the fabric.
absl::Status CheckNumbers(const PlacementConstraints& c) {
  const uint64_t n = c.host_count, k = c.hosts_per_leaf, most = c.max_hosts_per_leaf;
  if (n == 0) return absl::InvalidArgumentError("a placement of no hosts: ask for at least one");
  if (c.include.size() > n) {
    return Contradict("host count", "include", c.include.size(), " hosts to include, but ", n,
                      " wanted");
  }
  if (!c.candidates.empty() && c.candidates.size() < n) {
    return Contradict("host count", "candidates", c.candidates.size(), " candidates, but ", n,
                      " wanted");
  }
  const Bound least[] = {{"min leaf switches", c.min_leaf_switches}, {"min pods", c.min_pods}};
  for (const Bound& bound : least) {
    if (bound.value > n) {
      return Contradict("host count", bound.name, n, " hosts are on at most ", n, ", not on ",
                        bound.value);
    }
    if (c.max_leaf_switches > 0 && bound.value > c.max_leaf_switches) {
      return Contradict("max leaf switches", bound.name, c.max_leaf_switches, " is below ",
                        bound.value);
    }
  }
  if (c.same_pod && c.min_pods > 1) {
    return Contradict("same pod", "min pods", "one pod is not ", c.min_pods);
  }
  if (k > 0 && most > 0 && k > most && n > most) {
    return Contradict("hosts per leaf", "max hosts per leaf", std::min(k, n),
                      " on a leaf switch is above ", most);
  }
  const Bound per_leaf[] = {{"hosts per leaf", k}, {"max hosts per leaf", most}};
  for (const Bound& bound : per_leaf) {
    if (bound.value > 0 && c.max_leaf_switches > 0 && bound.value * c.max_leaf_switches < n) {
      return Contradict(bound.name, "max leaf switches", bound.value, " times ",
                        c.max_leaf_switches, " is below ", n);
    }
  }
  if (k > 0) {
    const uint64_t used = (n + k - 1) / k;
    for (const Bound& bound : least) {
      if (bound.value > used) {
        return Contradict("hosts per leaf", bound.name, n, " hosts, ", k, " on each, are on ", used,
                          " leaf switches, fewer than ", bound.value);
      }
    }
  }
  return absl::OkStatus();
}

// What includes ask of leaf switches and pods, against what the numbers allow.
absl::Status CheckIncludes(const PlacementIndex& index, const PlacementConstraints& c) {
  if (c.include.empty()) return absl::OkStatus();
  std::vector<uint32_t> on_leaf(index.leaf_count(), 0);
  uint32_t leaves = 0;
  const Fabric& fabric = index.fabric();
  const uint32_t first = index.leaf_of(c.include.front());
  for (const HostIndex h : c.include) {
    const uint32_t leaf = index.leaf_of(h);
    if (leaf == PlacementIndex::kNone) {
      return absl::InvalidArgumentError(absl::StrCat("host ", fabric.host_name(h),
                                                     " to include has no cabled port: leave it "
                                                     "out or cable it"));
    }
    leaves += on_leaf[leaf]++ == 0 ? 1 : 0;
    const std::string both =
        absl::StrCat(fabric.host_name(c.include.front()), " and ", fabric.host_name(h));
    if (index.component_of(leaf) != index.component_of(first)) {
      return absl::InvalidArgumentError(
          absl::StrCat("hosts ", both, " to include are not connected: leave one out"));
    }
    if (c.same_pod && index.pod_of(leaf) != index.pod_of(first)) {
      return Contradict("include", "same pod", both, " are in two pods");
    }
    const Bound most[] = {{"max hosts per leaf", c.max_hosts_per_leaf},
                          {"hosts per leaf", c.hosts_per_leaf}};
    for (const Bound& bound : most) {
      if (bound.value > 0 && on_leaf[leaf] > bound.value) {
        return Contradict("include", bound.name, "more than ", bound.value,
                          " hosts to include are on ", index.Describe(leaf));
      }
    }
  }
  if (c.max_leaf_switches > 0 && leaves > c.max_leaf_switches) {
    return Contradict("include", "max leaf switches", "the hosts to include are on ", leaves,
                      " leaf switches");
  }
  return absl::OkStatus();
}

enum class HostState : uint8_t { kOut, kHeld, kFree, kOpen, kIncluded };

std::vector<HostState> StatesOf(const PlacementIndex& index, const Occupancy& occupancy,
                                const PlacementConstraints& c) {
  const uint32_t count = index.host_count();
  std::vector<HostState> state(count);
  const HostState unheld = c.candidates.empty() ? HostState::kOpen : HostState::kFree;
  for (uint32_t h = 0; h < count; ++h) {
    state[h] = occupancy.holder[h] == Occupancy::kFree ? unheld : HostState::kHeld;
  }
  for (const HostIndex h : c.candidates) state[h.value()] = HostState::kOpen;
  for (const HostIndex h : c.avoid) {
    if (state[h.value()] == HostState::kOpen) state[h.value()] = HostState::kFree;
  }
  for (uint32_t h = 0; h < occupancy.is_placed.size(); ++h) {
    if (occupancy.is_placed[h]) state[h] = HostState::kHeld;
  }
  for (uint32_t h = 0; h < occupancy.is_out.size(); ++h) {
    if (occupancy.is_out[h]) state[h] = HostState::kOut;
  }
  return state;
}

absl::Status MarkIncluded(const PlacementIndex& index, const PlacementConstraints& c,
                          std::vector<HostState>& state) {
  for (const HostIndex h : c.include) {
    HostState& s = state[h.value()];
    const char* why = nullptr;
    if (s == HostState::kOut) why = "is out: its ports do not answer, or it is kept out";
    if (s == HostState::kHeld) why = "is held by another job or placement";
    if (s == HostState::kFree) why = "is not among the candidates";
    if (why != nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("host ", index.fabric().host_name(h), " to include ", why,
                       ": leave it out of include, or wait for it"));
    }
    s = HostState::kIncluded;
  }
  return absl::OkStatus();
}

OpenHosts Gather(const PlacementIndex& index, const PlacementConstraints& c,
                 const std::vector<HostState>& state) {
  OpenHosts open;
  open.hosts.reserve(c.candidates.empty() ? index.host_count() : c.candidates.size());
  const uint32_t limit = std::min(c.max_hosts_per_leaf > 0 ? c.max_hosts_per_leaf : UINT32_MAX,
                                  c.hosts_per_leaf > 0 ? c.hosts_per_leaf : UINT32_MAX);
  for (uint32_t l = 0; l < index.leaf_count(); ++l) {
    OpenLeaf leaf;
    leaf.leaf = l;
    leaf.begin = static_cast<uint32_t>(open.hosts.size());
    for (const HostIndex h : index.hosts(l)) {
      const HostState s = state[h.value()];
      leaf.held += s == HostState::kHeld ? 1 : 0;
      leaf.free += s >= HostState::kFree ? 1 : 0;
      if (s >= HostState::kOpen) open.hosts.push_back(h);
      if (s == HostState::kIncluded) {
        std::swap(open.hosts[leaf.begin + leaf.required], open.hosts.back());
        ++leaf.required;
      }
    }
    leaf.open = static_cast<uint32_t>(open.hosts.size()) - leaf.begin;
    open.free += leaf.free;
    open.required += leaf.required;
    leaf.most = std::min(leaf.open, limit);
    if (leaf.open > 0) open.leaves.push_back(leaf);
  }
  return open;
}

uint32_t OpenCount(const OpenHosts& open) {
  uint32_t count = 0;
  for (const OpenLeaf& leaf : open.leaves) count += leaf.open;
  return count;
}

// Without the leaf switches that have held hosts. FAILED_PRECONDITION: one to include is on such.
absl::Status KeepExclusive(const PlacementIndex& index, OpenHosts& open) {
  for (const OpenLeaf& leaf : open.leaves) {
    if (leaf.required > 0 && leaf.held > 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "host ", index.fabric().host_name(open.hosts[leaf.begin]), " to include is on ",
          index.Describe(leaf.leaf), ", of which others hold ", leaf.held,
          " hosts, but exclusive switches are asked for: give up one of the two"));
    }
  }
  std::erase_if(open.leaves, [](const OpenLeaf& leaf) { return leaf.held > 0; });
  return absl::OkStatus();
}

bool Fits(const PlacementIndex& index, const OpenHosts& open, const PlacementConstraints& c) {
  for (const OpenScope& scope : FindScopes(index, open, c)) {
    if (AnyCounts(index, open, scope, c)) return true;
  }
  return false;
}

// The most that any scope can give under the constraints, by bisection: whatever gives so many
// gives fewer, but for counts that hosts_per_leaf or least numbers of leaf switches exclude.
uint32_t MostThatFit(const PlacementIndex& index, const OpenHosts& open, PlacementConstraints c) {
  uint32_t fits = 0, fails = c.host_count;
  while (fails - fits > 1) {
    c.host_count = fits + (fails - fits) / 2;
    (Fits(index, open, c) ? fits : fails) = c.host_count;
  }
  return fits;
}

// Why `open` does not meet `c`: the first constraint with which it does not, and what it leaves.
absl::Status BlameConstraint(const PlacementIndex& index, const OpenHosts& open,
                             const PlacementConstraints& all) {
  PlacementConstraints c;
  c.host_count = all.host_count;
  OpenHosts unlimited = open;
  for (OpenLeaf& leaf : unlimited.leaves) leaf.most = leaf.open;
  const OpenHosts* hosts = &unlimited;
  std::string blamed =
      open.required > 0 ? "the hosts to include and those connected to them" : "connected hosts";
  const auto fails = [&] { return !Fits(index, *hosts, c); };
  const auto enable = [&](const char* name, auto constraint) {
    if (!(all.*constraint) || fails()) return;
    c.*constraint = all.*constraint;
    if (c.max_hosts_per_leaf > 0 || c.hosts_per_leaf > 0) hosts = &open;
    blamed = name;
  };
  using C = PlacementConstraints;
  enable("same pod", &C::same_pod);
  enable("max hosts per leaf", &C::max_hosts_per_leaf);
  enable("hosts per leaf", &C::hosts_per_leaf);
  enable("max leaf switches", &C::max_leaf_switches);
  enable("min leaf switches", &C::min_leaf_switches);
  enable("min pods", &C::min_pods);
  return absl::ResourceExhaustedError(
      absl::StrCat(blamed, " leave", blamed.back() == 's' ? "" : "s", " at most ",
                   MostThatFit(index, *hosts, c), " of ", OpenCount(open), " hosts, but ",
                   all.host_count, " are wanted: ask for fewer, or give up this constraint"));
}

// Counts of hosts by leaf switch that meet every constraint, or the proof that there are none.
//
//     1  leaf switches with hosts to include
//     2  the largest leaf switch of each further pod, largest first, until there are enough pods
//     3  the largest of all others, until there are enough leaf switches and room for all hosts
//
// Exchange: in any answer, a leaf switch of step 2 or 3 can be replaced by the one that is taken
// here, which has at least as much room and covers as many pods. So if this finds none, there is
// none. With hosts_per_leaf, room is whole leaf switches, and one that has room for the last,
// lesser share only may be taken once.
class CountsBuilder {
 public:
  CountsBuilder(const PlacementIndex& index, const OpenHosts& open, const OpenScope& scope,
                const PlacementConstraints& constraints)
      : index_(index),
        open_(open),
        scope_(scope),
        c_(constraints),
        covered_(index.pod_count(), false),
        is_taken_(scope.end - scope.begin, false) {
    if (c_.hosts_per_leaf > 0) last_ = LastLeafHosts(c_);
    for (uint32_t i = scope.begin; i < scope.end; ++i) {
      if (open_.leaves[i].most >= last_) order_.push_back(i);
    }
    absl::c_stable_sort(order_, [&](uint32_t a, uint32_t b) { return Room(a) > Room(b); });
    most_leaves_ = c_.max_leaf_switches > 0 ? c_.max_leaf_switches : UINT32_MAX;
    if (c_.hosts_per_leaf > 0) {
      const uint32_t used = (c_.host_count + c_.hosts_per_leaf - 1) / c_.hosts_per_leaf;
      least_leaves_ = used;
      most_leaves_ = std::min(most_leaves_, used);
    }
    least_leaves_ = std::max(least_leaves_, c_.min_leaf_switches);
  }

  std::optional<LeafCounts> Build() {
    uint32_t required = 0;
    for (const uint32_t i : order_) {
      if (open_.leaves[i].required == 0) continue;
      required += open_.leaves[i].required;
      if (!Take(i)) return std::nullopt;
    }
    if (required < open_.required) return std::nullopt;  // on a leaf switch without enough room
    for (const uint32_t i : order_) {
      if (pods_ >= c_.min_pods) break;
      if (!covered_[Pod(i)]) Take(i);
    }
    for (const uint32_t i : order_) {
      if (room_ >= c_.host_count && taken_.size() >= least_leaves_) break;
      if (!is_taken_[i - scope_.begin]) Take(i);
    }
    if (room_ < c_.host_count || taken_.size() < least_leaves_ || pods_ < c_.min_pods ||
        taken_.size() > c_.host_count) {
      return std::nullopt;
    }
    return Share();
  }

 private:
  uint32_t Pod(uint32_t i) const { return index_.pod_of(open_.leaves[i].leaf); }
  // Hosts that leaf switch i can have beside all others of the answer.
  uint32_t Room(uint32_t i) const {
    const uint32_t most = open_.leaves[i].most;
    return c_.hosts_per_leaf == 0 || most == c_.hosts_per_leaf ? most : last_;
  }
  bool IsLesser(uint32_t i) const {
    return c_.hosts_per_leaf > 0 && open_.leaves[i].most < c_.hosts_per_leaf;
  }
  bool Take(uint32_t i) {
    if (taken_.size() >= most_leaves_) return false;
    if (IsLesser(i) && (has_lesser_ || open_.leaves[i].required > last_)) return false;
    has_lesser_ |= IsLesser(i);
    taken_.push_back(i);
    is_taken_[i - scope_.begin] = true;
    room_ += Room(i);
    pods_ += covered_[Pod(i)] ? 0 : 1;
    covered_[Pod(i)] = true;
    return true;
  }

  std::optional<LeafCounts> Share() {
    LeafCounts counts;
    if (c_.hosts_per_leaf > 0) {
      for (const uint32_t i : taken_) counts.emplace_back(i, c_.hosts_per_leaf);
      if (!GiveLastShare(counts)) return std::nullopt;
    } else {
      uint32_t left = c_.host_count;
      for (const uint32_t i : taken_) {
        counts.emplace_back(i, std::max(1U, open_.leaves[i].required));
        if (counts.back().second > left) return std::nullopt;
        left -= counts.back().second;
      }
      for (auto& [i, count] : counts) {
        const uint32_t more = std::min(left, open_.leaves[i].most - count);
        count += more;
        left -= more;
      }
    }
    absl::c_sort(counts);
    return counts;
  }

  // The lesser leaf switch, or one that need not have more, gets the last share.
  bool GiveLastShare(LeafCounts& counts) const {
    if (last_ == c_.hosts_per_leaf) return true;
    for (const bool lesser : {true, false}) {
      for (auto it = counts.rbegin(); it != counts.rend(); ++it) {
        if (IsLesser(it->first) == lesser && open_.leaves[it->first].required <= last_) {
          it->second = last_;
          return !has_lesser_ || lesser;
        }
      }
    }
    return false;
  }

  const PlacementIndex& index_;
  const OpenHosts& open_;
  const OpenScope& scope_;
  const PlacementConstraints& c_;
  std::vector<bool> covered_;    // [pod]
  std::vector<bool> is_taken_;   // [position in the scope]
  std::vector<uint32_t> order_;  // positions, the most room first
  std::vector<uint32_t> taken_;
  uint32_t last_ = 1;  // hosts on the last leaf switch
  uint32_t least_leaves_ = 0, most_leaves_ = 0, pods_ = 0;
  uint64_t room_ = 0;
  bool has_lesser_ = false;
};

}  // namespace

absl::Status CheckConstraints(const PlacementIndex& index, const PlacementConstraints& c) {
  RETURN_IF_ERROR(CheckNumbers(c));
  if (c.host_count > index.hosts_by_leaf().size()) {
    return absl::InvalidArgumentError(absl::StrCat(c.host_count, " hosts wanted of a fabric with ",
                                                   index.hosts_by_leaf().size(),
                                                   ": ask for no more than it has"));
  }
  RETURN_IF_ERROR(CheckLists(index, c));
  return CheckIncludes(index, c);
}

absl::Status CheckAgainstEmptyFabric(const PlacementIndex& index, const PlacementConstraints& c) {
  Occupancy nobody;
  nobody.holder.assign(index.host_count(), Occupancy::kFree);
  const absl::StatusOr<OpenHosts> open = FindOpenHosts(index, nobody, c);
  if (open.status().code() != absl::StatusCode::kResourceExhausted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("what is asked for contradicts the fabric, even with all of its hosts free: ",
                   open.status().message()));
}

absl::StatusOr<OpenHosts> FindOpenHosts(const PlacementIndex& index, const Occupancy& occupancy,
                                        const PlacementConstraints& c) {
  std::vector<HostState> state = StatesOf(index, occupancy, c);
  RETURN_IF_ERROR(MarkIncluded(index, c, state));
  OpenHosts open = Gather(index, c, state);
  const uint32_t n = c.host_count;
  const auto too_few = [n](const std::string& what, uint32_t left) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, " leave ", left, " hosts, but ", n, " are wanted"));
  };
  if (open.free < n) {
    return absl::ResourceExhaustedError(
        absl::StrCat("only ", open.free, " of ", index.hosts_by_leaf().size(),
                     " hosts are free, but ", n, " are wanted: ask for fewer, or wait"));
  }
  if (const uint32_t left = OpenCount(open); left < n) {
    const char* const names = c.avoid.empty()        ? "candidates"
                              : c.candidates.empty() ? "the hosts to avoid"
                                                     : "candidates and hosts to avoid";
    return too_few(absl::StrCat("of ", open.free, " free hosts, ", names), left);
  }
  if (c.exclusive_switches) {
    RETURN_IF_ERROR(KeepExclusive(index, open));
    if (const uint32_t left = OpenCount(open); left < n) {
      return too_few(absl::StrCat("of ", open.free, " free hosts, exclusive switches"), left);
    }
  }
  if (!Fits(index, open, c)) return BlameConstraint(index, open, c);
  return open;
}

std::vector<OpenScope> FindScopes(const PlacementIndex& index, const OpenHosts& open,
                                  const PlacementConstraints& c) {
  const auto group_of = [&](const OpenLeaf& leaf) {
    return c.same_pod ? index.pod_of(leaf.leaf) : index.component_of(leaf.leaf);
  };
  std::vector<OpenScope> scopes;
  uint32_t begin = 0;
  while (begin < open.leaves.size()) {
    const uint32_t group = group_of(open.leaves[begin]);
    uint64_t most = 0;
    uint32_t required = 0, end = begin;
    for (; end < open.leaves.size() && group_of(open.leaves[end]) == group; ++end) {
      most += open.leaves[end].most;
      required += open.leaves[end].required;
    }
    if (most >= c.host_count && required == open.required) scopes.push_back({begin, end});
    begin = end;
  }
  return scopes;
}

std::optional<LeafCounts> AnyCounts(const PlacementIndex& index, const OpenHosts& open,
                                    const OpenScope& scope,
                                    const PlacementConstraints& constraints) {
  return CountsBuilder(index, open, scope, constraints).Build();
}

}  // namespace coppice
