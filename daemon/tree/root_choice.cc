// The centre of the members, without a distance per member: members matter only through the leaf
// switches they are cabled to, and eccentricities only until the first switch has seen them all.
//
//        level 0        level 1              level 2
//        leaf a: a      spine 1: a b         top: a b c d   <- first to see all: the candidates are
//        leaf b: b      spine 2:     c d                       the switches that see all at this
//        level
#include "daemon/tree/root_choice.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace coppice {
namespace {

constexpr size_t kMostRows = 64;  // above, rows of 255 hops cost more than bits

std::vector<SwitchIndex> NearestByRows(const Snapshot& snapshot,
                                       absl::Span<const SwitchIndex> leaf_switches) {
  const SwitchDistances& distances = snapshot.routes->distances();
  std::vector<uint8_t> farthest(snapshot.fabric->switch_count(), 0);
  for (const SwitchIndex leaf : leaf_switches) {
    const uint8_t* row = distances.RowTo(leaf).data();
    uint8_t* most = farthest.data();
    for (size_t s = 0; s < farthest.size(); ++s) most[s] = most[s] < row[s] ? row[s] : most[s];
  }
  const uint8_t least = *std::min_element(farthest.begin(), farthest.end());
  std::vector<SwitchIndex> nearest;
  if (least == SwitchDistances::kUnreachable) return nearest;
  for (uint32_t s = 0; s < farthest.size(); ++s) {
    if (farthest[s] == least) nearest.emplace_back(s);
  }
  return nearest;
}

// seen[switch] is the set of leaf switches within `level` hops, `words` words each.
class BitSearch {
 public:
  BitSearch(const Fabric& fabric, absl::Span<const SwitchIndex> leaf_switches)
      : fabric_(fabric),
        words_((leaf_switches.size() + 63) / 64),
        full_(words_, ~uint64_t{0}),
        seen_(words_ * fabric.switch_count(), 0) {
    if (leaf_switches.size() % 64 != 0)
      full_.back() = (uint64_t{1} << leaf_switches.size() % 64) - 1;
    for (size_t i = 0; i < leaf_switches.size(); ++i) {
      seen_[leaf_switches[i].value() * words_ + i / 64] |= uint64_t{1} << i % 64;
    }
  }

  std::vector<SwitchIndex> Full() const {
    std::vector<SwitchIndex> full;
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) {
      if (std::equal(full_.begin(), full_.end(),
                     seen_.begin() + static_cast<int64_t>(s * words_))) {
        full.emplace_back(s);
      }
    }
    return full;
  }

  // One level further; false if nobody saw anything new.
  bool Advance() {
    next_ = seen_;
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) {
      uint64_t* mine = next_.data() + s * words_;
      uint32_t last = s;
      for (const Channel& channel : fabric_.switch_channels(SwitchIndex(s))) {
        const uint32_t to = channel.to.value();
        if (to == last) continue;  // parallel links
        last = to;
        const uint64_t* theirs = seen_.data() + to * words_;
        for (size_t w = 0; w < words_; ++w) mine[w] |= theirs[w];
      }
    }
    seen_.swap(next_);
    return seen_ != next_;
  }

 private:
  const Fabric& fabric_;
  const size_t words_;
  std::vector<uint64_t> full_;
  std::vector<uint64_t> seen_, next_;
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
  if (leaf_switches.size() <= kMostRows) return NearestByRows(snapshot, leaf_switches);
  BitSearch search(*snapshot.fabric, leaf_switches);
  std::vector<SwitchIndex> nearest = search.Full();
  while (nearest.empty() && search.Advance()) nearest = search.Full();
  return nearest;
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
