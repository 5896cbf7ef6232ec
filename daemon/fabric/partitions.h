// Which partitions ports are in (IBA vol. 1, 10.9): each port has a table of keys, and two ports
// speak in a partition if both have its number and one of them at least has it with full
// membership.
//
//   key   15   14 ... 0           a switch may let a key pass at a port, or not, in either
//         full partition          direction: where it does look, that port has a table as well
//
// Ports are known by GUID, a switch's port 0 by that of the switch, so that tables stay what they
// are when the fabric's indices move. Immutable once shared. Knows neither links nor tenants.
#ifndef COPPICE_DAEMON_FABRIC_PARTITIONS_H_
#define COPPICE_DAEMON_FABRIC_PARTITIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"

namespace coppice {

inline constexpr PartitionNum kDefaultPartition{0x7fff};

std::string ToString(PartitionNum partition);  // "0x0001"

// Of a key in a table; nullopt: there is none.
inline std::optional<PartitionNum> PartitionOf(uint16_t key) {
  const auto number = static_cast<uint16_t>(key & 0x7fff);
  if (number == 0) return std::nullopt;
  return PartitionNum(number);
}

// A port that has a key both ways is a full member.
enum class Membership : uint8_t { kNone, kLimited, kFull };
absl::string_view ToString(Membership membership);  // "none", "limited", "full"

inline bool MaySpeak(Membership a, Membership b) {
  return a != Membership::kNone && b != Membership::kNone &&
         (a == Membership::kFull || b == Membership::kFull);
}

// A port's keys as it holds them, [index]; 0: nothing there.
using PartitionTable = std::vector<uint16_t>;

class Partitions final {
 public:
  Partitions() = default;
  Partitions(Partitions&&) = default;
  Partitions& operator=(Partitions&&) = default;

  // One of which nothing is known; never null.
  static const std::shared_ptr<const Partitions>& Unknown();

  // Replaces what is known of the port; trailing zeros do not count. O(table).
  void Set(Guid port, PartitionTable table);
  // Of a port of a switch that looks at packets which come in by it, or go out.
  struct Enforcement {
    bool inbound = false, outbound = false;
    PartitionTable table;
    friend bool operator==(const Enforcement&, const Enforcement&) = default;
  };
  void SetEnforced(Guid node, PortNum port, Enforcement enforcement);

  // Nothing is known of any port: nobody is kept from speaking.
  bool empty() const { return table_of_.empty(); }
  size_t port_count() const { return table_of_.size(); }

  // False: its table was never read; it may have any key.
  bool IsKnown(Guid port) const { return table_of_.contains(port); }
  // Empty: nothing is known of the port, or it has no key.
  absl::Span<const uint16_t> TableOf(Guid port) const;
  Membership Of(Guid port, PartitionNum partition) const;
  // One in which the two may speak: the default partition, else that of the lowest number.
  std::optional<PartitionNum> Between(Guid a, Guid b) const;
  // Where in its table the port has the key, the full one if it has both.
  std::optional<uint16_t> IndexOf(Guid port, PartitionNum partition) const;
  // Whether a switch lets packets of the partition through its port.
  bool Passes(Guid node, PortNum port, PartitionNum partition, bool outbound) const;
  bool IsEnforcedAnywhere() const { return !enforced_.empty(); }
  const Enforcement* EnforcedAt(Guid node, PortNum port) const;  // null: it does not look

  friend bool operator==(const Partitions& a, const Partitions& b);

 private:
  absl::node_hash_set<PartitionTable> tables_;                 // each once
  absl::flat_hash_map<Guid, const PartitionTable*> table_of_;  // -> tables_
  absl::flat_hash_map<std::pair<Guid, PortNum>, Enforcement> enforced_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_PARTITIONS_H_
