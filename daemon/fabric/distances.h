// Hop counts between switches, one breadth-first row at a time and only when asked: a full matrix
// over endpoints is never stored.
#ifndef COPPICE_DAEMON_FABRIC_DISTANCES_H_
#define COPPICE_DAEMON_FABRIC_DISTANCES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// Switches that have the same neighbours, as the leaf switches of a pod have, folded into one class
// each: distances and routes are then found between a few classes and not between all switches.
//
//       S4   S5                  {S4 S5}          S0..S3 have the neighbours S4 and S5, and these
//      / \\ // \.                   |             have the neighbours S0..S3: two classes, and
//    S0 S1 S2 S3    (complete)   {S0 S1 S2 S3}    one row of two numbers instead of six of six
//
// Two switches u, v of one class are no neighbours, and for every other switch w
// distance(w, u) = distance(w, v): the last switch before u on a shortest path is v's neighbour,
// too. Hence distances between classes are those between their members, and it is 2 within a class.
// Knows no endpoints, ports or rates; parallel links count once and loopback cables not at all.

// Immutable; thread-safe.
class TwinClasses final {
 public:
  static constexpr uint8_t kFar = 255;  // no path, or one of 255 hops or more

  // O(switches + links).
  explicit TwinClasses(const Fabric& fabric);

  // Classes are numbered from 0 by their lowest switch. A switch without neighbours is alone.
  uint32_t class_count() const { return static_cast<uint32_t>(begin_.size() - 1); }
  uint32_t class_of(SwitchIndex s) const { return class_of_[s.value()]; }

  // The classes of Fabric::switch_channels(s), one for one. Compact, because routes scan them.
  absl::Span<const uint32_t> classes_beside(SwitchIndex s) const {
    const uint32_t begin = beside_begin_[s.value()];
    return absl::MakeConstSpan(beside_).subspan(begin, beside_begin_[s.value() + 1] - begin);
  }

  // Whether cables join two classes. O(classes beside the one that has fewer).
  bool AreBeside(uint32_t a, uint32_t b) const;

  // Hops from every class to `target`, [class_count]; 0 for `target` itself. O(classes + links
  // between them).
  std::vector<uint8_t> RowTo(uint32_t target) const;

 private:
  void FindClasses(const Fabric& fabric);
  void JoinClasses(const Fabric& fabric);

  std::vector<uint32_t> class_of_;      // [switch]
  std::vector<uint32_t> lowest_;        // [class] its lowest switch
  std::vector<uint32_t> beside_begin_;  // [switch + 1] into beside_
  std::vector<uint32_t> beside_;
  std::vector<uint32_t> begin_;  // [class + 1] into neighbours_
  std::vector<uint32_t> neighbours_;
};

// Rows that are computed once, by whoever asks first, and never change. Thread-safe.
class LazyRows final {
 public:
  explicit LazyRows(uint32_t count) : rows_(count) {}

  // Row i; nullptr if nobody has asked for it yet.
  const std::vector<uint8_t>* Find(uint32_t i) const {
    return rows_[i].is_there.load(std::memory_order_acquire) ? &rows_[i].hops : nullptr;
  }

  // Row i; compute() makes it if nobody has yet.
  template <class Compute>
  const std::vector<uint8_t>& Get(uint32_t i, const Compute& compute) {
    if (const std::vector<uint8_t>* const row = Find(i)) return *row;
    Row& row = rows_[i];
    std::call_once(row.once, [&] {
      row.hops = compute();
      row.is_there.store(true, std::memory_order_release);
    });
    return row.hops;
  }

 private:
  struct Row {
    std::once_flag once;
    std::atomic<bool> is_there = false;
    std::vector<uint8_t> hops;
  };
  std::vector<Row> rows_;
};

// Thread-safe.
class SwitchDistances final {
 public:
  static constexpr uint8_t kUnreachable = TwinClasses::kFar;  // also any distance of 255 or more

  explicit SwitchDistances(std::shared_ptr<const Fabric> fabric);

  // Hops between two switches, kUnreachable if there is no path. Cheap for many targets: switches
  // with the same neighbours share what is computed at the first call, either way is as far, and
  // neighbours need no row.
  uint8_t Between(SwitchIndex from, SwitchIndex target) const {
    if (from == target) return 0;
    const uint32_t c = classes_.class_of(from), t = classes_.class_of(target);
    if (c == t) return 2;
    if (class_rows_.Find(t) == nullptr) {
      if (const std::vector<uint8_t>* const row = class_rows_.Find(c)) return (*row)[t];
      if (classes_.AreBeside(c, t)) return 1;
    }
    return ClassRowTo(t)[c];
  }

  // Links on a shortest path between two vertices: 0 for one vertex or two endpoints whose packets
  // stay within their host, 2 for other endpoints of one switch, ... ; nullopt if there is no path.
  std::optional<uint32_t> Hops(VertexIndex from, VertexIndex to) const;

  // Hops from every class of switches to class `target`, [class_count], for walking a route. The
  // row says 0 for `target`, although two of its members are 2 hops apart.
  absl::Span<const uint8_t> ClassRowTo(uint32_t target) const {
    return class_rows_.Get(target, [&] { return classes_.RowTo(target); });
  }
  const TwinClasses& classes() const { return classes_; }

  const Fabric& fabric() const { return *fabric_; }

 private:
  std::shared_ptr<const Fabric> fabric_;
  TwinClasses classes_;
  mutable LazyRows class_rows_;  // [class][class]
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_DISTANCES_H_
