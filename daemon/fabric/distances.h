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

namespace coppice {

// Thread-safe: rows are computed once, by whoever asks first, and never change.
class SwitchDistances final {
 public:
  static constexpr uint8_t kUnreachable = 255;  // also any distance of 255 hops or more

  explicit SwitchDistances(std::shared_ptr<const Fabric> fabric);
  ~SwitchDistances();
  SwitchDistances(const SwitchDistances&) = delete;
  SwitchDistances& operator=(const SwitchDistances&) = delete;

  // Hops from every switch to `target`, [switch_count]. First call O(switches + links), then O(1).
  absl::Span<const uint8_t> RowTo(SwitchIndex target) const;

  // Links on a shortest path between two vertices: 0 for one vertex or two endpoints of one host,
  // 2 for endpoints of one switch, ... ; nullopt if there is no path.
  std::optional<uint32_t> Hops(VertexIndex from, VertexIndex to) const;

  const Fabric& fabric() const { return *fabric_; }

 private:
  std::shared_ptr<const Fabric> fabric_;
  mutable std::vector<std::atomic<const std::vector<uint8_t>*>> rows_;  // [switch_count], owned
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_DISTANCES_H_
