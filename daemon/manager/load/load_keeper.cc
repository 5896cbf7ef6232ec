#include "daemon/manager/load/load_keeper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/load/direction_states.h"
#include "daemon/manager/load/error_watch.h"
#include "daemon/manager/load/load_events.h"
#include "daemon/manager/load/store_batches.h"

namespace coppice {
namespace {

// Rows of loads that stay as they are say so once in this time, so that a restart counts them.
constexpr absl::Duration kWriteSameLoad = absl::Minutes(1);
// Shares are stored in steps of this: what fades is 0 at last, and its row is left alone.
constexpr double kStoredStep = 1e-6;
// Directions of links that went whose peaks are remembered, with what the store had at the start.
constexpr size_t kMostAbsent = 262'144;
// Minutes and hours that wait for a store that can be written again.
constexpr size_t kMostUnwritten = 4;

double BytesPerSecond(const Fabric& fabric, ChannelIndex c) {
  return static_cast<double>(fabric.capacity_gbps(c)) * 1e9 / 8;
}

// Direction of a channel by the order in which the store keeps a link's ends.
bool FromB(const Fabric& fabric, ChannelIndex c) {
  return BeginOf(fabric, Fabric::Reverse(c)) < BeginOf(fabric, c);
}

}  // namespace

// All under mu_, but for the writing.
class LoadKeeper::State {
 public:
  State(Store* store, Tables* tables, const LoadOptions& options)
      : store_(store), tables_(tables), options_(options) {}

  void Configure(const LoadOptions& options) {
    std::lock_guard lock(mu_);
    options_ = options;
  }
  absl::Status Restore(absl::Time wall);
  std::shared_ptr<const LinkLoad> LoadOf(const std::shared_ptr<const Fabric>& fabric,
                                         absl::Span<const int64_t> link_ids);
  void ClearIfSilent();
  absl::Status TakeReadings(const CounterSweep& sweep, const FabricView& view, absl::Time wall,
                            std::vector<EventRecord>& events);
  void ForgetIfSilent(absl::Duration monotonic);
  absl::Status Flush();
  LinkMeasure Measure(const Fabric& fabric, LinkIndex link) const;
  std::vector<PortCounterRecord> Counters(Guid guid) const;

 private:
  // A minute or an hour that is under way.
  struct OpenSlot {
    HistoryResolution resolution;
    absl::Duration step;
    HistorySums DirectionState::*sums;
    absl::Time start;
    absl::Duration length;  // measured; 0: nothing yet
  };

  // One that is over.
  struct ClosedSlot {
    HistorySlot slot;
    std::vector<HistoryRow> rows;
  };

  void Adopt(const FabricView& view);
  void RestoreLoads(absl::Span<const int64_t> link_ids);
  // Before and after the states are carried over from `old` to fabric_.
  void KeepPeaks(const Fabric& old);
  void RestorePeaks(const Fabric& old);
  // 0: too old.
  double RestoredShare(const LinkLoadRecord& load) const {
    return restored_at_ - load.updated <= kLoadLife ? std::clamp(load.average, 0.0, 1.0) : 0;
  }
  DirectionMeasure RestoredMeasure(const Fabric& fabric, ChannelIndex c) const;
  absl::Duration BeginSweep(const CounterSweep& sweep);
  void TakeOne(const CounterReading& reading, ChannelIndex c, absl::Time wall);
  void UpdateLoads(absl::Time wall);
  std::shared_ptr<const LinkLoad> PresentLoad() const;
  // Where the published fabric is this one.
  void Publish(const Fabric* fabric, std::shared_ptr<const LinkLoad> load);
  void PublishNone();
  void WatchErrors(absl::Time wall, std::vector<EventRecord>& events);
  void WatchStops(absl::Time wall, std::vector<EventRecord>& events);
  void WriteCounters(StoreBatches& batches);
  void WriteLoads(absl::Time wall, StoreBatches& batches);
  void WriteReadings(absl::Duration length, absl::Time wall, StoreBatches& batches);
  void Close(OpenSlot& open);
  // What was closed and is not on the disk.
  void WriteClosed(StoreBatches& batches);
  absl::Status Write(StoreBatches& batches);
  template <class What>
  void ForEachPort(What what);  // of each switch, by port: node, state
  int64_t NextSlot(HistoryResolution resolution) {
    return ++last_slot_[static_cast<size_t>(resolution) - 1];
  }
  const DirectionState& state(ChannelIndex c) const { return states_[c.value()]; }
  bool IsFresh(ChannelIndex c) const {
    return states_[c.value()].sweep == sweep_ &&
           states_[c.value()].interval.length > absl::ZeroDuration();
  }

