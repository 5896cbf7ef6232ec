#include "daemon/fabric/partitions.h"

#include <algorithm>

#include "proto/text/option_words.h"

namespace coppice {
namespace {

constexpr uint16_t kFullBit = 0x8000, kNumberBits = 0x7fff;

std::optional<uint16_t> FindKey(absl::Span<const uint16_t> table, uint16_t key) {
  const auto found = std::find(table.begin(), table.end(), key);
  if (found == table.end()) return std::nullopt;
  return static_cast<uint16_t>(found - table.begin());
}

Membership MembershipIn(absl::Span<const uint16_t> table, PartitionNum partition) {
  Membership most = Membership::kNone;
  for (const uint16_t key : table) {
    if ((key & kNumberBits) != partition.value()) continue;
    most = std::max(most, (key & kFullBit) != 0 ? Membership::kFull : Membership::kLimited);
  }
  return most;
}

}  // namespace

std::string ToString(PartitionNum partition) { return PartitionText(partition.value()); }

absl::string_view ToString(Membership membership) {
  constexpr absl::string_view kNames[] = {"none", "limited", "full"};
  return kNames[static_cast<size_t>(membership)];
}

const std::shared_ptr<const Partitions>& Partitions::Unknown() {
  static const auto* const kUnknown =
      new std::shared_ptr<const Partitions>(std::make_shared<const Partitions>());
  return *kUnknown;
}

void Partitions::Set(Guid port, PartitionTable table) {
  while (!table.empty() && table.back() == 0) table.pop_back();
  table_of_[port] = &*tables_.insert(std::move(table)).first;
}

void Partitions::SetEnforced(Guid node, PortNum port, Enforcement enforcement) {
  PartitionTable& table = enforcement.table;
  while (!table.empty() && table.back() == 0) table.pop_back();
  enforced_[{node, port}] = std::move(enforcement);
}

absl::Span<const uint16_t> Partitions::TableOf(Guid port) const {
  const auto found = table_of_.find(port);
  if (found == table_of_.end()) return {};
  return *found->second;
}

Membership Partitions::Of(Guid port, PartitionNum partition) const {
  return MembershipIn(TableOf(port), partition);
}

std::optional<PartitionNum> Partitions::Between(Guid a, Guid b) const {
  std::optional<PartitionNum> found;
  for (const uint16_t key : TableOf(a)) {
    const std::optional<PartitionNum> partition = PartitionOf(key);
    if (!partition || !MaySpeak(Of(a, *partition), Of(b, *partition))) continue;
    if (partition == kDefaultPartition) return partition;
    if (!found || *partition < *found) found = partition;
  }
  return found;
}

std::optional<uint16_t> Partitions::IndexOf(Guid port, PartitionNum partition) const {
  const absl::Span<const uint16_t> table = TableOf(port);
  const auto full = FindKey(table, static_cast<uint16_t>(partition.value() | kFullBit));
  return full ? full : FindKey(table, partition.value());
}

const Partitions::Enforcement* Partitions::EnforcedAt(Guid node, PortNum port) const {
  const auto found = enforced_.find({node, port});
  return found == enforced_.end() ? nullptr : &found->second;
}

bool Partitions::Passes(Guid node, PortNum port, PartitionNum partition, bool outbound) const {
  const Enforcement* const at = EnforcedAt(node, port);
  if (at == nullptr || !(outbound ? at->outbound : at->inbound)) return true;
  return MembershipIn(at->table, partition) != Membership::kNone;
}

bool operator==(const Partitions& a, const Partitions& b) {
  if (a.table_of_.size() != b.table_of_.size() || a.enforced_ != b.enforced_) return false;
  return std::all_of(a.table_of_.begin(), a.table_of_.end(), [&](const auto& port) {
    return b.table_of_.contains(port.first) && *port.second == b.TableOf(port.first);
  });
}

}  // namespace coppice
