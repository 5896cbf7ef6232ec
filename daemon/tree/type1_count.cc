#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "daemon/tree/type1_bound.h"

namespace coppice {
namespace {

constexpr size_t kMaxClasses = 256;  // of leaf switches; more are not compared pair by pair
constexpr size_t kMaxRings = 6;

// Twin classes of the members' leaf switches, numbered from 0.
struct CountedClasses {
  std::vector<uint32_t> of_leaf;  // [leaf]
  std::vector<uint32_t> twin;     // [class] its number in the fabric
  bool joins_leaves = false;      // some class has two of the leaf switches
};

CountedClasses ClassesOf(const Snapshot& snapshot, absl::Span<const SwitchIndex> leaves) {
  const TwinClasses& twins = snapshot.routes->distances().classes();
  CountedClasses classes;
  absl::flat_hash_map<uint32_t, uint32_t> number;  // of a class in the fabric
  for (const SwitchIndex leaf : leaves) {
    const uint32_t twin = twins.class_of(leaf);
    const auto [at, is_new] = number.try_emplace(twin, static_cast<uint32_t>(classes.twin.size()));
    if (is_new) classes.twin.push_back(twin);
    classes.of_leaf.push_back(at->second);
  }
  classes.joins_leaves = classes.twin.size() < leaves.size();
  return classes;
}

// Distances between classes, and the groups of classes that they nest in.
class ClassBalls {
 public:
  ClassBalls(const SwitchDistances& distances, const CountedClasses& classes)
      : count_(classes.twin.size()), hops_(count_ * count_, 2) {
    if (classes.joins_leaves) radii_.push_back(2);  // twins
    for (size_t a = 0; a < count_; ++a) {
      const absl::Span<const uint8_t> row = distances.ClassRowTo(classes.twin[a]);
      for (size_t b = 0; b < count_; ++b) {
        if (a == b) continue;
        const uint8_t hops = hops_[a * count_ + b] = row[classes.twin[b]];
        if (absl::c_find(radii_, hops) == radii_.end()) radii_.push_back(hops);
      }
    }
    absl::c_sort(radii_);
  }

  const std::vector<uint8_t>& radii() const { return radii_; }

  // Of every radius but the last, which holds all: [class] number of its ball. False: balls
  // overlap, or hold pairs that are farther apart; else they nest, and all pairs of a ring are
  // equally far.
  bool Nest(bool joins_leaves, std::vector<std::vector<uint32_t>>& balls) const {
    if (radii_.size() > kMaxRings || (joins_leaves && radii_.front() < 2)) return false;
    for (size_t r = 0; r + 1 < radii_.size(); ++r) balls.push_back(BallsOf(radii_[r]));
    for (size_t a = 0; a < count_; ++a) {
      for (size_t b = 0; b < a; ++b) {
        for (size_t r = 0; r < balls.size(); ++r) {
          const bool together = balls[r][a] == balls[r][b];
          if (together != (hops_[a * count_ + b] <= radii_[r])) return false;
        }
      }
    }
    return true;
  }

 private:
  std::vector<uint32_t> BallsOf(uint8_t radius) const {
    std::vector<uint32_t> ball(count_, UINT32_MAX);
    uint32_t balls = 0;
    for (size_t a = 0; a < count_; ++a) {
      if (ball[a] != UINT32_MAX) continue;
      ball[a] = balls;
      for (size_t b = a + 1; b < count_; ++b) {
        if (ball[b] == UINT32_MAX && hops_[a * count_ + b] <= radius) ball[b] = balls;
      }
      ++balls;
    }
    return ball;
  }

