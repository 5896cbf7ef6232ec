#include "daemon/manager/channel_states.h"

#include <limits>
#include <numeric>

#include "daemon/manager/inventory.h"

namespace coppice {
namespace {

// Widths of the classic counters in bits (IBA vol. 1, table 247), of data in units of 4 octets.
constexpr uint64_t Greatest(int bits) { return (uint64_t{1} << bits) - 1; }
constexpr uint64_t kMaxNarrowBytes = 4 * Greatest(32);

// [ErrorCount]
constexpr int kErrorBits[kErrorCounts] = {16, 8, 8, 16, 16, 16, 16, 8, 8, 4, 4, 16};
const PortCounterField& FieldOf(size_t error) {
  return kPortCounterFields[kFirstErrorCounter + error];
}

// Of data: by kind of reading.
Growth GrowthOfData(uint64_t before, uint64_t after, bool is_extended, double most) {
  if (!is_extended) return GrowthOfStopping(before, after, kMaxNarrowBytes);
  constexpr double kHalf = 9.2e18;  // of 2^64: what is more is a reset in any case
  return GrowthOfWrapping(before, after, static_cast<uint64_t>(std::min(most, kHalf)));
}

bool IsReset(uint64_t before, uint64_t after) {
  return after < before && !SlippedBack(before, after);
}

// Cuts what the link cannot have carried.
void Cut(Growth& growth, double possible, bool& is_cut) {
  if (possible <= 0 || static_cast<double>(growth.count) <= possible) return;
  if (static_cast<double>(growth.count) > possible * (1 + kCapacityTolerance)) {
    is_cut = true;
    // Neither what was counted nor a bound of it: but as much as can have been.
    if (growth.certainty == Certainty::kAtLeast) growth.certainty = Certainty::kUnknown;
  }
  growth.count = static_cast<uint64_t>(possible);
}

void CompareData(const CounterReading& before, const CounterReading& after, double capacity,
                 PortInterval& interval) {
  const double possible = capacity * absl::ToDoubleSeconds(interval.length);
  const double most = capacity > 0 ? possible * (1 + kCapacityTolerance) : 1e18;
  const PortCounters &a = before.values, &b = after.values;
  const bool ext = after.is_extended;
  interval.sent_bytes = GrowthOfData(a.sent_bytes, b.sent_bytes, ext, most);
  interval.received_bytes = GrowthOfData(a.received_bytes, b.received_bytes, ext, most);
  const bool packets_fell =
      IsReset(a.sent_packets, b.sent_packets) || IsReset(a.received_packets, b.received_packets);
  const bool is_reset =
      packets_fell || interval.sent_bytes.is_reset || interval.received_bytes.is_reset;
  for (Growth* growth : {&interval.sent_bytes, &interval.received_bytes}) {
    if (is_reset && growth->certainty == Certainty::kExact) {
      growth->certainty = Certainty::kAtLeast;
    }
    Cut(*growth, possible, interval.is_cut);
    if (growth->certainty == Certainty::kUnknown) growth->count = 0;
  }
}

void CompareErrors(const CounterReading& before, const CounterReading& after,
                   PortInterval& interval) {
  for (size_t i = 0; i < kErrorCounts; ++i) {
    const auto count = FieldOf(i).count;
    const uint64_t greatest =
        after.has_extended_errors ? std::numeric_limits<uint64_t>::max() : Greatest(kErrorBits[i]);
    interval.errors[i] =
        GrowthOfStopping(before.values.*count, after.values.*count, greatest).count;
  }
}

double Share(double rate, double capacity) {
  return capacity > 0 ? std::clamp(rate / capacity, 0.0, 1.0) : 0;
}

// Directions of links that went whose peaks are remembered, with what the store had at the start.
constexpr size_t kMaxAbsent = 262'144;

}  // namespace

bool SlippedBack(uint64_t before, uint64_t after) {
  return after > 0 && after < before && before - after <= std::max<uint64_t>(before / 16, 1);
}

Growth GrowthOfWrapping(uint64_t before, uint64_t after, uint64_t most) {
  if (after >= before) return {after - before, Certainty::kExact, false};
  const uint64_t around = after - before;  // modulo 2^64
  if (around <= most) return {around, Certainty::kExact, false};
  if (SlippedBack(before, after)) return {};
  return {after, Certainty::kAtLeast, true};
}

Growth GrowthOfStopping(uint64_t before, uint64_t after, uint64_t greatest) {
  if (SlippedBack(before, after)) return {};
  if (after < before) return {after, Certainty::kAtLeast, true};
  if (before >= greatest) return {0, Certainty::kUnknown, false, true};
  return {after - before, after >= greatest ? Certainty::kAtLeast : Certainty::kExact, false};
}

absl::string_view NameOf(ErrorCount count) { return FieldOf(static_cast<size_t>(count)).name; }

uint64_t PortInterval::all_errors() const {
  return std::accumulate(errors.begin(), errors.end(), uint64_t{0});
}

PortInterval Compare(const CounterReading& before, const CounterReading& after, double capacity) {
  PortInterval interval;
  if (after.when - before.when < kMinInterval) return interval;
  interval.length = after.when - before.when;
  if (before.has_extended_errors == after.has_extended_errors) {
    CompareErrors(before, after, interval);
  }
  if (before.is_extended == after.is_extended) CompareData(before, after, capacity, interval);
  return interval;
}

void ChannelLoad::Restore(const LinkLoadRecord& record, absl::Duration until) {
  restored_ = std::clamp(record.average, 0.0, 1.0);
  peak_ = std::clamp(record.peak, 0.0, 1.0);
  peaked_ = record.peaked;
  read_ = record.updated;
  measured_ = until;
}

void ChannelLoad::Take(const Growth& bytes, absl::Duration length, double capacity,
                       absl::Duration now, absl::Time wall, absl::Duration time_constant) {
  const double seconds = absl::ToDoubleSeconds(length);
  if (seconds <= 0) return;
  certainty_ = bytes.certainty;
  if (bytes.is_stopped) {
    measured_ = now;
    return;
  }
  const double constant = std::max(absl::ToDoubleSeconds(time_constant), 1e-3);
  const double rate = static_cast<double>(bytes.count) / seconds;
  const bool counts = bytes.certainty == Certainty::kExact ||
                      (bytes.certainty == Certainty::kAtLeast && rate > average_.value());
  if (!counts) {
    average_.Skip(seconds, constant);
    return;
  }
  average_.Add(rate, seconds, constant);
  restored_ = -1;
  measured_ = now;
  life_ = std::max(kLoadLife, 3 * length);
  read_ = wall;
  if (const double share = Share(rate, capacity);
      share > peak_ || peaked_ == absl::InfinitePast()) {
    peak_ = share;
    peaked_ = wall;
  }
}

double ChannelLoad::Average(double capacity, absl::Duration now) const {
  if (read_ == absl::InfinitePast() || now - measured_ > life_) return 0;
  return restored_ >= 0 ? restored_ : Share(average_.value(), capacity);
}

std::pair<Guid, PortNum> BeginOf(const Fabric& fabric, ChannelIndex channel) {
  return {NodeGuid(fabric, fabric.channel_from(channel)), fabric.channel_from_port(channel)};
}

bool FromB(const Fabric& fabric, ChannelIndex channel) {
  return BeginOf(fabric, Fabric::Reverse(channel)) < BeginOf(fabric, channel);
}

std::optional<ChannelIndex> FindSame(const Fabric& from, ChannelIndex channel, const Fabric& in) {
  if (!from.IsSwitch(from.channel_from(channel))) {
    if (!from.IsSwitch(from.channel_to(channel))) return std::nullopt;
    const auto back = FindSame(from, Fabric::Reverse(channel), in);
    return back ? std::optional(Fabric::Reverse(*back)) : std::nullopt;
  }
  const auto [node, port] = BeginOf(from, channel);
  const std::optional<SwitchIndex> found = in.FindSwitch(node);
  if (!found) return std::nullopt;
  const ChannelIndex same = in.channel_at(*found, port);
  if (same == kNoChannel) return std::nullopt;
  const auto far_end = BeginOf(from, Fabric::Reverse(channel));
  if (BeginOf(in, Fabric::Reverse(same)) != far_end) return std::nullopt;
  return same;
}

std::vector<DirectionState> CarryOver(const Fabric& from, std::vector<DirectionState> states,
                                      const Fabric& to) {
  std::vector<DirectionState> carried(to.channel_count());
  for (uint32_t c = 0; c < to.channel_count(); ++c) {
    const auto same = FindSame(to, ChannelIndex(c), from);
    if (same) carried[c] = std::move(states[same->value()]);
  }
  return carried;
}

PortCounterRecord RecordOf(Guid node, const DirectionState& state) {
  PortCounterRecord record;
  static_cast<PortCounters&>(record) = state.reading.values;
  record.node = node;
  record.port = state.reading.port.value();
  record.is_extended = state.reading.is_extended;
  record.sent_bytes_per_second = state.sent_rate;
  record.received_bytes_per_second = state.received_rate;
  record.read = state.read;
  return record;
}

void ChannelStates::Restore(absl::Span<const LinkLoadRecord> loads, absl::Time wall) {
  restored_at_ = wall;
  for (const LinkLoadRecord& load : loads) restored_[{load.link, load.from_b}] = load;
}

void ChannelStates::Await(const std::shared_ptr<const Fabric>& fabric,
                          absl::Span<const int64_t> link_ids) {
  if (fabric_ != nullptr) return;
  awaited_ = fabric;
  link_ids_.assign(link_ids.begin(), link_ids.end());
}

double ChannelStates::RestoredShare(const LinkLoadRecord& load) const {
  return restored_at_ - load.updated <= kLoadLife ? std::clamp(load.average, 0.0, 1.0) : 0;
}

DirectionMeasure ChannelStates::MeasureIn(const Fabric& fabric, ChannelIndex c,
                                          int64_t link_id) const {
  if (fabric_ == nullptr) {
    const auto it = restored_.find(SideOf(fabric, c, link_id));
    if (it == restored_.end()) return {};
    const LinkLoadRecord& load = it->second;
    return {RestoredShare(load), load.peak, load.peaked, load.updated, 0, Certainty::kUnknown};
  }
  const auto same = &fabric == fabric_.get() ? std::optional(c) : FindSame(fabric, c, *fabric_);
  if (!same) return {};
  const ChannelLoad& load = state(*same).load;
  return {load.Average(BytesPerSecond(fabric, c), now_),
          load.peak(),
          load.peaked(),
          load.read(),
          0,
          load.certainty()};
}

DirectionMeasure ChannelStates::MeasureIn(const Fabric& fabric, ChannelIndex c) const {
  if (fabric_ != nullptr) return MeasureIn(fabric, c, /*link_id=*/0);
  return &fabric == awaited_.get() ? MeasureIn(fabric, c, link_id(c)) : DirectionMeasure();
}

// Of links that go, only the peak is kept; the rest is not theirs when they come back.
void ChannelStates::KeepPeaks(const Fabric& old) {
  for (uint32_t i = 0; i < old.channel_count(); ++i) {
    const ChannelIndex c(i);
    const ChannelLoad& load = states_[i].load;
    if (link_id(c) == 0 || load.peak() == 0 || FindSame(old, c, *fabric_)) continue;
    if (restored_.size() >= kMaxAbsent) return;
    const LinkSide side = SideOf(old, c, link_id(c));
    restored_[side] = {side.first, side.second, 0, load.peak(), load.peaked(), load.read()};
  }
}

void ChannelStates::RestoreLoads(const Fabric* old) {
  if (restored_.empty()) return;
  for (uint32_t i = 0; i < fabric_->channel_count(); ++i) {
    const ChannelIndex c(i);
    const auto it = restored_.find(SideOf(*fabric_, c, link_id(c)));
    if (it == restored_.end() || (old != nullptr && FindSame(*fabric_, c, *old))) continue;
    // The clock may have stepped back since.
    const absl::Duration age = std::max(restored_at_ - it->second.updated, absl::ZeroDuration());
    states_[i].load.Restore(it->second, old == nullptr ? now_ - age : -absl::InfiniteDuration());
    restored_.erase(it);
  }
}

std::shared_ptr<const Fabric> ChannelStates::Adopt(const FabricView& view) {
  const std::shared_ptr<const Fabric>& fabric = view.snapshot->fabric;
  if (fabric == fabric_) return nullptr;
  const std::shared_ptr<const Fabric> old = std::exchange(fabric_, fabric);
  awaited_.reset();
  if (old == nullptr) {
    link_ids_ = *view.link_ids;
    states_.resize(fabric_->channel_count());
    RestoreLoads(nullptr);
    return nullptr;
  }
  KeepPeaks(*old);
  link_ids_ = *view.link_ids;
  states_ = CarryOver(*old, std::move(states_), *fabric_);
  RestoreLoads(old.get());
  return old;
}

absl::Duration ChannelStates::BeginSweep(const CounterSweep& sweep) {
  const bool is_first = sweep_++ == 0;
  const absl::Duration before = now_;
  for (const CounterReading& reading : sweep.readings) {
    now_ = is_first && &reading == &sweep.readings.front() ? reading.when
                                                           : std::max(now_, reading.when);
  }
  return is_first ? absl::ZeroDuration() : now_ - before;
}

void ChannelStates::Take(const CounterReading& reading, absl::Time wall) {
  const std::optional<SwitchIndex> found = fabric_->FindSwitch(reading.node);
  const ChannelIndex c = found ? fabric_->channel_at(*found, reading.port) : kNoChannel;
  if (c == kNoChannel) return;
  DirectionState& port = state(c);
  if (port.has_reading) {
    const PortInterval interval = Compare(port.reading, reading, BytesPerSecond(*fabric_, c));
    if (interval.length <= absl::ZeroDuration()) return;
    port.interval = interval;
    port.sweep = sweep_;
    const double sent = interval.sent_rate(), received = interval.received_rate();
    port.counters_changed |= !(port.reading.values == reading.values) || sent != port.sent_rate ||
                             received != port.received_rate;
    port.sent_rate = sent;
    port.received_rate = received;
  } else {
    port.has_reading = port.counters_changed = true;
  }
  port.reading = reading;
  port.read = wall;
}

void ChannelStates::UpdateLoads(absl::Time wall, absl::Duration time_constant) {
  for (uint32_t i = 0; i < fabric_->channel_count(); ++i) {
    const ChannelIndex c(i), back = Fabric::Reverse(c);
    // What the sender sent; where that is not known, what the receiver got.
    const PortInterval* best = nullptr;
    Growth bytes;
    if (IsFresh(c)) {
      best = &state(c).interval;
      bytes = best->sent_bytes;
    }
    if (IsFresh(back)) {
      const PortInterval& other = state(back).interval;
      const Growth got = other.received_bytes;
      if (best == nullptr || got.certainty > bytes.certainty) {
        best = &other;
        bytes = got;
      }
      bytes.is_stopped |= bytes.certainty == Certainty::kUnknown && got.is_stopped;
    }
    if (best == nullptr) continue;
    states_[i].load.Take(bytes, best->length, BytesPerSecond(*fabric_, c), now_, wall,
                         time_constant);
  }
}

}  // namespace coppice
