// Both walks go over the inner nodes in breadth-first order, and over the children of each in order
// of rank; leaves cost nothing but their packet.
#include "daemon/tree/type1_bound.h"

#include <algorithm>
#include <array>

namespace coppice {
namespace {

constexpr uint32_t kLinksPerRank = 32;  // links read to know them alike, at most
constexpr size_t kMaxLeavesKept = 64;   // 4,096 edges

double LowerKnown(double a, double b) {
  if (a == 0 || b == 0) return a + b;
  return std::min(a, b);
}

}  // namespace

Type1Bound::Type1Bound(const Snapshot& snapshot, const CostProfile& profile,
                       const TreeRequest& request, const MemberPlaces& places)
    : snapshot_(snapshot),
      profile_(profile),
      request_(request),
      leaf_switches_(places.leaf_switches),
      all_on_switches_(places.all_on_switches) {
  for (const SizeShare& share : request.sizes) total_weight_ += share.weight;
  FindPlaces(places);
  time_of_links_.push_back(0);
  const uint32_t links = snapshot.fabric->link_count();
  is_exact_ = all_on_switches_ && snapshot.load->empty() &&
              snapshot.routes->kind() == RouteKind::kShortestPath &&
              links / kLinksPerRank <= places_.size() && LinksAreAlike();
  if (!is_exact_) between_gbps_ = 0;
  if (all_on_switches_ && waits_.empty() && leaf_switches_.size() <= kMaxLeavesKept &&
      PortsAreAlike()) {
    between_leaves_.assign(leaf_switches_.size() * leaf_switches_.size(), {.time_us = -1});
  }
  us_.resize(places_.size());
}

void Type1Bound::FindPlaces(const MemberPlaces& places) {
  const Fabric& fabric = *snapshot_.fabric;
  places_.reserve(request_.members.size());
  for (size_t rank = 0; rank < request_.members.size(); ++rank) {
    const EndpointIndex member = request_.members[rank];
    Place place;
    place.bundle = fabric.bundle(member);
    place.leaf = places.leaf_of_endpoint[places.endpoint_of_rank[rank]];
    if (all_on_switches_) {
      const double known = fabric.capacity_gbps(fabric.uplink(member));
      place.gbps = known > 0 ? known : profile_.port_gbps;
    }
    places_.push_back(place);
  }
  if (all_on_switches_ && !snapshot_.load->empty()) FindWaits();
  bundles_are_shared_ = BundlesAreShared();
}

void Type1Bound::FindWaits() {
  const auto wait = [&](ChannelIndex channel, double gbps) {
    const double u = std::clamp<double>(snapshot_.utilisation(channel), 0, kMaxUtilisation);
    if (u <= 0 || gbps <= 0) return 0.0;
    return static_cast<double>(profile_.mtu_bytes) * 8e-3 / gbps * u / (2 * (1 - u));
  };
  waits_.reserve(places_.size());
  for (size_t rank = 0; rank < places_.size(); ++rank) {
    const ChannelIndex up = snapshot_.fabric->uplink(request_.members[rank]);
    const double gbps = places_[rank].gbps;
    waits_.push_back({wait(up, gbps), wait(Fabric::Reverse(up), gbps)});
  }
}

// Ranks mostly go from bundle to bundle in order.
bool Type1Bound::BundlesAreShared() const {
  const auto comes_after = [](const Place& a, const Place& b) { return a.bundle >= b.bundle; };
  if (std::adjacent_find(places_.begin(), places_.end(), comes_after) == places_.end()) {
    return false;
  }
  std::vector<BundleIndex> bundles;
  bundles.reserve(places_.size());
  for (const Place& place : places_) bundles.push_back(place.bundle);
  std::sort(bundles.begin(), bundles.end());
  return std::adjacent_find(bundles.begin(), bundles.end()) != bundles.end();
}

bool Type1Bound::PortsAreAlike() const {
  return std::all_of(places_.begin(), places_.end(),
                     [&](const Place& place) { return place.gbps == places_[0].gbps; });
}

// Sets between_gbps_.
bool Type1Bound::LinksAreAlike() {
  const Fabric& fabric = *snapshot_.fabric;
  bool first = true;
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    if (!fabric.IsSwitch(fabric.link(LinkIndex(l)).b)) continue;  // b is the higher vertex
    const double known = fabric.capacity_gbps(ChannelIndex(2 * l));
    const double gbps = known > 0 ? known : profile_.port_gbps;
    if (!first && gbps != between_gbps_) return false;
    between_gbps_ = gbps;
    first = false;
  }
  return true;
}

