#include "daemon/placement/host_set.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "daemon/placement/placement_metrics.h"
#include "daemon/placement/placement_request.h"

namespace coppice {
namespace {

constexpr size_t kMaxKept = 1 << 14;  // routes

class HostImprovement {
 public:
  HostImprovement(const LeafField& field, HostSet& set, uint64_t& patience)
      : field_(field), set_(set), patience_(patience), cost_(set.cost()) {}

  void Run() {
    while (patience_ > 0) {
      const bool moved = MoveLeaves();
      if (!SwapHosts() && !moved) return;
    }
  }

 private:
  bool IsRequired(uint32_t host) const {
    const OpenLeaf& leaf = field_.leaf(set_.leaf_of(host));
    return host < leaf.begin + leaf.required;
  }
  void Spend(size_t work) { patience_ -= std::min<uint64_t>(patience_, work); }

  void Exchange(const std::vector<uint32_t>& out, const std::vector<uint32_t>& in) {
    for (const uint32_t h : out) set_.Erase(h);
    for (const uint32_t h : in) set_.Insert(h);
    Spend(out.size() + in.size());
  }
  // Keeps the exchange if it is worth it.
  bool TryExchange(const std::vector<uint32_t>& out, const std::vector<uint32_t>& in) {
    Exchange(out, in);
    const double cost = set_.cost();
    if (cost < cost_ - kWorthwhileGain) {
      cost_ = cost;
      return true;
    }
    Exchange(in, out);
    return false;
  }

  bool SwapHosts() {
    bool improved = false;
    const std::vector<uint32_t> chosen = set_.hosts();
    for (const uint32_t out : chosen) {
      if (IsRequired(out) || !set_.contains(out)) continue;
      if (SwapFor(out)) improved = true;
      if (patience_ == 0) break;
    }
    return improved;
  }

  bool SwapFor(uint32_t out) {
    const uint32_t a = set_.leaf_of(out);
    for (uint32_t b = 0; b < field_.size(); ++b) {
      const OpenLeaf& leaf = field_.leaf(b);
      if (a != b && !set_.counts().MayMove(a, b, 1)) continue;
      for (uint32_t in = leaf.begin; in < leaf.begin + leaf.open; ++in) {
        if (set_.contains(in)) continue;
        if (TryExchange({out}, {in})) return true;
        if (patience_ == 0) return false;
      }
    }
    return false;
  }

  // All hosts of a leaf switch that need not be included, to another one.
  bool MoveLeaves() {
    bool improved = false;
    for (uint32_t a = 0; a < field_.size(); ++a) {
      for (uint32_t b = 0; b < field_.size() && patience_ > 0; ++b) {
        std::vector<uint32_t> out, in;
        if (a == b || !PlanLeafMove(a, b, out, in)) continue;
        improved |= TryExchange(out, in);
      }
    }
    return improved;
  }

  bool PlanLeafMove(uint32_t a, uint32_t b, std::vector<uint32_t>& out,
                    std::vector<uint32_t>& in) const {
    const OpenLeaf &from = field_.leaf(a), &to = field_.leaf(b);
    const uint32_t q = set_.counts().count(a) - from.required;
    if (set_.counts().count(a) == 0 || q == 0) return false;
    if (set_.counts().count(b) + q > to.most || !set_.counts().MayMove(a, b, q)) return false;
    for (uint32_t h = from.begin + from.required; h < from.begin + from.open; ++h) {
      if (set_.contains(h)) out.push_back(h);
    }
    for (uint32_t h = to.begin; h < to.begin + to.open && in.size() < q; ++h) {
      if (!set_.contains(h)) in.push_back(h);
    }
    return true;
  }