  Store* const store_;
  Tables* const tables_;

  mutable std::mutex mu_;
  // All guarded by mu_.
  LoadOptions options_;
  std::shared_ptr<const Fabric> fabric_;               // null before the first reading
  std::shared_ptr<const Fabric> awaited_;              // until then: newest that was asked for
  std::vector<int64_t> link_ids_;                      // [link] of it, or of the awaited
  std::vector<DirectionState> states_;                 // [channel]
  absl::flat_hash_map<uint32_t, ErrorWatch> watches_;  // by link: those with rising errors
  // By link and from_b: what the store had, until a first fabric; then of links that are not there.
  absl::flat_hash_map<std::pair<int64_t, bool>, LinkLoadRecord> restored_;
  absl::Time restored_at_;
  uint64_t sweep_ = 0;
  absl::Duration now_;        // newest reading, monotonic
  absl::Duration length_;     // between the last two sweeps
  uint64_t noted_sweep_ = 0;  // sweep_ when ForgetIfSilent looked last
  absl::Duration noted_;      // since when it is that, by the clock of ForgetIfSilent
  bool has_noted_ = false;
  bool is_silent_ = false;  // nothing measured counts
  std::array<int64_t, 3> last_slot_ = {};
  OpenSlot minute_{HistoryResolution::kMinute, absl::Minutes(1), &DirectionState::minute, {}, {}};
  std::vector<ClosedSlot> unwritten_;  // at most kMostUnwritten, oldest first
  OpenSlot hour_{HistoryResolution::kHour, absl::Hours(1), &DirectionState::hour, {}, {}};
};

absl::Status LoadKeeper::State::Restore(absl::Time wall) {
  ASSIGN_OR_RETURN(StoredLoad stored, store_->LoadMeasurements());
  std::lock_guard lock(mu_);
  last_slot_ = stored.last_slot;
  restored_at_ = wall;
  for (const LinkLoadRecord& load : stored.loads) restored_[{load.link, load.from_b}] = load;
  return absl::OkStatus();
}

std::shared_ptr<const LinkLoad> LoadKeeper::State::LoadOf(
    const std::shared_ptr<const Fabric>& published, absl::Span<const int64_t> link_ids) {
  const Fabric& fabric = *published;
  std::vector<float> shares(fabric.channel_count());
  bool has_any = false;
  std::lock_guard lock(mu_);
  if (fabric_ == nullptr) {
    awaited_ = published;
    link_ids_.assign(link_ids.begin(), link_ids.end());
  }
  if (is_silent_) return std::make_shared<const LinkLoad>();
  for (uint32_t i = 0; i < fabric.channel_count(); ++i) {
    const ChannelIndex c(i);
    double share = 0;
    if (fabric_ != nullptr) {
      const auto same = FindSame(fabric, c, *fabric_);
      if (same) share = state(*same).load.Average(BytesPerSecond(fabric, c), now_);
    } else if (!restored_.empty()) {
      const auto it = restored_.find({link_ids[i / 2], FromB(fabric, c)});
      if (it != restored_.end()) share = RestoredShare(it->second);
    }
    shares[i] = static_cast<float>(share);
    has_any = has_any || share > 0;
  }
  return has_any ? std::make_shared<const LinkLoad>(shares) : std::make_shared<const LinkLoad>();
}

void LoadKeeper::State::RestoreLoads(absl::Span<const int64_t> link_ids) {
  for (uint32_t i = 0; i < fabric_->channel_count(); ++i) {
    const auto it = restored_.find({link_ids[i / 2], FromB(*fabric_, ChannelIndex(i))});
    if (it == restored_.end()) continue;
    // The clock may have stepped back since.
    const absl::Duration age = std::max(restored_at_ - it->second.updated, absl::ZeroDuration());
    states_[i].load.Restore(it->second, now_ - age);
    restored_.erase(it);
  }
}

// Of links that go, only the peak is kept; the rest is not theirs when they come back.
void LoadKeeper::State::KeepPeaks(const Fabric& old) {
  for (uint32_t i = 0; i < old.channel_count(); ++i) {
    const ChannelIndex c(i);
    const ChannelLoad& load = states_[i].load;
    if (link_ids_[i / 2] == 0 || load.peak() == 0 || FindSame(old, c, *fabric_)) continue;
    if (restored_.size() >= kMostAbsent) return;
    const bool from_b = FromB(old, c);
    restored_[{link_ids_[i / 2], from_b}] = {link_ids_[i / 2], from_b,        0,
                                             load.peak(),      load.peaked(), load.read()};
  }
}

void LoadKeeper::State::RestorePeaks(const Fabric& old) {
  if (restored_.empty()) return;
  for (uint32_t i = 0; i < fabric_->channel_count(); ++i) {
    const ChannelIndex c(i);
    const auto it = restored_.find({link_ids_[i / 2], FromB(*fabric_, c)});
    if (it == restored_.end() || FindSame(*fabric_, c, old)) continue;
    states_[i].load.Restore(it->second, -absl::InfiniteDuration());
    restored_.erase(it);
  }
}

void LoadKeeper::State::Adopt(const FabricView& view) {
  const std::shared_ptr<const Fabric>& fabric = view.snapshot->fabric;
  if (fabric == fabric_) return;
  const std::shared_ptr<const Fabric> old = std::exchange(fabric_, fabric);
  awaited_.reset();
  if (old == nullptr) {
    link_ids_ = *view.link_ids;
    states_.resize(fabric_->channel_count());
    RestoreLoads(link_ids_);
    return;
  }
  KeepPeaks(*old);
  link_ids_ = *view.link_ids;
  states_ = CarryOver(*old, std::move(states_), *fabric_);
  RestorePeaks(*old);
  absl::flat_hash_map<uint32_t, ErrorWatch> watches;
  for (auto& [link, watch] : watches_) {
    const auto same = FindSame(*old, ChannelIndex(2 * link), *fabric_);
    if (same) watches[same->value() / 2] = std::move(watch);
  }
  watches_ = std::move(watches);
}

template <class What>
void LoadKeeper::State::ForEachPort(What what) {
  for (uint32_t s = 0; s < fabric_->switch_count(); ++s) {
    const SwitchInfo& info = fabric_->switch_info(SwitchIndex(s));
    for (int port = 1; port <= info.port_count; ++port) {
      const ChannelIndex c =
          fabric_->channel_at(SwitchIndex(s), PortNum(static_cast<uint8_t>(port)));
      if (c != kNoChannel && state(c).has_reading) what(info.guid, states_[c.value()]);
    }
  }
}

void LoadKeeper::State::TakeOne(const CounterReading& reading, ChannelIndex c, absl::Time wall) {
  DirectionState& state = states_[c.value()];
  if (state.has_reading) {
    const PortInterval interval = Compare(state.reading, reading, BytesPerSecond(*fabric_, c));
    if (interval.length <= absl::ZeroDuration()) return;
    state.interval = interval;
    state.sweep = sweep_;
    const double sent = interval.sent_rate(), received = interval.received_rate();
    state.counters_changed |= !(state.reading.values == reading.values) ||
                              sent != state.sent_rate || received != state.received_rate;
    state.sent_rate = sent;
    state.received_rate = received;
  } else {
    state.has_reading = state.counters_changed = true;
  }
  state.reading = reading;
  state.read = wall;
}

// The time since the sweep before; 0: there was none.
absl::Duration LoadKeeper::State::BeginSweep(const CounterSweep& sweep) {
  const bool is_first = sweep_++ == 0;
  is_silent_ = false;
  const absl::Duration before = now_;
  for (const CounterReading& reading : sweep.readings) {
    now_ = is_first && &reading == &sweep.readings.front() ? reading.when
                                                           : std::max(now_, reading.when);
  }
  return is_first ? absl::ZeroDuration() : now_ - before;
}

void LoadKeeper::State::UpdateLoads(absl::Time wall) {
  for (uint32_t i = 0; i < fabric_->channel_count(); ++i) {
    const ChannelIndex c(i), back = Fabric::Reverse(c);
    // What the sender sent; where that is not known, what the receiver got.
    const PortInterval *best = nullptr, *other = nullptr;
    Growth bytes;
    if (IsFresh(c)) {
      best = &state(c).interval;
      bytes = best->sent_bytes;
    }
    if (IsFresh(back)) {
      other = &state(back).interval;
      const Growth got = other->received_bytes;
      if (best == nullptr || got.certainty > bytes.certainty) {
        best = other;
        bytes = got;
      }
      bytes.is_stopped |= bytes.certainty == Certainty::kUnknown && got.is_stopped;
    }
    if (best == nullptr) continue;
    states_[i].load.Take(bytes, best->length, BytesPerSecond(*fabric_, c), now_, wall,
                         options_.time_constant);
  }
}

std::shared_ptr<const LinkLoad> LoadKeeper::State::PresentLoad() const {
  std::vector<float> shares(fabric_->channel_count());
  for (uint32_t i = 0; i < fabric_->channel_count(); ++i) {
    const ChannelIndex c(i);
    shares[i] = static_cast<float>(state(c).load.Average(BytesPerSecond(*fabric_, c), now_));
  }
  return std::make_shared<const LinkLoad>(shares);
}

// Plans under way keep what they have; load is a preference, so none of them is stale for it.
void LoadKeeper::State::Publish(const Fabric* fabric, std::shared_ptr<const LinkLoad> load) {
  std::lock_guard lock(tables_->mu);
  if (tables_->view == nullptr || tables_->view->snapshot->fabric.get() != fabric) return;
  auto snapshot = std::make_shared<Snapshot>(*tables_->view->snapshot);
  snapshot->load = load;
  auto view = std::make_shared<FabricView>(*tables_->view);
  view->snapshot = std::move(snapshot);
  tables_->view = std::move(view);
  tables_->load.SetMeasured(std::move(load));
}

void LoadKeeper::State::WatchErrors(absl::Time wall, std::vector<EventRecord>& events) {
  for (uint32_t i = 0; i < fabric_->channel_count(); ++i) {
    const ChannelIndex c(i);
    if (!IsFresh(c)) continue;
    const PortInterval& interval = state(c).interval;
    const bool is_rising = IsRising(interval, options_.error_threshold);
    const auto it = watches_.find(i / 2);
    if (!is_rising && it == watches_.end()) continue;
    ErrorWatch& watch = it == watches_.end() ? watches_[i / 2] : it->second;
    const auto told = watch.Take(interval, is_rising, now_);
    if (told) events.push_back(ErrorsEvent(*fabric_, LinkIndex(i / 2), *told, wall));
    if (watch.is_quiet()) watches_.erase(i / 2);
  }
}

// Once for each port, until its counts move again.
void LoadKeeper::State::WatchStops(absl::Time wall, std::vector<EventRecord>& events) {
  ForEachPort([&](Guid node, DirectionState& state) {
    if (state.sweep != sweep_ || state.interval.length <= absl::ZeroDuration()) return;
    const bool stopped =
        state.interval.sent_bytes.is_stopped || state.interval.received_bytes.is_stopped;
    if (std::exchange(state.stop_is_told, stopped) || !stopped) return;
    const SwitchIndex at = *fabric_->FindSwitch(node);
    const ChannelIndex c = fabric_->channel_at(at, state.reading.port);
    events.push_back(StoppedEvent(*fabric_, c, wall));
  });
}

void LoadKeeper::State::WriteCounters(StoreBatches& batches) {
  ForEachPort([&](Guid node, DirectionState& state) {
    if (!std::exchange(state.counters_changed, false)) return;
    batches.Add(RecordOf(node, state));
  });
}

void LoadKeeper::State::WriteLoads(absl::Time wall, StoreBatches& batches) {
  for (uint32_t i = 0; i < fabric_->channel_count(); ++i) {
    const ChannelIndex c(i);
    DirectionState& state = states_[i];
    const double exact = state.load.Average(BytesPerSecond(*fabric_, c), now_);
    const double average = std::round(exact / kStoredStep) * kStoredStep;
    const double peak = state.load.peak();
    if (state.load.read() == absl::InfinitePast() || link_ids_[i / 2] == 0) continue;
    const bool is_same = average == state.written_average && peak == state.written_peak;
    // Without load a row's age decides nothing.
    if (is_same && (average == 0 || wall - state.written < kWriteSameLoad)) continue;
    state.written_average = average;
    state.written_peak = peak;
    state.written = wall;
    batches.Add(LinkLoadRecord{link_ids_[i / 2], FromB(*fabric_, c), average, peak,
                               state.load.peaked(), state.load.read()});
  }
}

void LoadKeeper::State::Close(OpenSlot& open) {
  if (open.length <= absl::ZeroDuration()) return;
  ClosedSlot closed{{open.resolution, 0, open.start, open.length}, {}};
  ForEachPort([&](Guid node, DirectionState& state) {
    const HistorySums sums = std::exchange(state.*open.sums, HistorySums());
    if (!sums.NeedsRow(open.length)) return;
    closed.rows.push_back(sums.Row(node, state.reading.port.value()));
  });
  if (unwritten_.size() == kMostUnwritten) unwritten_.erase(unwritten_.begin());
  unwritten_.push_back(std::move(closed));
  open.length = absl::ZeroDuration();
}

// Each time under another number: the store takes none twice.
void LoadKeeper::State::WriteClosed(StoreBatches& batches) {
  for (ClosedSlot& closed : unwritten_) {
    closed.slot.slot = NextSlot(closed.slot.resolution);
    for (const HistoryRow& row : closed.rows) {
      batches.Add(closed.slot.resolution, closed.slot.slot, row);
    }
    batches.Close(closed.slot);
  }
}

void LoadKeeper::State::WriteReadings(absl::Duration length, absl::Time wall,
                                      StoreBatches& batches) {
  for (OpenSlot* open : {&minute_, &hour_}) {
    const int64_t step = absl::ToInt64Seconds(open->step);
    const int64_t middle = absl::ToUnixSeconds(wall - length / 2);
    const absl::Time start = absl::FromUnixSeconds(middle - middle % step);
    if (start != open->start) Close(*open);
    open->start = start;
    open->length += length;
  }
  WriteClosed(batches);
  const int64_t slot = NextSlot(HistoryResolution::kReading);
  ForEachPort([&](Guid node, DirectionState& state) {
    HistorySums sums;
    if (state.sweep == sweep_) {
      for (HistorySums* each : {&sums, &state.minute, &state.hour}) each->Add(state.interval);
    }
    if (!sums.NeedsRow(length)) return;
    batches.Add(HistoryResolution::kReading, slot, sums.Row(node, state.reading.port.value()));
  });
  batches.Close({HistoryResolution::kReading, slot, wall - length, length});
}

absl::Status LoadKeeper::State::Write(StoreBatches& batches) {
  absl::Status status = batches.Write(*store_);
  std::lock_guard lock(mu_);
  // What the store refuses for what it says would be refused again.
  const bool is_refused = absl::IsNotFound(status) || absl::IsAlreadyExists(status) ||
                          absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
  if (batches.closes() && (batches.is_stored() || is_refused)) unwritten_.clear();
  if (status.ok()) return status;
  for (DirectionState& state : states_) {
    state.counters_changed = state.has_reading;
    state.written_average = state.written_peak = -1;
  }
  return status;
}

absl::Status LoadKeeper::State::TakeReadings(const CounterSweep& sweep, const FabricView& view,
                                             absl::Time wall, std::vector<EventRecord>& events) {
  if (sweep.readings.empty()) return absl::OkStatus();
  StoreBatches batches;
  {
    std::lock_guard lock(mu_);
    const absl::Duration length = length_ = BeginSweep(sweep);
    Adopt(view);
    for (const CounterReading& reading : sweep.readings) {
      const std::optional<SwitchIndex> found = fabric_->FindSwitch(reading.node);
      const ChannelIndex c = found ? fabric_->channel_at(*found, reading.port) : kNoChannel;
      if (c != kNoChannel) TakeOne(reading, c, wall);
    }
    UpdateLoads(wall);
    Publish(fabric_.get(), PresentLoad());
    WatchErrors(wall, events);
    WatchStops(wall, events);
    WriteCounters(batches);
    WriteLoads(wall, batches);
    if (length >= kShortestInterval) WriteReadings(length, wall, batches);
  }
  return Write(batches);
}

void LoadKeeper::State::ForgetIfSilent(absl::Duration monotonic) {
  std::lock_guard lock(mu_);
  if (!has_noted_ || sweep_ != noted_sweep_) {
    has_noted_ = true;
    noted_sweep_ = sweep_;
    noted_ = monotonic;
  }
  if (is_silent_ || monotonic - noted_ <= std::max(kLoadLife, 3 * length_)) return;
  is_silent_ = true;
  PublishNone();
}

void LoadKeeper::State::ClearIfSilent() {
  std::lock_guard lock(mu_);
  if (is_silent_) PublishNone();
}

void LoadKeeper::State::PublishNone() {
  std::shared_ptr<const FabricView> view;
  {
    std::lock_guard tables_lock(tables_->mu);
    view = tables_->view;
  }
  if (view == nullptr || view->snapshot->load->empty()) return;
  Publish(view->snapshot->fabric.get(), std::make_shared<const LinkLoad>());
}

absl::Status LoadKeeper::State::Flush() {
  StoreBatches batches;
  {
    std::lock_guard lock(mu_);
    if (fabric_ == nullptr) return absl::OkStatus();
    WriteCounters(batches);
    Close(minute_);
    Close(hour_);
    WriteClosed(batches);
  }
  return Write(batches);
}

LinkMeasure LoadKeeper::State::Measure(const Fabric& fabric, LinkIndex link) const {
  LinkMeasure measure;
  std::lock_guard lock(mu_);
  for (uint32_t end = 0; end < 2; ++end) {
    const ChannelIndex c(2 * link.value() + end);
    DirectionMeasure& direction = end == 0 ? measure.ab : measure.ba;
    if (fabric_ == nullptr) {
      if (&fabric == awaited_.get()) direction = RestoredMeasure(fabric, c);
      continue;
    }
    const auto same = &fabric == fabric_.get() ? std::optional(c) : FindSame(fabric, c, *fabric_);
    if (!same) continue;
    const ChannelLoad& load = state(*same).load;
    const double average = load.Average(BytesPerSecond(fabric, c), now_);
    direction = {is_silent_ ? 0 : average, load.peak(), load.peaked(), load.read(), 0};
  }
  return measure;
}

DirectionMeasure LoadKeeper::State::RestoredMeasure(const Fabric& fabric, ChannelIndex c) const {
  const auto it = restored_.find({link_ids_[c.value() / 2], FromB(fabric, c)});
  if (it == restored_.end()) return {};
  const LinkLoadRecord& load = it->second;
  return {is_silent_ ? 0 : RestoredShare(load), load.peak, load.peaked, load.updated, 0};
}

std::vector<PortCounterRecord> LoadKeeper::State::Counters(Guid guid) const {
  std::vector<PortCounterRecord> ports;
  std::lock_guard lock(mu_);
  const auto found = fabric_ == nullptr ? std::nullopt : fabric_->FindSwitch(guid);
  if (!found) return ports;
  for (int port = 1; port <= fabric_->switch_info(*found).port_count; ++port) {
    const ChannelIndex c = fabric_->channel_at(*found, PortNum(static_cast<uint8_t>(port)));
    if (c != kNoChannel && state(c).has_reading) ports.push_back(RecordOf(guid, state(c)));
  }
  return ports;
}

LoadKeeper::LoadKeeper(Store* store, Tables* tables, const LoadOptions& options)
    : state_(std::make_unique<State>(store, tables, options)) {}
LoadKeeper::~LoadKeeper() = default;

void LoadKeeper::Configure(const LoadOptions& options) { state_->Configure(options); }

absl::Status LoadKeeper::Restore(absl::Time wall) { return state_->Restore(wall); }

std::shared_ptr<const LinkLoad> LoadKeeper::LoadOf(const std::shared_ptr<const Fabric>& fabric,
                                                   absl::Span<const int64_t> link_ids) {
  return state_->LoadOf(fabric, link_ids);
}

void LoadKeeper::ClearIfSilent() { state_->ClearIfSilent(); }

absl::Status LoadKeeper::TakeReadings(const CounterSweep& sweep,
                                      const std::shared_ptr<const FabricView>& view,
                                      absl::Time wall, std::vector<EventRecord>& events) {
  return state_->TakeReadings(sweep, *view, wall, events);
}

void LoadKeeper::ForgetIfSilent(absl::Duration monotonic) { state_->ForgetIfSilent(monotonic); }

absl::Status LoadKeeper::Flush() { return state_->Flush(); }

LinkMeasure LoadKeeper::Measure(const Fabric& fabric, LinkIndex link) const {
  return state_->Measure(fabric, link);
}

std::vector<PortCounterRecord> LoadKeeper::Counters(Guid guid) const {
  return state_->Counters(guid);
}

}  // namespace coppice