inline uint32_t Type1Bound::Hops(uint32_t leaf, uint32_t other) const {
  if (leaf == other) return 0;
  return snapshot_.routes->distances().Between(leaf_switches_[leaf], leaf_switches_[other]);
}

inline float Type1Bound::TimeOf(uint32_t links, uint32_t from, uint32_t to) {
  if (waits_.empty()) {
    while (time_of_links_.size() <= links) {
      links_us_ += profile_.link_us;
      time_of_links_.push_back(static_cast<float>(links_us_));
    }
    return time_of_links_[links];
  }
  double us = 0;
  for (uint32_t l = 0; l < links; ++l) {
    us += profile_.link_us;
    if (l == 0) us += waits_[from].up_us;
  }
  return static_cast<float>(us + (links > 1 ? waits_[to].down_us : 0));
}

// The least that a packet needs from one rank to another, its children or its parent.
inline Type1Bound::Edge Type1Bound::EdgeOf(uint32_t from_rank, uint32_t to_rank) {
  const Place& from = places_[from_rank];
  const Place& to = places_[to_rank];
  if (from.bundle == to.bundle) return {static_cast<float>(profile_.same_host_us), 0, true};
  if (!all_on_switches_) return {TimeOf(1, from_rank, to_rank), 0, false};
  if (!between_leaves_.empty()) {
    Edge& edge = between_leaves_[from.leaf * leaf_switches_.size() + to.leaf];
    if (edge.time_us < 0) edge = EdgeBetween(from_rank, to_rank);
    return edge;
  }
  if (waits_.empty() && from.IsLike(last_from_) && to.IsLike(last_to_)) return last_edge_;
  last_from_ = from;
  last_to_ = to;
  last_edge_ = EdgeBetween(from_rank, to_rank);
  return last_edge_;
}

// Of ranks in different bundles.
Type1Bound::Edge Type1Bound::EdgeBetween(uint32_t from_rank, uint32_t to_rank) {
  const Place& from = places_[from_rank];
  const Place& to = places_[to_rank];
  const uint32_t hops = Hops(from.leaf, to.leaf);
  const double between = hops > 0 ? between_gbps_ : 0;
  return {TimeOf(2 + hops, from_rank, to_rank),
          static_cast<float>(LowerKnown(LowerKnown(from.gbps, between), to.gbps)), false};
}

// The same both ways without load; then found once a tree.
void Type1Bound::FindEdges() {
  edges_.clear();
  if (!waits_.empty()) return;
  edges_.resize(children_.size());
  for (const uint32_t rank : order_) {
    for (uint32_t c = begin_[rank]; c < begin_[rank + 1]; ++c) {
      edges_[c] = EdgeOf(children_[c], rank);
    }
  }
}

// Of children_[c], upwards.
inline Type1Bound::Edge Type1Bound::EdgeUp(uint32_t c, uint32_t rank) {
  return edges_.empty() ? EdgeOf(children_[c], rank) : edges_[c];
}
inline Type1Bound::Edge Type1Bound::EdgeDown(uint32_t c, uint32_t rank) {
  return edges_.empty() ? EdgeOf(rank, children_[c]) : edges_[c];
}

inline double Type1Bound::TransferUs(double gbps) {
  if (gbps != last_gbps_) {
    last_gbps_ = gbps;
    last_transfer_ = SerialisationUs(bytes_, gbps);
  }
  return last_transfer_;
}

// From being handed on to arrival; phi is `forward_us`.
inline double Type1Bound::EdgeUs(const Edge& edge, double forward_us) {
  if (edge.same_bundle) return edge.time_us;
  const double transfer = profile_.forward_includes_serialisation ? 0 : TransferUs(edge.gbps);
  return forward_us + edge.time_us + transfer;
}

