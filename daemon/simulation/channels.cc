#include "daemon/simulation/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

absl::Status Invalid(const std::string& what) { return absl::InvalidArgumentError(what); }

bool IsTime(double us) { return std::isfinite(us) && us >= 0; }

absl::Status CheckProfile(const CostProfile& profile) {
  if (profile.mtu_bytes == 0) {
    return Invalid(absl::StrCat("profile ", profile.name, ": mtu_bytes is 0; packets need a size"));
  }
  const auto fits = [](const NodeCost& cost) {
    return IsTime(cost.forward_us) && IsTime(cost.forward_us_per_byte) && IsTime(cost.match_us) &&
           IsTime(cost.reduce_us_per_byte) && IsTime(cost.send_us);
  };
  if (fits(profile.nic) && fits(profile.switch_) && IsTime(profile.init_us) &&
      IsTime(profile.link_us) && IsTime(profile.same_host_us)) {
    return absl::OkStatus();
  }
  return Invalid(absl::StrCat("profile ", profile.name,
                              ": a time is negative or not finite; state times from 0 on"));
}

// One root, every node below it, every node somewhere on the fabric.
absl::Status CheckShape(const Fabric& fabric, const AggregationTree& tree) {
  const size_t nodes = tree.parents.size();
  if (nodes == 0) return Invalid("the tree has no nodes; a communicator has at least one rank");
  if (tree.vertices.size() != nodes || tree.rank_count > nodes || tree.rank_count == 0) {
    return Invalid(absl::StrCat("the tree has ", nodes, " parents, ", tree.vertices.size(),
                                " vertices and ", tree.rank_count, " ranks; these do not fit"));
  }
  size_t roots = 0;
  for (size_t node = 0; node < nodes; ++node) {
    const int32_t parent = tree.parents[node];
    if (tree.vertices[node].value() >= fabric.vertex_count()) {
      return Invalid(absl::StrCat("node ", node, " is at vertex ", tree.vertices[node].value(),
                                  "; the fabric has ", fabric.vertex_count()));
    }
    if (parent == AggregationTree::kNoParent) {
      ++roots;
    } else if (parent < 0 || static_cast<size_t>(parent) >= nodes) {
      return Invalid(absl::StrCat("node ", node, " has parent ", parent,
                                  "; the tree has nodes 0 to ", nodes - 1));
    }
  }
  if (roots != 1) {
    return Invalid(absl::StrCat("the tree has ", roots, " roots; a tree has exactly one"));
  }
  return absl::OkStatus();
}

