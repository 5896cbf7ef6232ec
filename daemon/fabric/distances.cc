#include "daemon/fabric/distances.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace coppice {

// Classes are found by hashing: each switch's set of neighbours gives one number, whatever their
// order, and the first switch with a number is compared with all others that have it. A collision
// of two different sets leaves the later switch in a class of its own, which costs time only.

namespace {

constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();

// The finaliser of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014, figure 17).
uint64_t Mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Collects sets of numbers below `size`, one after another, without clearing in between.
class MarkedSet {
 public:
  explicit MarkedSet(uint32_t size) : mark_(size, kNobody) {}
  void Start(uint32_t owner) { owner_ = owner; }
  bool Insert(uint32_t x) {  // true if x is new
    if (mark_[x] == owner_) return false;
    mark_[x] = owner_;
    return true;
  }
  bool Contains(uint32_t x) const { return mark_[x] == owner_; }

 private:
  std::vector<uint32_t> mark_;  // [number] the last owner that inserted it
  uint32_t owner_ = kNobody;
};

}  // namespace

TwinClasses::TwinClasses(const Fabric& fabric) {
  FindClasses(fabric);
  JoinClasses(fabric);
}

void TwinClasses::FindClasses(const Fabric& fabric) {
  struct First {
    uint32_t lowest, size;
  };
  absl::flat_hash_map<uint64_t, First> first_with;
  MarkedSet set(fabric.switch_count());
  class_of_.resize(fabric.switch_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    set.Start(s);
    uint64_t hash = 0;
    uint32_t size = 0;
    for (const Channel& channel : fabric.switch_channels(SwitchIndex(s))) {
      const uint32_t other = channel.to.value();
      if (other == s || !set.Insert(other)) continue;
      hash += Mix(other + 1);
      ++size;
    }
    if (size > 0) {
      const auto [found, fresh] = first_with.try_emplace(hash, First{s, size});
      bool same = !fresh && found->second.size == size;
      if (same) {
        const uint32_t lowest = found->second.lowest;
        for (const Channel& channel : fabric.switch_channels(SwitchIndex(lowest))) {
          same = same && (channel.to.value() == lowest || set.Contains(channel.to.value()));
        }
        if (same) class_of_[s] = class_of_[lowest];
      }
      if (same) continue;
    }
    class_of_[s] = static_cast<uint32_t>(lowest_.size());
    lowest_.push_back(s);
  }
}

void TwinClasses::JoinClasses(const Fabric& fabric) {
  beside_begin_.reserve(fabric.switch_count() + 1);
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    beside_begin_.push_back(static_cast<uint32_t>(beside_.size()));
    for (const Channel& channel : fabric.switch_channels(SwitchIndex(s))) {
      beside_.push_back(class_of_[channel.to.value()]);
    }
  }
  beside_begin_.push_back(static_cast<uint32_t>(beside_.size()));
  MarkedSet set(static_cast<uint32_t>(lowest_.size()));
  begin_.push_back(0);
  for (uint32_t c = 0; c < lowest_.size(); ++c) {
    set.Start(c);
    set.Insert(c);
    for (const uint32_t other : classes_beside(SwitchIndex(lowest_[c]))) {
      if (set.Insert(other)) neighbours_.push_back(other);
    }
    begin_.push_back(static_cast<uint32_t>(neighbours_.size()));
  }
}

bool TwinClasses::AreBeside(uint32_t a, uint32_t b) const {
  if (begin_[b + 1] - begin_[b] < begin_[a + 1] - begin_[a]) std::swap(a, b);
  const auto first = neighbours_.begin() + begin_[a], last = neighbours_.begin() + begin_[a + 1];
  return std::find(first, last, b) != last;
}

std::vector<uint8_t> TwinClasses::RowTo(uint32_t target) const {
  std::vector<uint8_t> row(class_count(), kFar);
  std::vector<uint32_t> queue(class_count());
  size_t end = 0;
  row[target] = 0;
  queue[end++] = target;
  for (size_t head = 0; head < end; ++head) {
    const uint32_t c = queue[head];
    const uint8_t next = row[c] + 1;
    if (next == kFar) break;  // the queue is sorted by distance
    for (uint32_t i = begin_[c]; i < begin_[c + 1]; ++i) {
      uint8_t& entry = row[neighbours_[i]];
      if (entry != kFar) continue;
      entry = next;
      queue[end++] = neighbours_[i];
    }
  }
  return row;
}

SwitchDistances::SwitchDistances(std::shared_ptr<const Fabric> fabric)
    : fabric_(std::move(fabric)), classes_(*fabric_), class_rows_(classes_.class_count()) {}

std::optional<uint32_t> SwitchDistances::Hops(VertexIndex from, VertexIndex to) const {
  if (from == to) return 0;
  const Fabric& fabric = *fabric_;
  if (!fabric.IsSwitch(from) && !fabric.IsSwitch(to)) {
    if (fabric.StayWithinHost(fabric.AsEndpoint(from), fabric.AsEndpoint(to))) return 0;
    for (const Channel& channel : fabric.channels(from)) {
      if (channel.to == to) return 1;  // back to back
    }
  }
  const auto at = [&](VertexIndex v) {
    return fabric.IsSwitch(v) ? fabric.AsSwitch(v) : fabric.attached_switch(fabric.AsEndpoint(v));
  };
  const std::optional<SwitchIndex> source = at(from), target = at(to);
  if (!source || !target) return std::nullopt;
  const uint8_t between = Between(*source, *target);
  if (between == kUnreachable) return std::nullopt;
  return between + (fabric.IsSwitch(from) ? 0 : 1) + (fabric.IsSwitch(to) ? 0 : 1);
}

}  // namespace coppice