void Type1Bound::SetPhase(uint64_t bytes) {
  bytes_ = bytes;
  last_gbps_ = -1;
}

// By time of arrival, then rank. Packets of one kind of edge from leaves all arrive together, so
// the times are few: they are counted, and only sorted if that fails.
void Type1Bound::SortPackets() {
  constexpr size_t kFew = 8;
  std::array<double, kFew> times;
  std::array<uint32_t, kFew> counts{};
  size_t few = 0;
  for (const Packet& packet : packets_) {
    size_t t = 0;
    while (t < few && times[t] < packet.arrival_us) ++t;
    if (t < few && times[t] == packet.arrival_us) {
      ++counts[t];
      continue;
    }
    if (few == kFew) {
      std::sort(packets_.begin(), packets_.end(), [](const Packet& a, const Packet& b) {
        return a.arrival_us != b.arrival_us ? a.arrival_us < b.arrival_us : a.rank < b.rank;
      });
      return;
    }
    std::copy_backward(times.begin() + t, times.begin() + few, times.begin() + few + 1);
    std::copy_backward(counts.begin() + t, counts.begin() + few, counts.begin() + few + 1);
    times[t] = packet.arrival_us;
    counts[t] = 1;
    ++few;
  }
  uint32_t next = 0;
  for (size_t t = 0; t < few; ++t) {
    const uint32_t count = counts[t];
    counts[t] = next;
    next += count;
  }
  sorted_.resize(packets_.size());
  for (const Packet& packet : packets_) {
    size_t t = 0;
    while (times[t] < packet.arrival_us) ++t;
    sorted_[counts[t]++] = packet;
  }
  packets_.swap(sorted_);
}

// When the node at hand starts on its last packet. `port_us`: least time between packets that
// enter by the port. Where the two kinds differ and arrivals are only bounds, all take the shorter
// spacing: the first packet's spacing is free, so that with both a later arrival might pay off.
double Type1Bound::LastStart(double match_us, double port_us) {
  if (!in_order_) SortPackets();
  double start = packets_.front().arrival_us;
  if (bundles_are_shared_ && port_us > match_us) {
    for (size_t i = 1; i < packets_.size(); ++i) {
      const bool short_spacing = !is_exact_ || packets_[i].same_bundle;
      start = std::max(packets_[i].arrival_us, start + (short_spacing ? match_us : port_us));
    }
    return start;
  }
  const double spacing = std::max(match_us, port_us);
  for (size_t i = 1; i < packets_.size(); ++i) {
    start = std::max(packets_[i].arrival_us, start + spacing);
  }
  return start;
}

double Type1Bound::Aggregate(const Payload& payload) {
  const NodeCost& nic = profile_.nic;
  const double forward =
      nic.forward_us + static_cast<double>(payload.up_bytes) * nic.forward_us_per_byte;
  const double match =
      nic.match_us + static_cast<double>(payload.reduced_bytes) * nic.reduce_us_per_byte;
  SetPhase(payload.up_bytes);
  std::fill(us_.begin(), us_.end(), 0);
  for (size_t p = order_.size(); p-- > 0;) {
    const uint32_t rank = order_[p];
    const double gbps = places_[rank].gbps;
    packets_.clear();
    in_order_ = true;
    double latest = 0;
    for (uint32_t c = begin_[rank]; c < begin_[rank + 1]; ++c) {
      const uint32_t child = children_[c];
      const Edge edge = EdgeUp(c, rank);
      const double arrival = us_[child] + EdgeUs(edge, forward);
      in_order_ = in_order_ && arrival >= latest;
      latest = arrival;
      packets_.push_back({arrival, child, edge.same_bundle});
    }
    const double port = WireUs(profile_, bytes_, static_cast<float>(gbps));
    us_[rank] = LastStart(match, port) + match;
  }
  return us_[root_];
}

