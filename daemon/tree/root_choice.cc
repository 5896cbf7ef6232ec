// The centre of the members, without a distance per member: members matter only through the leaf
// switches they are cabled to, these only through their twin classes
// (daemon/fabric/distances.h), and eccentricities only until the first switch has seen them all.
//
//        level 0        level 1              level 2
//        leaf a: a      spine 1: a b         top: a b c d   <- first to see all: the candidates
//        leaf b: b      spine 2:     c d                       are those that do at this level
//
// Twins are 2 hops apart, which distances between classes do not say: a switch whose class holds
// another leaf switch is at least 2 hops from the members.
#include "daemon/tree/root_choice.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "absl/algorithm/container.h"
#include "daemon/tree/even_routes.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {
namespace {

constexpr size_t kMaxRows = 64;  // above, rows of 255 hops cost more than bits

// The leaf switches, class by class.
struct LeafClasses {
  std::vector<uint32_t> classes;   // distinct, in the order of their first leaf switch
  std::vector<uint32_t> leaves;    // [class] leaf switches in it
  std::vector<SwitchIndex> first;  // [class] the first of them

  LeafClasses(const TwinClasses& twins, absl::Span<const SwitchIndex> leaf_switches)
      : leaves(twins.class_count(), 0), first(twins.class_count()) {
    for (const SwitchIndex leaf : leaf_switches) {
      const uint32_t c = twins.class_of(leaf);
      if (leaves[c]++ > 0) continue;
      first[c] = leaf;
      classes.push_back(c);
    }
  }

  bool HasTwin(uint32_t c, SwitchIndex s) const {
    return leaves[c] > 1 || (leaves[c] == 1 && first[c] != s);
  }
};

// Hops from every class to the farthest leaf switch, twins apart.
std::vector<uint8_t> MostHops(const SwitchDistances& distances, const LeafClasses& members) {
  std::vector<uint8_t> most(distances.classes().class_count(), 0);
  for (const uint32_t target : members.classes) {
    const uint8_t* const row = distances.ClassRowTo(target).data();
    for (size_t c = 0; c < most.size(); ++c) most[c] = std::max(most[c], row[c]);
  }
  return most;
}

std::vector<uint8_t> FarthestByRows(const SwitchDistances& distances, const LeafClasses& members) {
  const std::vector<uint8_t> most = MostHops(distances, members);
  std::vector<uint8_t> farthest(distances.fabric().switch_count());
  for (uint32_t s = 0; s < farthest.size(); ++s) {
    const uint32_t c = distances.classes().class_of(SwitchIndex(s));
    farthest[s] = members.HasTwin(c, SwitchIndex(s)) ? std::max<uint8_t>(most[c], 2) : most[c];
  }
  return farthest;
}

std::vector<SwitchIndex> NearestByRows(const SwitchDistances& distances,
                                       const LeafClasses& members) {
  const std::vector<uint8_t> farthest = FarthestByRows(distances, members);
  const uint8_t least = *absl::c_min_element(farthest);
  std::vector<SwitchIndex> nearest;
  if (least == SwitchDistances::kUnreachable) return nearest;
  for (uint32_t s = 0; s < farthest.size(); ++s) {
    if (farthest[s] == least) nearest.emplace_back(s);
  }
  return nearest;
}

// seen[class] is the set of leaf classes within `level` hops, `words` words each.
class BitSearch {
 public:
  BitSearch(const SwitchDistances& distances, const LeafClasses& members)
      : fabric_(distances.fabric()),
        twins_(distances.classes()),
        members_(members),
        words_((members.classes.size() + 63) / 64),
        full_(words_, ~uint64_t{0}),
        seen_(words_ * twins_.class_count(), 0) {
    const size_t count = members.classes.size();
    if (count % 64 != 0) full_.back() = (uint64_t{1} << count % 64) - 1;
    for (size_t i = 0; i < count; ++i) {
      seen_[members.classes[i] * words_ + i / 64] |= uint64_t{1} << i % 64;
    }
    lowest_.reserve(twins_.class_count());
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) {
      if (twins_.class_of(SwitchIndex(s)) == lowest_.size()) lowest_.emplace_back(s);
    }
  }

  // The switches that have seen all leaf switches.
  std::vector<SwitchIndex> Full() const {
    std::vector<bool> is_full(twins_.class_count());
    for (uint32_t c = 0; c < is_full.size(); ++c) {
      is_full[c] =
          std::equal(full_.begin(), full_.end(), seen_.begin() + static_cast<int64_t>(c * words_));
    }
    std::vector<SwitchIndex> full;
    for (uint32_t i = 0; i < fabric_.switch_count(); ++i) {
      const SwitchIndex s(i);
      const uint32_t c = twins_.class_of(s);
      if (is_full[c] && (level_ >= 2 || !members_.HasTwin(c, s))) full.push_back(s);
    }
    return full;
  }

