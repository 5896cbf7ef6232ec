// Rows are computed between classes of switches (twin_classes.h) at the first use and published
// with one compare-and-swap: two threads that ask for one row at once both compute it and one copy
// is dropped, which costs less than a lock that every reader would have to take.
#include "daemon/fabric/distances.h"

#include <utility>

namespace coppice {
namespace {

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

LazyRows::~LazyRows() {
  for (std::atomic<const std::vector<uint8_t>*>& row : rows_) {
    delete row.load(std::memory_order_relaxed);
  }
}

const std::vector<uint8_t>& LazyRows::Publish(uint32_t i, std::vector<uint8_t> fresh) {
  auto mine = std::make_unique<const std::vector<uint8_t>>(std::move(fresh));
  const std::vector<uint8_t>* present = nullptr;
  if (rows_[i].compare_exchange_strong(present, mine.get(), std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
    present = mine.release();
  }
  return *present;
}

SwitchDistances::SwitchDistances(std::shared_ptr<const Fabric> fabric)
    : fabric_(std::move(fabric)),
      classes_(*fabric_),
      class_rows_(classes_.class_count()),
      rows_(fabric_->switch_count()) {}

std::vector<uint8_t> SwitchDistances::Expand(SwitchIndex target) const {
  const uint32_t target_class = classes_.class_of(target);
  const uint8_t* const from_class = ClassRowTo(target_class).data();
  std::vector<uint8_t> row(fabric_->switch_count());
  for (uint32_t s = 0; s < row.size(); ++s) {
    const uint32_t c = classes_.class_of(SwitchIndex(s));
    row[s] = c == target_class ? 2 : from_class[c];
  }
  row[target.value()] = 0;
  return row;
}

absl::Span<const uint8_t> SwitchDistances::RowTo(SwitchIndex target) const {
  return rows_.Get(target.value(), [&] { return Expand(target); });
}

std::optional<uint32_t> SwitchDistances::Hops(VertexIndex from, VertexIndex to) const {
  if (from == to) return 0;
  const Fabric& fabric = *fabric_;
  if (!fabric.IsSwitch(from) && !fabric.IsSwitch(to)) {
    if (fabric.StayWithinHost(fabric.AsEndpoint(from), fabric.AsEndpoint(to))) return 0;
    for (const Channel& channel : fabric.channels(from)) {
      if (channel.to == to) return 1;  // back to back
    }
  }
  const Attachment source = Attach(fabric, from);
  const Attachment target = Attach(fabric, to);
  if (!source.at || !target.at) return std::nullopt;
  const uint8_t between = Between(*source.at, *target.at);
  if (between == kUnreachable) return std::nullopt;
  return source.links + between + target.links;
}

}  // namespace coppice