// Follows parents from every node; nodes known to reach the root end a walk. Linear.
absl::Status CheckNoCycle(const AggregationTree& tree) {
  constexpr uint32_t kNew = 0, kReachesRoot = 1;  // else: the number of the walk, from 2 on
  std::vector<uint32_t> state(tree.parents.size(), kNew);
  for (uint32_t node = 0; node < state.size(); ++node) {
    const uint32_t walk = node + 2;
    int32_t at = static_cast<int32_t>(node);
    while (at >= 0 && state[at] == kNew) {
      state[at] = walk;
      at = tree.parents[at];
    }
    if (at >= 0 && state[at] == walk) {
      return Invalid(absl::StrCat("node ", at, " is its own ancestor; the parents form a cycle"));
    }
    for (at = static_cast<int32_t>(node); at >= 0 && state[at] == walk; at = tree.parents[at]) {
      state[at] = kReachesRoot;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCollective(const Fabric& fabric, const SimulatedCollective& collective) {
  RETURN_IF_ERROR(CheckShape(fabric, collective.tree));
  RETURN_IF_ERROR(CheckNoCycle(collective.tree));
  const Payload& payload = collective.payload;
  if (payload.reduced_bytes > payload.up_bytes) {
    return Invalid(absl::StrCat("the payload reduces ", payload.reduced_bytes,
                                " bytes, but moves only ", payload.up_bytes, " up"));
  }
  if (!IsTime(collective.start_us)) {
    return Invalid(absl::StrCat("it starts at ", collective.start_us,
                                " us; a start is finite and at least 0"));
  }
  if (!collective.skew_us.empty() && collective.skew_us.size() != collective.tree.rank_count) {
    return Invalid(absl::StrCat(collective.skew_us.size(), " skews for ",
                                collective.tree.rank_count, " ranks; give one for each or none"));
  }
  for (size_t rank = 0; rank < collective.skew_us.size(); ++rank) {
    if (IsTime(collective.skew_us[rank])) continue;
    return Invalid(absl::StrCat("rank ", rank, " is ", collective.skew_us[rank],
                                " us late; a skew is finite and at least 0"));
  }
  return absl::OkStatus();
}

class Builder {
 public:
  Builder(const Snapshot& snapshot, const CostProfile& profile, const SimulationOptions& options)
      : snapshot_(snapshot), options_(options), layout_(std::make_shared<Layout>()) {
    layout_->profile = profile;
    layout_->pattern = options.pattern;
    layout_->header_bytes = options.header_bytes.value_or(profile.header_bytes);
  }

  absl::Status Add(const SimulatedCollective& collective) {
    RETURN_IF_ERROR(CheckCollective(*snapshot_.fabric, collective));
    CollectiveLayout added;
    added.first_node = static_cast<uint32_t>(layout_->nodes.size());
    added.node_count = collective.tree.node_count();
    added.rank_count = collective.tree.rank_count;
    added.start_us = collective.start_us;
    const uint64_t mtu = layout_->profile.mtu_bytes;
    ASSIGN_OR_RETURN(added.up,
                     SplitIntoPackets(collective.payload.up_bytes, mtu, options_.max_events));
    ASSIGN_OR_RETURN(added.down,
                     SplitIntoPackets(collective.payload.down_bytes, mtu, options_.max_events));
    if (collective.payload.up_bytes > 0) {
      added.reduced_share = static_cast<double>(collective.payload.reduced_bytes) /
                            static_cast<double>(collective.payload.up_bytes);
    }
    AddNodes(collective, added);
    for (uint32_t n = added.first_node; n < layout_->nodes.size(); ++n) {
      RETURN_IF_ERROR(AddRoutes(collective.tree, added, n));
    }
    layout_->collectives.push_back(added);
    return absl::OkStatus();
  }

  // Its channels come after those of the ways before it; where they begin.
  absl::StatusOr<uint32_t> AddWay(const Way& way) {
    const auto begin = static_cast<uint32_t>(layout_->hops.size());
    RETURN_IF_ERROR(AddRoute(way.from, way.to));
    return begin;
  }
  uint32_t hop_count() const { return static_cast<uint32_t>(layout_->hops.size()); }

  // Numbers the channels that were crossed and gives each its bandwidth and noise.
  absl::StatusOr<std::shared_ptr<const Layout>> Finish() {
    std::vector<uint32_t> crossed = layout_->hops;  // global indices so far
    std::sort(crossed.begin(), crossed.end());
    crossed.erase(std::unique(crossed.begin(), crossed.end()), crossed.end());
    std::vector<uint32_t> position(snapshot_.fabric->channel_count());
    layout_->channels.reserve(crossed.size());
    for (const uint32_t index : crossed) {
      position[index] = static_cast<uint32_t>(layout_->channels.size());
      ASSIGN_OR_RETURN(const ChannelLayout channel, Describe(ChannelIndex(index)));
      layout_->channels.push_back(channel);
    }
    for (uint32_t& hop : layout_->hops) hop = position[hop];
    return std::shared_ptr<const Layout>(std::move(layout_));
  }

 private:
  void AddNodes(const SimulatedCollective& collective, CollectiveLayout& added) {
    const AggregationTree& tree = collective.tree;
    const ChildLists lists = ChildrenOf(tree.parents);
    const auto first_child = static_cast<uint32_t>(layout_->children.size());
    for (const uint32_t child : lists.children) {
      layout_->children.push_back(added.first_node + child);
    }
    for (uint32_t n = 0; n < tree.node_count(); ++n) {
      NodeLayout node;
      node.collective = static_cast<uint32_t>(layout_->collectives.size());
      node.is_rank = tree.IsRank(n);
      node.first_child = first_child + lists.begin[n];
      node.child_count = lists.begin[n + 1] - lists.begin[n];
      node.own_data_us = collective.start_us;
      if (node.is_rank && !collective.skew_us.empty()) node.own_data_us += collective.skew_us[n];
      if (tree.parents[n] == AggregationTree::kNoParent) {
        added.root = added.first_node + n;
      } else {
        node.parent = added.first_node + static_cast<uint32_t>(tree.parents[n]);
      }
      node.unit = UnitOf(collective, n);
      layout_->nodes.push_back(node);
    }
  }

  uint32_t UnitOf(const SimulatedCollective& collective, uint32_t n) {
    if (!options_.shared_units && !collective.forest.has_value()) return layout_->unit_count++;
    const UnitKey key = options_.shared_units
                            ? UnitKey{kAnyForest, collective.tree.vertices[n].value()}
                            : UnitKey{*collective.forest, n};
    const auto [at, is_new] = units_.try_emplace(key, layout_->unit_count);
    if (is_new) ++layout_->unit_count;
    return at->second;
  }

  absl::Status AddRoutes(const AggregationTree& tree, const CollectiveLayout& added, uint32_t n) {
    NodeLayout& node = layout_->nodes[n];
    const VertexIndex child = tree.vertices[n - added.first_node];
    node.up = node.down = node.end = static_cast<uint32_t>(layout_->hops.size());
    if (node.parent != NodeLayout::kNoParent) {
      const VertexIndex parent = tree.vertices[node.parent - added.first_node];
      RETURN_IF_ERROR(AddRoute(child, parent));
      node.down = static_cast<uint32_t>(layout_->hops.size());
      RETURN_IF_ERROR(AddRoute(parent, child));
      node.end = static_cast<uint32_t>(layout_->hops.size());
      layout_->event_count += uint64_t{added.up.count} * (node.down - node.up + 1);
      layout_->event_count += uint64_t{added.down.count} * (node.end - node.down + 1);
    } else {
      layout_->event_count += added.down.count;
    }
    if (layout_->event_count > options_.max_events) return TooManyEvents(options_.max_events);
    if (node.child_count > 0) {
      node.first_packet = layout_->packet_counters;
      layout_->packet_counters += added.up.count;
    }
    return absl::OkStatus();
  }

  absl::Status AddRoute(VertexIndex from, VertexIndex to) {
    path_.clear();
    RETURN_IF_ERROR(snapshot_.routes->Append(from, to, path_));
    for (const ChannelIndex channel : path_) layout_->hops.push_back(channel.value());
    return absl::OkStatus();
  }

  absl::StatusOr<ChannelLayout> Describe(ChannelIndex c) const {
    const Fabric& fabric = *snapshot_.fabric;
    const double known = fabric.capacity_gbps(c);
    const double gbps = known > 0 ? known : layout_->profile.port_gbps;
    ChannelLayout channel;
    channel.index = c;
    channel.us_per_byte = gbps > 0 ? 8e-3 / gbps : 0;
    channel.noise = options_.noise + snapshot_.utilisation(c);
    if (channel.noise >= 0 && channel.noise < 1) return channel;
    return Invalid(absl::StrCat("link from ", coppice::Describe(fabric, fabric.channel_from(c)),
                                " to ", coppice::Describe(fabric, fabric.channel_to(c)),
                                ": noise and load take ", channel.noise,
                                " of it; leave the trees something, less than 1"));
  }

  const Snapshot& snapshot_;
  const SimulationOptions& options_;
  std::shared_ptr<Layout> layout_;
  std::vector<ChannelIndex> path_;
  // Shared ones: by vertex, or by a forest and its rank.
  using UnitKey = std::pair<uint64_t, uint32_t>;
  static constexpr uint64_t kAnyForest = UINT64_MAX;
  absl::flat_hash_map<UnitKey, uint32_t> units_;
};

// The queue's memory fades as exp(-t / r), r = D / (1 - sqrt(u))^2 (J. Cohen, "The Single Server
// Queue", III.7.3, an upper bound here, where service is constant). After 32 r nothing is left.
constexpr double kRelaxations = 32;

}  // namespace

absl::Status CheckConditions(const CostProfile& profile, const SimulationOptions& options) {
  RETURN_IF_ERROR(CheckProfile(profile));
  if (options.noise >= 0 && options.noise < 1) return absl::OkStatus();
  return Invalid(absl::StrCat("noise ", options.noise,
                              " is no share of a link's bandwidth; give 0 to less than 1"));
}

absl::Status TooManyEvents(uint64_t max_events) {
  return absl::ResourceExhaustedError(
      absl::StrCat("more than ", max_events,
                   " events; simulate fewer collectives or fewer bytes, or allow more events"));
}

absl::StatusOr<PacketTrain> SplitIntoPackets(uint64_t bytes, uint64_t mtu_bytes,
                                             uint64_t max_events) {
  if (bytes <= mtu_bytes) return PacketTrain{1, bytes, bytes};
  const uint64_t count = (bytes - 1) / mtu_bytes + 1;
  if (count > max_events || count > std::numeric_limits<uint32_t>::max()) {
    return TooManyEvents(max_events);
  }
  return PacketTrain{static_cast<uint32_t>(count), mtu_bytes, bytes - (count - 1) * mtu_bytes};
}

absl::StatusOr<std::shared_ptr<const Layout>> LayOut(
    const Snapshot& snapshot, const CostProfile& profile,
    absl::Span<const SimulatedCollective> collectives, const SimulationOptions& options) {
  RETURN_IF_ERROR(CheckConditions(profile, options));
  Builder builder(snapshot, profile, options);
  for (size_t i = 0; i < collectives.size(); ++i) {
    RETURN_IF_ERROR(Annotate(builder.Add(collectives[i]), absl::StrCat("collective ", i)));
  }
  return builder.Finish();
}

absl::StatusOr<RouteLayout> LayOutRoutes(const Snapshot& snapshot, const CostProfile& profile,
                                         absl::Span<const Way> ways,
                                         const SimulationOptions& options) {
  RETURN_IF_ERROR(CheckConditions(profile, options));
  Builder builder(snapshot, profile, options);
  RouteLayout routes;
  for (const Way& way : ways) {
    ASSIGN_OR_RETURN(const uint32_t begin, builder.AddWay(way));
    routes.begin.push_back(begin);
  }
  routes.begin.push_back(builder.hop_count());
  ASSIGN_OR_RETURN(routes.layout, builder.Finish());
  return routes;
}

Noise::Noise(NoisePattern pattern, double share, double service_us, RandomStream random)
    : pattern_(pattern),
      share_(share),
      service_us_(service_us),
      next_us_(std::numeric_limits<double>::infinity()),
      random_(random) {
  if (service_us_ <= 0) share_ = 0;  // an endless bandwidth has no share to lose
  if (share_ <= 0) return;
  gap_us_ = service_us_ / share_;
  const double rest = 1 - std::sqrt(share_);
  forgets_after_us_ = kRelaxations * service_us_ / (rest * rest);
}

double Noise::Gap() {
  return pattern_ == NoisePattern::kPeriodic ? gap_us_ : -gap_us_ * std::log1p(-random_.Uniform());
}

double Noise::Begin(double now) {
  if (share_ <= 0) return 0;
  if (pattern_ == NoisePattern::kPeriodic) {
    const double until_next = gap_us_ * random_.Uniform();
    next_us_ = now + until_next;
    return std::max(0.0, until_next - gap_us_ + service_us_);
  }
  double work_us = 0;
  while (random_.Uniform() < share_) work_us += service_us_ * random_.Uniform();
  next_us_ = now + Gap();
  return work_us;
}

Channels::Channels(const Layout& layout, uint64_t seed) : layout_(layout) {
  wires_.reserve(layout.channels.size());
  for (const ChannelLayout& channel : layout.channels) {
    const double service_us = channel.us_per_byte * layout.profile.mtu_bytes;
    wires_.push_back({.noise = Noise(layout.pattern, channel.noise, service_us,
                                     RandomStream(seed, channel.index.value())),
                      .waiting_us = {},
                      .use = {.channel = channel.index}});
  }
}

void Channels::Enqueue(Wire& wire, double now, double start_us) {
  if (start_us <= now) return;
  std::deque<double>& waiting_us = wire.waiting_us;
  while (!waiting_us.empty() && waiting_us.front() <= now) waiting_us.pop_front();
  waiting_us.push_back(start_us);
  const auto queue = static_cast<uint32_t>(waiting_us.size());
  wire.use.longest_queue = std::max(wire.use.longest_queue, queue);
}

// Others have used the wire all the time, whether anybody looked or not.
void Channels::BeginNoise(Wire& wire, double now) {
  const double work_us = wire.noise.Begin(now);
  wire.free_us = std::max(wire.free_us, now + work_us);
  const double service_us = wire.noise.service_us();
  double start_us = now + work_us;  // of the last in the queue, then of those before it
  while (start_us - service_us > now) start_us -= service_us;
  for (; start_us < now + work_us; start_us += service_us) Enqueue(wire, now, start_us);
}

void Channels::LetNoiseIn(Wire& wire, double now) {
  const double pause_us = now - std::max(wire.used_us, wire.free_us);
  if (wire.used_us < 0 || pause_us > wire.noise.forgets_after_us()) BeginNoise(wire, now);
  wire.used_us = now;
  while (wire.noise.next_us() <= now) {
    const double at = wire.noise.next_us();
    const double start_us = std::max(at, wire.free_us);
    Enqueue(wire, at, start_us);
    wire.free_us = start_us + wire.noise.service_us();
    ++wire.use.noise_packets;
    wire.noise.Advance();
  }
}

Crossing Channels::Cross(uint32_t channel, double now, double lag_us, uint64_t bytes) {
  Wire& wire = wires_[channel];
  LetNoiseIn(wire, now);
  const double us_per_byte = layout_.channels[channel].us_per_byte;
  const uint64_t with_header = bytes + layout_.header_bytes;
  const double wire_us = us_per_byte * static_cast<double>(with_header);
  const double start_us = std::max(now, wire.free_us);
  Enqueue(wire, now, start_us);
  wire.free_us = start_us + wire_us;
  ++wire.use.packets;
  wire.use.bytes += with_header;
  wire.use.busy_us += wire_us;
  const double tail_us =
      std::max(start_us + us_per_byte * static_cast<double>(bytes), now + lag_us);
  return {start_us, tail_us, wire.free_us};
}

std::vector<ChannelTraffic> Channels::Uses() const {
  std::vector<ChannelTraffic> uses;
  uses.reserve(wires_.size());
  for (const Wire& wire : wires_) uses.push_back(wire.use);
  return uses;
}

}  // namespace coppice