  const size_t count_;
  std::vector<uint8_t> hops_;   // [class][class]; 2 within a class
  std::vector<uint8_t> radii_;  // distinct hops, ascending
};

DistanceRings::Level LevelOf(std::vector<uint32_t> group) {
  DistanceRings::Level level;
  const uint32_t groups = *absl::c_max_element(group) + 1;
  level.begin.assign(groups + 2, 0);  // one ahead, so that filling moves each into its place
  for (const uint32_t g : group) ++level.begin[g + 2];
  for (uint32_t g = 2; g < groups + 2; ++g) level.begin[g] += level.begin[g - 1];
  level.ranks.resize(group.size());
  for (uint32_t rank = 0; rank < group.size(); ++rank) {
    level.ranks[level.begin[group[rank] + 1]++] = rank;
  }
  level.group = std::move(group);
  return level;
}

}  // namespace

DistanceRings FindDistanceRings(const Snapshot& snapshot, const MemberPlaces& places) {
  DistanceRings rings;
  rings.hops = {0};
  if (places.leaf_switches.size() < 2) return rings;
  std::vector<uint32_t> leaf(places.endpoint_of_rank.size());
  for (size_t rank = 0; rank < leaf.size(); ++rank) {
    leaf[rank] = places.leaf_of_endpoint[places.endpoint_of_rank[rank]];
  }
  const CountedClasses classes = ClassesOf(snapshot, places.leaf_switches);
  rings.levels.push_back(LevelOf(leaf));
  if (classes.twin.size() > kMaxClasses) {
    rings.hops.push_back(1);
    rings.is_exact = false;
    return rings;
  }
  const ClassBalls distances(snapshot.routes->distances(), classes);
  std::vector<std::vector<uint32_t>> balls;
  rings.is_exact = distances.Nest(classes.joins_leaves, balls);
  if (!rings.is_exact) {
    rings.hops.push_back(distances.radii().front());
    return rings;
  }
  for (const std::vector<uint32_t>& ball : balls) {
    std::vector<uint32_t> group(leaf.size());
    for (size_t rank = 0; rank < leaf.size(); ++rank) {
      group[rank] = ball[classes.of_leaf[leaf[rank]]];
    }
    rings.levels.push_back(LevelOf(std::move(group)));
  }
  rings.hops.insert(rings.hops.end(), distances.radii().begin(), distances.radii().end());
  return rings;
}

namespace {

// A tree's inner nodes by number i, parents first; i = count is none. Inner(i) visits the children
// that have children, or stand alone, in order of rank, each with its number.
struct KaryShape {
  static constexpr bool kLeavesFirst = false;  // in order of rank
  uint64_t width, ranks, count;

  uint32_t RankOf(uint64_t i) const { return static_cast<uint32_t>(i); }
  std::pair<uint32_t, uint32_t> Leaves(uint64_t i) const {
    const uint64_t end = std::min(i * width + width + 1, ranks);
    return {static_cast<uint32_t>(std::min(std::max(i * width + 1, count), end)),
            static_cast<uint32_t>(end)};
  }
  template <class Visitor>
  void Inner(uint64_t i, const Visitor& visit) const {
    const uint64_t end = std::min(i * width + width + 1, count);
    for (uint64_t c = i * width + 1; c < end; ++c) visit(static_cast<uint32_t>(c), c);
  }
};

struct KnomialShape {
  static constexpr bool kLeavesFirst = true;
  uint64_t width, ranks, count;

