#include "daemon/tree/distance_rings.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"

namespace coppice {
namespace {

constexpr size_t kMaxClasses = 256;  // of leaf switches; more are not compared pair by pair
constexpr size_t kMaxRings = 6;

// Twin classes of the members' leaf switches, numbered from 0.
struct LeafClasses {
  std::vector<uint32_t> of_leaf;  // [leaf]
  std::vector<uint32_t> twin;     // [class] its number in the fabric
  bool joins_leaves = false;      // some class has two of the leaf switches
};

LeafClasses ClassesOf(const Snapshot& snapshot, absl::Span<const SwitchIndex> leaves) {
  const TwinClasses& twins = snapshot.routes->distances().classes();
  LeafClasses classes;
  for (const SwitchIndex leaf : leaves) classes.twin.push_back(twins.class_of(leaf));
  std::vector<uint32_t> of_leaf = classes.twin;
  std::sort(classes.twin.begin(), classes.twin.end());
  classes.twin.erase(std::unique(classes.twin.begin(), classes.twin.end()), classes.twin.end());
  for (uint32_t& c : of_leaf) {
    const auto at = std::lower_bound(classes.twin.begin(), classes.twin.end(), c);
    c = static_cast<uint32_t>(at - classes.twin.begin());
  }
  classes.joins_leaves = classes.twin.size() < leaves.size();
  classes.of_leaf = std::move(of_leaf);
  return classes;
}

// Distances between classes, and the groups of classes that they nest in.
class ClassBalls {
 public:
  ClassBalls(const SwitchDistances& distances, const LeafClasses& classes)
      : count_(classes.twin.size()), hops_(count_ * count_, 2) {
    if (classes.joins_leaves) radii_.push_back(2);  // twins
    for (size_t a = 0; a < count_; ++a) {
      const absl::Span<const uint8_t> row = distances.ClassRowTo(classes.twin[a]);
      for (size_t b = 0; b < count_; ++b) {
        if (a == b) continue;
        const uint8_t hops = hops_[a * count_ + b] = row[classes.twin[b]];
        if (std::find(radii_.begin(), radii_.end(), hops) == radii_.end()) radii_.push_back(hops);
      }
    }
    std::sort(radii_.begin(), radii_.end());
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
  const uint32_t groups = *std::max_element(group.begin(), group.end()) + 1;
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
  const LeafClasses classes = ClassesOf(snapshot, places.leaf_switches);
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

}  // namespace coppice
