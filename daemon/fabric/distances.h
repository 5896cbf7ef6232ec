// Hop counts between switches, one breadth-first row at a time and only when asked: a full matrix
// over endpoints is never stored.
#ifndef COPPICE_DAEMON_FABRIC_DISTANCES_H_
#define COPPICE_DAEMON_FABRIC_DISTANCES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/twin_classes.h"

namespace coppice {

// Rows that are computed once, by whoever asks first, and never change. Thread-safe.
class LazyRows final {
 public:
  explicit LazyRows(uint32_t count) : rows_(count) {}
  ~LazyRows();
  LazyRows(const LazyRows&) = delete;
  LazyRows& operator=(const LazyRows&) = delete;

  // Row i; compute() makes it if nobody has yet.
  template <class Compute>
  const std::vector<uint8_t>& Get(uint32_t i, const Compute& compute) {
    const std::vector<uint8_t>* const row = rows_[i].load(std::memory_order_acquire);
    return row != nullptr ? *row : Publish(i, compute());
  }

 private:
  const std::vector<uint8_t>& Publish(uint32_t i, std::vector<uint8_t> fresh);

  std::vector<std::atomic<const std::vector<uint8_t>*>> rows_;  // owned
};

// Thread-safe.
class SwitchDistances final {
 public:
  static constexpr uint8_t kUnreachable = TwinClasses::kFar;  // also any distance of 255 or more

  explicit SwitchDistances(std::shared_ptr<const Fabric> fabric);

  // Hops from every switch to `target`, [switch_count]. Kept from the first call on: whoever asks
  // for many targets and reads little of each asks Between().
  absl::Span<const uint8_t> RowTo(SwitchIndex target) const;

  // Hops between two switches, kUnreachable if there is no path. Cheap for many targets: switches
  // with the same neighbours share what is computed at the first call.
  uint8_t Between(SwitchIndex from, SwitchIndex target) const {
    if (from == target) return 0;
    const uint32_t c = classes_.class_of(from), t = classes_.class_of(target);
    return c == t ? 2 : ClassRowTo(t)[c];
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
  std::vector<uint8_t> Expand(SwitchIndex target) const;

  std::shared_ptr<const Fabric> fabric_;
  TwinClasses classes_;
  mutable LazyRows class_rows_;  // [class][class]
  mutable LazyRows rows_;        // [switch][switch]
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_DISTANCES_H_
