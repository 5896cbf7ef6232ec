// The centre of the members, without a distance per member: members matter only through the leaf
// switches they are cabled to, these only through their twin classes
// (daemon/fabric/twin_classes.h), and eccentricities only until the first switch has seen them all.
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
#include <tuple>

namespace coppice {
namespace {

constexpr size_t kMostRows = 64;  // above, rows of 255 hops cost more than bits

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
  const uint8_t least = *std::min_element(farthest.begin(), farthest.end());
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
  if (members.classes.size() <= kMostRows) return NearestByRows(distances, members);
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
  std::sort(keys.begin(), keys.end());
  std::transform(keys.begin(), keys.end(), roots.begin(),
                 [](const Key& key) { return std::get<2>(key); });
}

}  // namespace coppice