  // One level further; false if that cannot tell anything new.
  bool Advance() {
    next_ = seen_;
    for (uint32_t c = 0; c < lowest_.size(); ++c) {
      uint64_t* mine = next_.data() + c * words_;
      uint32_t last = c;
      for (const uint32_t to : twins_.classes_beside(lowest_[c])) {
        if (to == last) continue;  // parallel links, twins
        last = to;
        const uint64_t* theirs = seen_.data() + to * words_;
        for (size_t w = 0; w < words_; ++w) mine[w] |= theirs[w];
      }
    }
    seen_.swap(next_);
    return ++level_ <= 2 || seen_ != next_;
  }

 private:
  const Fabric& fabric_;
  const TwinClasses& twins_;
  const LeafClasses& members_;
  const size_t words_;
  std::vector<uint64_t> full_;
  std::vector<uint64_t> seen_, next_;
  std::vector<SwitchIndex> lowest_;  // [class]
  uint32_t level_ = 0;
};

double MeanUtilisation(const Snapshot& snapshot, SwitchIndex s) {
  const absl::Span<const Channel> channels = snapshot.fabric->channels(snapshot.fabric->Vertex(s));
  if (channels.empty()) return 0;
  double sum = 0;
  for (const Channel& channel : channels) {
    sum += snapshot.utilisation(channel.index);
    sum += snapshot.utilisation(Fabric::Reverse(channel.index));
  }
  return sum / (2.0 * static_cast<double>(channels.size()));
}

}  // namespace

std::vector<SwitchIndex> NearestSwitches(const Snapshot& snapshot,
                                         absl::Span<const SwitchIndex> leaf_switches) {
  if (leaf_switches.size() == 1) return {leaf_switches[0]};
  const SwitchDistances& distances = snapshot.routes->distances();
  const LeafClasses members(distances.classes(), leaf_switches);
  if (members.classes.size() <= kMaxRows) return NearestByRows(distances, members);
  BitSearch search(distances, members);
  std::vector<SwitchIndex> nearest = search.Full();
  while (nearest.empty() && search.Advance()) nearest = search.Full();
  return nearest;
}

std::vector<uint8_t> FarthestHops(const Snapshot& snapshot,
                                  absl::Span<const SwitchIndex> leaf_switches) {
  const SwitchDistances& distances = snapshot.routes->distances();
  return FarthestByRows(distances, LeafClasses(distances.classes(), leaf_switches));
}

void SortRoots(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
               std::vector<SwitchIndex>& roots) {
  using Key = std::tuple<double, uint32_t, SwitchIndex>;
  std::vector<Key> keys;
  keys.reserve(roots.size());
  for (const SwitchIndex s : roots) {
    const double load = snapshot.load->empty() ? 0.0 : MeanUtilisation(snapshot, s);
    keys.emplace_back(load, UINT32_MAX - capacity[s.value()].entries_free, s);
  }
  absl::c_sort(keys);
  absl::c_transform(keys, roots.begin(), [](const Key& key) { return std::get<2>(key); });
}

// With one serving switch all P ranks are its children. Whoever is d hops or more away comes no
// earlier than phi + (d + 1) l, and all of these are then matched one after another:
//
//     T_agg >= max over d of  phi + (d + 1) l + |{ranks at d hops or more}| (theta + S gamma)
//
// Copies leave one after another, so the same holds downwards with c_send. With E serving switches
// some one of them has at least ceil((P - 1) / E) + 1 children, and the farthest rank's packet
// still crosses d + 1 links and is matched once. Of a long message that one matches all packets,
// and the last one's way down follows. No route is faster than the members' own links.

namespace {

// Shorter messages are through a port before they are matched.
constexpr uint64_t kShortBytes = 256;

}  // namespace

RootBound::RootBound(const Snapshot& snapshot, const CostProfile& profile,
                     const TreeRequest& request, const MemberPlaces& places)
    : snapshot_(snapshot),
      profile_(profile),
      request_(request),
      places_(places),
      ranks_on_leaf_(places.leaf_switches.size(), 0) {
  for (size_t e = 0; e < places.endpoints.size(); ++e) {
    const ChannelIndex uplink = snapshot.fabric->uplink(places.endpoints[e]);
    member_gbps_ = std::max(member_gbps_, KnownCapacity(snapshot, profile, uplink));
    ranks_on_leaf_[places.leaf_of_endpoint[e]] += places.ranks_at[e];
  }
  for (const SizeShare& share : request.sizes) wires_matter_ |= share.bytes > kShortBytes;
  const TwinClasses& twins = snapshot.routes->distances().classes();
  std::map<uint32_t, uint32_t> ranks_of;  // [class]
  for (size_t leaf = 0; leaf < ranks_on_leaf_.size(); ++leaf) {
    ranks_of[twins.class_of(places.leaf_switches[leaf])] += ranks_on_leaf_[leaf];
  }
  for (const auto& [twin_class, ranks] : ranks_of) classes_.push_back({twin_class, ranks});
}