double Type1Bound::Distribute(const Payload& payload) {
  const NodeCost& nic = profile_.nic;
  const double forward =
      nic.forward_us + static_cast<double>(payload.down_bytes) * nic.forward_us_per_byte;
  SetPhase(payload.down_bytes);
  us_[root_] = 0;
  double last = 0;
  for (const uint32_t rank : order_) {
    const double gbps = places_[rank].gbps;
    const double port = WireUs(profile_, bytes_, static_cast<float>(gbps));
    const double spacing = std::max(nic.send_us, port);
    double start = us_[rank];
    for (uint32_t c = begin_[rank]; c < begin_[rank + 1]; ++c) {
      const uint32_t child = children_[c];
      const Edge edge = EdgeDown(c, rank);
      us_[child] = start + nic.send_us + EdgeUs(edge, forward);
      last = std::max(last, us_[child]);
      start += edge.same_bundle ? nic.send_us : spacing;
    }
  }
  return last;
}

Stages Type1Bound::SlowestStages(const Payload& packet) {
  const NodeCost& nic = profile_.nic;
  const double match =
      nic.match_us + static_cast<double>(packet.reduced_bytes) * nic.reduce_us_per_byte;
  Stages slowest;
  for (const uint32_t rank : order_) {
    const double port_up =
        WireUs(profile_, packet.up_bytes, static_cast<float>(places_[rank].gbps));
    const double port_down =
        WireUs(profile_, packet.down_bytes, static_cast<float>(places_[rank].gbps));
    double up = 0, down = 0, enter = 0, leave = 0;
    bool has_port = false;
    for (uint32_t c = begin_[rank]; c < begin_[rank + 1]; ++c) {
      const Edge edge = EdgeUp(c, rank);
      up += edge.same_bundle ? match : std::max(match, port_up);
      down += edge.same_bundle ? nic.send_us : std::max(nic.send_us, port_down);
      if (edge.same_bundle) continue;
      enter += port_up;
      leave += port_down;
      has_port = true;
      slowest.up_us = std::max(slowest.up_us, WireUs(profile_, packet.up_bytes, edge.gbps));
      slowest.down_us = std::max(slowest.down_us, WireUs(profile_, packet.down_bytes, edge.gbps));
    }
    if (has_port && rank != root_ && places_[rank].bundle != places_[parents_[rank]].bundle) {
      enter += port_down;
      leave += port_up;
    }
    slowest.up_us = std::max(slowest.up_us, up);
    slowest.down_us = std::max(slowest.down_us, down);
    slowest.port_us = std::max({slowest.port_us, enter, leave});
  }
  return slowest;
}

double Type1Bound::Total(double cutoff) {
  double mean = 0;
  for (const SizeShare& share : request_.sizes) {
    const double weight = total_weight_ > 0 ? share.weight / total_weight_
                                            : 1.0 / static_cast<double>(request_.sizes.size());
    const Pipeline pipeline = PipelineOf(profile_, PayloadOf(request_.operation, share.bytes));
    const double more_us =
        pipeline.is_one_packet() ? 0 : pipeline.TotalUs(SlowestStages(pipeline.packet));
    const double so_far = profile_.init_us + Aggregate(pipeline.packet);
    if (mean + weight * (so_far + more_us) > cutoff) return mean + weight * (so_far + more_us);
    mean += weight * (so_far + Distribute(pipeline.packet) + more_us);
  }
  return mean;
}

double Type1Bound::Of(absl::Span<const int32_t> parents, double cutoff) {
  const auto ranks = static_cast<uint32_t>(parents.size());
  parents_ = parents;
  begin_.assign(ranks + 2, 0);  // one ahead, so that filling moves each into its place
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (parents[rank] < 0) {
      root_ = rank;
    } else {
      ++begin_[parents[rank] + 2];
    }
  }
  for (uint32_t rank = 2; rank < ranks + 2; ++rank) begin_[rank] += begin_[rank - 1];
  children_.resize(ranks - 1);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (parents[rank] >= 0) children_[begin_[parents[rank] + 1]++] = rank;
  }
  order_.clear();
  if (ranks > 1) order_.push_back(root_);
  for (size_t p = 0; p < order_.size(); ++p) {
    for (uint32_t c = begin_[order_[p]]; c < begin_[order_[p] + 1]; ++c) {
      if (begin_[children_[c]] < begin_[children_[c] + 1]) order_.push_back(children_[c]);
    }
  }
  FindEdges();
  return Total(cutoff);
}

}  // namespace coppice
