// Breadth-first rows between switches, computed at the first use and published with one
// compare-and-swap: two threads that ask for one row at once both compute it and one copy is
// dropped, which costs less than a lock that every reader would have to take.
#include "daemon/fabric/distances.h"

#include <utility>

namespace coppice {
namespace {

std::vector<uint8_t> BreadthFirstRow(const Fabric& fabric, SwitchIndex target) {
  std::vector<uint8_t> row(fabric.switch_count(), SwitchDistances::kUnreachable);
  std::vector<SwitchIndex> queue;
  queue.reserve(fabric.switch_count());
  row[target.value()] = 0;
  queue.push_back(target);
  for (size_t head = 0; head < queue.size(); ++head) {
    const SwitchIndex s = queue[head];
    const uint8_t next = row[s.value()] + 1;
    if (next == SwitchDistances::kUnreachable) break;  // the queue is sorted by distance
    for (const Channel& channel : fabric.switch_channels(s)) {
      uint8_t& entry = row[channel.to.value()];
      if (entry != SwitchDistances::kUnreachable) continue;
      entry = next;
      queue.push_back(fabric.AsSwitch(channel.to));
    }
  }
  return row;
}

// Where a route from or to `v` meets the switches, and the links it takes to get there.
struct Attachment {
  std::optional<SwitchIndex> at;
  uint32_t links = 0;
};

Attachment Attach(const Fabric& fabric, VertexIndex v) {
  if (fabric.IsSwitch(v)) return {fabric.AsSwitch(v), 0};
  return {fabric.attached_switch(fabric.AsEndpoint(v)), 1};
}

}  // namespace

SwitchDistances::SwitchDistances(std::shared_ptr<const Fabric> fabric)
    : fabric_(std::move(fabric)), rows_(fabric_->switch_count()) {}

SwitchDistances::~SwitchDistances() {
  for (std::atomic<const std::vector<uint8_t>*>& row : rows_) {
    delete row.load(std::memory_order_relaxed);
  }
}

absl::Span<const uint8_t> SwitchDistances::RowTo(SwitchIndex target) const {
  std::atomic<const std::vector<uint8_t>*>& slot = rows_[target.value()];
  const std::vector<uint8_t>* row = slot.load(std::memory_order_acquire);
  if (row != nullptr) return *row;
  auto fresh = std::make_unique<const std::vector<uint8_t>>(BreadthFirstRow(*fabric_, target));
  if (slot.compare_exchange_strong(row, fresh.get(), std::memory_order_acq_rel,
                                   std::memory_order_acquire)) {
    row = fresh.release();
  }
  return *row;
}

std::optional<uint32_t> SwitchDistances::Hops(VertexIndex from, VertexIndex to) const {
  if (from == to) return 0;
  const Fabric& fabric = *fabric_;
  if (!fabric.IsSwitch(from) && !fabric.IsSwitch(to)) {
    if (fabric.host(fabric.AsEndpoint(from)) == fabric.host(fabric.AsEndpoint(to))) return 0;
    for (const Channel& channel : fabric.channels(from)) {
      if (channel.to == to) return 1;  // back to back
    }
  }
  const Attachment source = Attach(fabric, from);
  const Attachment target = Attach(fabric, to);
  if (!source.at || !target.at) return std::nullopt;
  const uint8_t between = RowTo(*target.at)[source.at->value()];
  if (between == kUnreachable) return std::nullopt;
  return source.links + between + target.links;
}

}  // namespace coppice