uint32_t RootBound::ranks_on(SwitchIndex s) const {
  const auto at = absl::c_lower_bound(places_.leaf_switches, s);
  if (at == places_.leaf_switches.end() || *at != s) return 0;
  return ranks_on_leaf_[static_cast<size_t>(at - places_.leaf_switches.begin())];
}

uint32_t RootBound::Count(SwitchIndex s) {
  const SwitchDistances& distances = snapshot_.routes->distances();
  const uint32_t own = distances.classes().class_of(s);
  const uint32_t here = ranks_on(s);
  ranks_at_hops_.assign(3, 0);
  ranks_at_hops_[0] = here;
  uint32_t farthest = 0;
  for (const LeafClass& leaves : classes_) {
    uint32_t hops = 2;  // between twins
    uint32_t ranks = leaves.ranks;
    if (leaves.twin_class == own) {
      ranks -= here;
      if (ranks == 0) continue;
    } else {
      hops = distances.ClassRowTo(leaves.twin_class)[own];
      if (hops == kUnreachable) return kUnreachable;
    }
    if (hops >= ranks_at_hops_.size()) ranks_at_hops_.resize(hops + 1, 0);
    ranks_at_hops_[hops] += ranks;
    farthest = std::max(farthest, hops);
  }
  return farthest;
}

uint32_t RootBound::Farthest(SwitchIndex s) { return Count(s); }

double RootBound::LeastUs(SwitchIndex top, uint32_t entries) {
  Count(top);
  double port_gbps = 0;
  if (wires_matter_) {
    for (const Channel& channel : snapshot_.fabric->channels(snapshot_.fabric->Vertex(top))) {
      port_gbps = std::max(port_gbps, KnownCapacity(snapshot_, profile_, channel.index));
    }
  }
  return LeastUs(ranks_at_hops_, entries, port_gbps);
}

double RootBound::LeastUsAnywhere(uint32_t hops, uint32_t entries) const {
  // One rank that far, the others anywhere.
  std::vector<uint32_t> ranks_at_hops(hops + 1, 0);
  ranks_at_hops[0] = static_cast<uint32_t>(request_.members.size()) - 1;
  ++ranks_at_hops[hops];
  return LeastUs(ranks_at_hops, entries, 0);
}

double RootBound::SerialUs(uint64_t bytes) const {
  return profile_.forward_includes_serialisation ? 0 : SerialisationUs(bytes, member_gbps_);
}

double RootBound::LeastUs(absl::Span<const uint32_t> ranks_at_hops, uint32_t entries,
                          double port_gbps) const {
  const auto ranks = static_cast<uint32_t>(request_.members.size());
  const NodeCost& top = profile_.switch_;
  const auto one_size = [&](const Payload& payload) {
    const Pipeline pipeline = PipelineOf(profile_, payload);
    const Payload& packet = pipeline.packet;
    const uint64_t last_down = pipeline.more_down > 0 ? 0 : packet.down_bytes;  // it may be short
    const double match_us = top.MatchUs(packet.reduced_bytes);
    // Of a long message all packets.
    const double match_all_us = static_cast<double>(pipeline.more_up + 1) * top.match_us +
                                static_cast<double>(payload.reduced_bytes) * top.reduce_us_per_byte;
    const double up_us = profile_.nic.forward_us + SerialUs(packet.up_bytes) +
                         static_cast<double>(packet.up_bytes) * profile_.nic.forward_us_per_byte;
    const double down_us = top.forward_us + SerialUs(last_down) +
                           static_cast<double>(last_down) * top.forward_us_per_byte;
    const double most_children = (ranks - 1 + entries - 1) / entries + 1;
    double aggregate_us = up_us + profile_.link_us + most_children * match_all_us;
    double distribute_us = down_us + profile_.link_us + most_children * top.send_us;
    // From one child's packet to the next.
    const double take_us = std::max(match_us, WireUs(profile_, packet.up_bytes, port_gbps));
    const double send_us = std::max(top.send_us, WireUs(profile_, last_down, port_gbps));
    double farther = 0;
    for (size_t hops = ranks_at_hops.size(); hops-- > 0;) {
      if (ranks_at_hops[hops] == 0) continue;
      farther = entries == 1 ? farther + ranks_at_hops[hops] : 1;
      const double links_us = static_cast<double>(hops + 1) * profile_.link_us;
      aggregate_us = std::max(aggregate_us, up_us + links_us + (farther - 1) * take_us + match_us);
      distribute_us =
          std::max(distribute_us, down_us + links_us + (farther - 1) * send_us + top.send_us);
    }
    return Prediction{.total_us = profile_.init_us + aggregate_us + distribute_us};
  };
  return MeanOver(request_, one_size).total_us;
}

}  // namespace coppice