  const LeafField& field_;
  HostSet& set_;
  uint64_t& patience_;
  double cost_;
};

}  // namespace

bool HostCost::IsAffordable(const PlacementQuestion& question, size_t open_hosts, size_t leaves) {
  const size_t n = question.request.constraints.host_count;
  return open_hosts * leaves <= kMaxKept && n * std::min(n, leaves) <= kMaxRoutes;
}

HostCost::HostCost(const PlacementQuestion& question, const LeafField& field)
    : question_(question),
      field_(field),
      hosts_matter_(question.hosts_matter()),
      routes_(hosts_matter_ ? question.open.hosts.size() * field.size() : 0) {}

uint32_t HostCost::Keep(ChannelIndex c) {
  const auto [at, is_new] =
      channel_numbers_.try_emplace(c.value(), static_cast<uint32_t>(channels_.size()));
  if (!is_new) return at->second;
  const uint32_t link = Fabric::link_of(c).value();
  KeptChannel kept;
  kept.link = link_numbers_.try_emplace(link, shared_directions_.size()).first->second;
  if (kept.link == shared_directions_.size()) shared_directions_.push_back(0);
  kept.load = question_.snapshot.utilisation(c);
  const std::vector<uint32_t>& users = question_.occupancy.channel_users;
  kept.has_users = !users.empty() && users[c.value()] > 0;
  channels_.push_back(kept);
  return at->second;
}

const std::vector<uint32_t>& HostCost::RouteTo(uint32_t host, uint32_t source) {
  auto& route = routes_[size_t{host} * field_.size() + source];
  if (route) return *route;
  route.emplace();
  const PlacementIndex& index = question_.index;
  const auto from = index.switch_of(field_.leaf(source).leaf);
  if (!from) return *route;
  const Fabric& fabric = index.fabric();
  const EndpointIndex first = fabric.endpoints_of_host(question_.open.hosts[host]).front();
  // As JobChannels walks: a broken route counts up to where it breaks off, a loop once round.
  std::vector<uint32_t> seen;
  for (VertexIndex here = fabric.Vertex(*from); fabric.IsSwitch(here);) {
    if (absl::c_find(seen, here.value()) != seen.end()) break;
    seen.push_back(here.value());
    const ChannelIndex c =
        question_.snapshot.routes->NextChannel(fabric.AsSwitch(here), fabric.Vertex(first));
    if (c == kNoChannel) break;
    here = fabric.channel_to(c);
    if (fabric.IsSwitch(here)) route->push_back(Keep(c));
  }
  return *route;
}

void HostCost::Use(KeptChannel& channel, int32_t by) {
  const bool was_used = channel.routes > 0;
  channel.routes += static_cast<uint32_t>(by);
  const bool is_used = channel.routes > 0;
  if (was_used == is_used) return;
  used_ += is_used ? 1 : -1;
  load_ += is_used ? channel.load : -channel.load;
  if (!channel.has_users) return;
  uint32_t& directions = shared_directions_[channel.link];
  if (is_used) {
    shared_links_ += directions++ == 0 ? 1 : 0;
  } else {
    shared_links_ -= --directions == 0 ? 1 : 0;
  }
}

void HostCost::Count(uint32_t host, uint32_t leaf, absl::Span<const uint32_t> sources, int32_t by) {
  for (const uint32_t source : sources) {
    if (source == leaf) continue;
    for (const uint32_t c : RouteTo(host, source)) Use(channels_[c], by);
  }
}

double HostCost::OfLeaves(absl::Span<const uint32_t> used) const {
  std::vector<uint32_t> leaves;
  for (const uint32_t i : used) leaves.push_back(field_.leaf(i).leaf);
  return field_.objective.entries * SwitchesWithoutEntries(question_.snapshot, question_.index,
                                                           question_.occupancy,
                                                           question_.request.trees, leaves);
}

double HostCost::OfHosts() const {
  return LeastOfHosts() + (used_ == 0 ? 0 : field_.objective.load * (load_ / used_));
}

HostSet::HostSet(const PlacementQuestion& question, const LeafField& field)
    : counts_(field),
      cost_(question, field),
      leaf_of_(question.open.hosts.size(), kNone),
      at_(question.open.hosts.size(), kNone) {
  for (uint32_t i = 0; i < field.size(); ++i) {
    const OpenLeaf& leaf = field.leaf(i);
    std::fill_n(leaf_of_.begin() + leaf.begin, leaf.open, i);
  }
}

void HostSet::Assign(const std::vector<uint32_t>& hosts) {
  while (!hosts_.empty()) Erase(hosts_.back());
  for (const uint32_t h : hosts) Insert(h);
}

void HostSet::Insert(uint32_t host) {
  const uint32_t leaf = leaf_of_[host];
  const bool opens = counts_.count(leaf) == 0;
  counts_.Change(leaf, 1);
  if (cost_.hosts_matter()) {
    if (opens) {
      for (const uint32_t h : hosts_) cost_.Add(h, leaf_of_[h], {leaf});
    }
    cost_.Add(host, leaf, counts_.used());
  }
  at_[host] = static_cast<uint32_t>(hosts_.size());
  hosts_.push_back(host);
  if (opens) of_leaves_.reset();
}

void HostSet::Erase(uint32_t host) {
  const uint32_t leaf = leaf_of_[host];
  hosts_[at_[host]] = hosts_.back();
  at_[hosts_.back()] = at_[host];
  hosts_.pop_back();
  at_[host] = kNone;
  const bool empties = counts_.count(leaf) == 1;
  if (cost_.hosts_matter()) {
    cost_.Remove(host, leaf, counts_.used());
    if (empties) {
      for (const uint32_t h : hosts_) cost_.Remove(h, leaf_of_[h], {leaf});
    }
  }
  counts_.Change(leaf, -1);
  if (empties) of_leaves_.reset();
}

double HostSet::cost() {
  if (!of_leaves_) of_leaves_ = cost_.OfLeaves(counts_.used());
  return counts_.cost() + *of_leaves_ + cost_.OfHosts();
}

void ShakeHosts(const LeafField& field, HostSet& set, uint32_t count, std::mt19937_64& rng) {
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < field.size(); ++i) {
    for (uint32_t h = 0; h < field.leaf(i).open; ++h) open.push_back(field.leaf(i).begin + h);
  }
  for (uint32_t tries = 20 * count; tries > 0 && count > 0; --tries) {
    const uint32_t out = set.hosts()[rng() % set.hosts().size()];
    const uint32_t in = open[rng() % open.size()];
    const uint32_t a = set.leaf_of(out), b = set.leaf_of(in);
    const OpenLeaf& leaf = field.leaf(a);
    if (set.contains(in) || out < leaf.begin + leaf.required) continue;
    if (a != b && !set.counts().MayMove(a, b, 1)) continue;
    set.Erase(out);
    set.Insert(in);
    --count;
  }
}

void ImproveHosts(const LeafField& field, HostSet& set, uint64_t& patience) {
  HostImprovement(field, set, patience).Run();
}

}  // namespace coppice