  uint32_t RankOf(uint64_t i) const { return static_cast<uint32_t>(i * width); }
  std::pair<uint32_t, uint32_t> Leaves(uint64_t i) const {
    const uint64_t end = std::min((i + 1) * width, ranks);
    return {static_cast<uint32_t>(i * width + 1), static_cast<uint32_t>(end)};
  }
  template <class Visitor>
  void Inner(uint64_t i, const Visitor& visit) const {
    const uint64_t rank = i * width;
    for (uint64_t unit = width; unit < ranks && rank % (unit * width) == 0; unit *= width) {
      const uint64_t end = std::min(rank + unit * width, ranks);
      for (uint64_t c = rank + unit; c < end; c += unit) {
        visit(static_cast<uint32_t>(c), std::min(c / width, count));
      }
    }
  }
};

template <class Shape>
Shape Make(uint32_t width, uint64_t ranks) {
  return {width, ranks, ranks < 2 ? 0 : (ranks - 2) / width + 1};
}

// Those of `group` within a range of ranks. A group is mostly a range itself.
uint32_t CountWithin(const DistanceRings::Level& level, uint32_t group,
                     std::pair<uint32_t, uint32_t> range) {
  const auto begin = level.ranks.begin() + level.begin[group];
  const auto end = level.ranks.begin() + level.begin[group + 1];
  if (*(end - 1) - *begin == end - begin - 1) {
    const uint32_t low = std::max(*begin, range.first);
    const uint32_t high = std::min(*(end - 1) + 1, range.second);
    return low < high ? high - low : 0;
  }
  const auto first = std::lower_bound(begin, end, range.first);
  return static_cast<uint32_t>(std::lower_bound(first, end, range.second) - first);
}

}  // namespace

Type1Count::Type1Count(const Snapshot& snapshot, const CostProfile& profile,
                       const TreeRequest& request, const MemberPlaces& places, bool even_routes,
                       double between_gbps)
    : profile_(profile),
      request_(request),
      rings_(FindDistanceRings(snapshot, places)),
      same_bundle_(static_cast<uint32_t>(rings_.hops.size())) {
  FindBundles(snapshot);
  is_exact_ = FindRates(snapshot) && even_routes && rings_.is_exact;
  for (const uint32_t hops : rings_.hops) {
    const bool slower_between = is_exact_ && hops > 0 && between_gbps > 0;
    route_gbps_.push_back(slower_between && (port_gbps_ == 0 || between_gbps < port_gbps_)
                              ? between_gbps
                              : port_gbps_);
  }
  const NodeCost& nic = profile.nic;
  ForEachPayload(request, [&](const Payload& payload, double weight) {
    const Pipeline pipeline = PipelineOf(profile, payload);
    const Payload& packet = pipeline.packet;
    sizes_.push_back({.weight = weight,
                      .pipeline = pipeline,
                      .up = PhaseOf(packet.up_bytes, nic.MatchUs(packet.reduced_bytes), 0),
                      .down = PhaseOf(packet.down_bytes, nic.send_us, nic.send_us)});
  });
  packets_.resize(same_bundle_ + 1);
  us_.resize(request.members.size() / 2 + 2);
}

void Type1Count::FindBundles(const Snapshot& snapshot) {
  const auto comes_after = [&](EndpointIndex a, EndpointIndex b) {
    return snapshot.fabric->bundle(a) >= snapshot.fabric->bundle(b);
  };
  if (absl::c_adjacent_find(request_.members, comes_after) == request_.members.end()) {
    return;  // every rank in a bundle after the last one's
  }
  absl::flat_hash_map<uint32_t, uint32_t> number;  // of a bundle
  std::vector<uint32_t> group;
  for (const EndpointIndex member : request_.members) {
    const uint32_t bundle = snapshot.fabric->bundle(member).value();
    group.push_back(number.try_emplace(bundle, static_cast<uint32_t>(number.size())).first->second);
  }
  bundles_are_shared_ = number.size() < group.size();
  if (bundles_are_shared_) bundle_ = LevelOf(std::move(group));
}

// True: all members' ports are alike.
bool Type1Count::FindRates(const Snapshot& snapshot) {
  const Fabric& fabric = *snapshot.fabric;
  double slowest = 0;
  for (size_t rank = 0; rank < request_.members.size(); ++rank) {
    const EndpointIndex member = request_.members[rank];
    const double known = fabric.capacity_gbps(fabric.uplink(member));
    const double gbps = known > 0 ? known : profile_.port_gbps;
    if (gbps == 0) {  // and thus without limit
      port_gbps_ = 0;
      return rank == 0 && profile_.port_gbps == 0 && slowest == 0;
    }
    slowest = rank == 0 ? gbps : std::min(slowest, gbps);
    port_gbps_ = std::max(port_gbps_, gbps);
  }
  return slowest == port_gbps_;
}

// `send_us` goes before each packet.
Type1Count::Phase Type1Count::PhaseOf(uint64_t bytes, double node_us, double send_us) const {
  const NodeCost& nic = profile_.nic;
  const auto wire = [&](double gbps) { return WireUs(profile_, bytes, static_cast<float>(gbps)); };
  const double forward = send_us + nic.ForwardUs(bytes);
  // Where packets of one bundle follow each other faster, a later arrival may pay off: the first
  // packet has no spacing. A bound takes the shorter one for all.
  const bool one_spacing = bundles_are_shared_ && !is_exact_;
  Phase phase;
  phase.node_us = node_us;
  for (uint32_t ring = 0; ring < same_bundle_; ++ring) {
    double links_us = 0;
    for (uint32_t l = 0; l < 2 + rings_.hops[ring]; ++l) links_us += profile_.link_us;
    phase.edge_us.push_back(forward + static_cast<float>(links_us) +
                            (profile_.forward_includes_serialisation
                                 ? 0
                                 : SerialisationUs(bytes, static_cast<float>(route_gbps_[ring]))));
    phase.spacing_us.push_back(one_spacing ? node_us : std::max(node_us, wire(port_gbps_)));
  }
  phase.edge_us.push_back(send_us + static_cast<float>(profile_.same_host_us));
  phase.spacing_us.push_back(node_us);
  phase.farthest_us = *absl::c_max_element(phase.edge_us);
  phase.port_us = wire(port_gbps_);
  phase.way_us = wire(route_gbps_.back());
  return phase;
}

// One run of every ring around `rank`.
void Type1Count::AddLeaves(const Phase& phase, uint32_t rank, Range leaves) {
  if (leaves.first >= leaves.second) return;
  uint32_t within = leaves.second - leaves.first;  // the ring at hand
  for (size_t ring = rings_.levels.size(); ring > 0; --ring) {
    const DistanceRings::Level& inner = rings_.levels[ring - 1];
    const uint32_t inside = within == 0 ? 0 : CountWithin(inner, inner.group[rank], leaves);
    packets_[ring] = within - inside;
    within = inside;
  }
  packets_[0] = within;
  packets_[same_bundle_] = 0;
  if (bundles_are_shared_) {
    const uint32_t bundle = bundle_.group[rank];
    for (uint32_t i = bundle_.begin[bundle]; i < bundle_.begin[bundle + 1]; ++i) {
      const uint32_t leaf = bundle_.ranks[i];
      if (leaf < leaves.first || leaf >= leaves.second) continue;
      --packets_[rings_.RingOf(rank, leaf)];
      ++packets_[same_bundle_];
    }
  }
  for (uint32_t ring = 0; ring <= same_bundle_; ++ring) {
    if (packets_[ring] == 0) continue;
    uint32_t first = leaves.first;  // matters beside another spacing only
    if (packets_[same_bundle_] > 0 && phase.edge_us[ring] == phase.edge_us[same_bundle_]) {
      while (RingOf(rank, first) != ring) ++first;
    }
    runs_.push_back({phase.edge_us[ring], phase.spacing_us[ring], packets_[ring], first});
  }
}

// When the node at hand starts on its last packet.
double Type1Count::LastStart() {
  if (runs_.size() > 1) absl::c_sort(runs_);
  double start = 0;
  for (size_t r = 0; r < runs_.size(); ++r) {
    const Run& run = runs_[r];
    start = r == 0 ? run.arrival_us : std::max(run.arrival_us, start + run.spacing_us);
    start += static_cast<double>(run.packets - 1) * run.spacing_us;
  }
  return start;
}

template <class Shape>
double Type1Count::Aggregate(const Shape& shape, const Phase& phase) {
  us_[0] = us_[shape.count] = 0;  // a leaf that stands alone
  for (uint64_t i = shape.count; i-- > 0;) {
    const uint32_t rank = shape.RankOf(i);
    runs_.clear();
    AddLeaves(phase, rank, shape.Leaves(i));
    shape.Inner(i, [&](uint32_t child, uint64_t number) {
      const uint32_t ring = RingOf(rank, child);
      runs_.push_back({us_[number] + phase.edge_us[ring], phase.spacing_us[ring], 1, child});
    });
    us_[i] = LastStart() + phase.node_us;
  }
  return us_[0];
}

// Sends to a range of leaves, the first copy at `start`, which is left where the next one may go.
void Type1Count::SendToLeaves(const Phase& phase, uint32_t rank, Range leaves, double& start,
                              double& last) const {
  if (leaves.first >= leaves.second) return;
  const uint32_t near = bundles_are_shared_ ? CountWithin(bundle_, bundle_.group[rank], leaves) : 0;
  start += (leaves.second - leaves.first - near) * phase.spacing_us[0] +
           near * phase.spacing_us[same_bundle_];
  double next = start;
  for (uint32_t leaf = leaves.second; leaf-- > leaves.first;) {
    const uint32_t ring = RingOf(rank, leaf);
    next -= phase.spacing_us[ring];
    last = std::max(last, next + phase.edge_us[ring]);
    if (next + phase.farthest_us <= last) return;
  }
}

template <class Shape>
double Type1Count::Distribute(const Shape& shape, const Phase& phase) {
  us_[0] = us_[shape.count] = 0;
  double last = 0;
  for (uint64_t i = 0; i < shape.count; ++i) {
    const uint32_t rank = shape.RankOf(i);
    double start = us_[i];
    if (Shape::kLeavesFirst) SendToLeaves(phase, rank, shape.Leaves(i), start, last);
    shape.Inner(i, [&](uint32_t child, uint64_t number) {
      const uint32_t ring = RingOf(rank, child);
      us_[number] = start + phase.edge_us[ring];
      last = std::max(last, us_[number]);
      start += phase.spacing_us[ring];
    });
    if (!Shape::kLeavesFirst) SendToLeaves(phase, rank, shape.Leaves(i), start, last);
  }
  return last;
}

// An edge to another bundle is a stage, and one to another leaf switch is the slowest: there is one
// if there are several, for the tree joins them all.
template <class Shape>
Stages Type1Count::SlowestStages(const Shape& shape, const Size& size) {
  const Phase &up = size.up, &down = size.down;
  const double far_up = std::max(up.node_us, up.port_us);
  const double far_down = std::max(down.node_us, down.port_us);
  is_far_.assign(us_.size(), 0);
  Stages slowest;
  bool leaves_bundle = false;
  for (uint64_t i = 0; i < shape.count; ++i) {
    const uint32_t rank = shape.RankOf(i);
    const Range leaves = shape.Leaves(i);
    uint32_t near = 0, far = 0;
    if (leaves.first < leaves.second) {
      if (bundles_are_shared_) near = CountWithin(bundle_, bundle_.group[rank], leaves);
      far = leaves.second - leaves.first - near;
    }
    shape.Inner(i, [&](uint32_t child, uint64_t number) {
      is_far_[number] = OnOneBundle(rank, child) ? 0 : 1;
      ++(is_far_[number] != 0 ? far : near);
    });
    slowest.up_us = std::max(slowest.up_us, near * up.node_us + far * far_up);
    slowest.down_us = std::max(slowest.down_us, near * down.node_us + far * far_down);
    if (far == 0) continue;
    leaves_bundle = true;
    const double enter = far * up.port_us + is_far_[i] * down.port_us;
    const double leave = far * down.port_us + is_far_[i] * up.port_us;
    slowest.port_us = std::max({slowest.port_us, enter, leave});
  }
  if (leaves_bundle) {
    slowest.up_us = std::max(slowest.up_us, up.way_us);
    slowest.down_us = std::max(slowest.down_us, down.way_us);
  }
  return slowest;
}

template <class Shape>
double Type1Count::Total(const Shape& shape, double cutoff) {
  double mean = 0;
  for (const Size& size : sizes_) {
    const Pipeline& pipeline = size.pipeline;
    const double more_us =
        pipeline.is_one_packet() ? 0 : pipeline.TotalUs(SlowestStages(shape, size));
    const double so_far = profile_.init_us + Aggregate(shape, size.up) + more_us;
    if (mean + size.weight * so_far > cutoff) return mean + size.weight * so_far;
    mean += size.weight * (so_far + Distribute(shape, size.down));
  }
  return mean;
}

double Type1Count::Kary(uint32_t width, double cutoff) {
  return Total(Make<KaryShape>(width, request_.members.size()), cutoff);
}

double Type1Count::Knomial(uint32_t width, double cutoff) {
  return Total(Make<KnomialShape>(width, request_.members.size()), cutoff);
}

}  // namespace coppice
