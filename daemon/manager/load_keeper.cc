#include "daemon/manager/load_keeper.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/event_kinds.h"
#include "daemon/manager/inventory.h"

namespace coppice {
namespace {

// The events about counters, in words. Knows nothing of when they are told.

std::string EndName(const Fabric& fabric, ChannelIndex c) {
  return absl::StrCat(NodeName(fabric, fabric.channel_from(c)), "/",
                      fabric.channel_from_port(c).value());
}

// `link.errors`: errors rise on the link, or no more.
EventRecord ErrorsEvent(const Fabric& fabric, LinkIndex link, const ErrorWatch::Told& told,
                        absl::Time wall) {
  const ChannelIndex ab(2 * link.value()), ba = Fabric::Reverse(ab);
  const auto ends = std::minmax({BeginOf(fabric, ab), BeginOf(fabric, ba)});
  std::string object =
      absl::StrCat("link:", ToString(ends.first.first), "/", ends.first.second.value(), "-",
                   ToString(ends.second.first), "/", ends.second.second.value());
  std::string message = absl::StrCat(
      "link ", EndName(fabric, ab), " - ", EndName(fabric, ba),
      told.is_over ? ": errors rise no more; " : ": errors rise: ", ErrorsInWords(told.errors),
      " in ", absl::FormatDuration(absl::Trunc(told.since, absl::Milliseconds(1))));
  EventRecord event = EventOf("link.errors", wall, std::move(object), std::move(message));
  if (told.is_over) event.severity = "info";
  return event;
}

// `port.counters`: a count of data stands at its end at the switch port that `channel` leaves.
EventRecord StoppedEvent(const Fabric& fabric, ChannelIndex channel, absl::Time wall) {
  const auto [node, port] = BeginOf(fabric, channel);
  return EventOf(
      "port.counters", wall, absl::StrCat("port:", ToString(node), "/", port.value()),
      absl::StrCat("port ", EndName(fabric, channel),
                   ": its 32-bit counts of data stand at their greatest value, and its load stays "
                   "what it was: clear its counters (perfquery -R), regularly if it has none of 64 "
                   "bits"));
}

// What a sweep did not read of one switch.
struct Missing {
  std::string first;  // in words, which begin with the switch's name
  size_t count = 0;
  bool is_silent = true;  // all of it
};

using Told = std::vector<std::pair<Guid, std::string>>;  // switch, message

void Append(bool is_read_again, Told told, absl::Time wall, std::vector<EventRecord>& events) {
  const auto event = [&](std::string object, std::string message) {
    events.push_back(EventOf("switch.counters", wall, std::move(object), std::move(message)));
    if (is_read_again) events.back().severity = "info";
  };
  if (told.size() <= UnreadWatch::kMaxTold) {
    for (auto& [guid, message] : told) {
      event(absl::StrCat("switch:", ToString(guid)), std::move(message));
    }
    return;
  }
  std::string summary = absl::StrCat(told.size(), " of these in one sweep");
  for (size_t i = 0; i < 3; ++i) absl::StrAppend(&summary, "; ", told[i].second);
  event("fabric", absl::StrCat(summary, "; ..."));
}

// Rows of loads that stay as they are say so once in this time, so that a restart counts them.
constexpr absl::Duration kWriteSameLoad = absl::Minutes(1);
// Shares are stored in steps of this: what fades is 0 at last, and its row is left alone.
constexpr double kStoredStep = 1e-6;

}  // namespace

bool IsRising(const PortInterval& interval, double threshold) {
  if (interval.error(ErrorCount::kLinkDowned) > 0) return true;
  if (interval.error(ErrorCount::kLinkRecoveries) > 0) return true;
  const uint64_t errors = interval.error(ErrorCount::kSymbolErrors) +
                          interval.error(ErrorCount::kReceiveErrors) +
                          interval.error(ErrorCount::kSendDiscards);
  const double minutes = absl::ToDoubleMinutes(interval.length);
  return errors > 0 && minutes > 0 && static_cast<double>(errors) >= threshold * minutes;
}

std::optional<ErrorWatch::Told> ErrorWatch::Take(const PortInterval& interval, bool is_rising,
                                                 absl::Duration now) {
  const bool begins = is_rising && !rising_;
  if (begins) {
    rising_ = true;
    told_ = now - interval.length;
  }
  if (!rising_) return std::nullopt;
  for (size_t i = 0; i < kErrorCounts; ++i) errors_[i] += interval.errors[i];
  if (is_rising) last_rise_ = now;
  const bool is_over = now - last_rise_ >= kErrorsAreOver;
  const bool is_due = is_rising && now - told_ >= kTellErrorsEvery;
  if (!begins && !is_over && !is_due) return std::nullopt;
  Told told{is_over, std::exchange(errors_, {}), now - told_};
  told_ = now;
  rising_ = !is_over;
  return told;
}

std::string ErrorsInWords(const std::array<uint64_t, kErrorCounts>& errors) {
  std::string words;
  for (size_t i = 0; i < kErrorCounts; ++i) {
    if (errors[i] == 0) continue;
    absl::StrAppend(&words, words.empty() ? "" : ", ", NameOf(static_cast<ErrorCount>(i)), " +",
                    errors[i]);
  }
  return words.empty() ? "none" : words;
}

void PortWatch::Adopt(const Fabric& old, const Fabric& now) {
  absl::flat_hash_map<uint32_t, ErrorWatch> watches;
  for (auto& [link, watch] : watches_) {
    const auto same = FindSame(old, ChannelIndex(2 * link), now);
    if (same) watches[same->value() / 2] = std::move(watch);
  }
  watches_ = std::move(watches);
}

void PortWatch::Take(ChannelStates& ports, double error_threshold, absl::Time wall,
                     std::vector<EventRecord>& events) {
  WatchErrors(ports, error_threshold, wall, events);
  WatchStops(ports, wall, events);
}

void PortWatch::WatchErrors(ChannelStates& ports, double error_threshold, absl::Time wall,
                            std::vector<EventRecord>& events) {
  const Fabric& fabric = *ports.fabric();
  for (uint32_t i = 0; i < fabric.channel_count(); ++i) {
    const ChannelIndex c(i);
    if (!ports.IsFresh(c)) continue;
    const PortInterval& interval = ports.state(c).interval;
    const bool is_rising = IsRising(interval, error_threshold);
    const auto it = watches_.find(i / 2);
    if (!is_rising && it == watches_.end()) continue;
    ErrorWatch& watch = it == watches_.end() ? watches_[i / 2] : it->second;
    const auto told = watch.Take(interval, is_rising, ports.now());
    if (told) events.push_back(ErrorsEvent(fabric, LinkIndex(i / 2), *told, wall));
    if (watch.is_quiet()) watches_.erase(i / 2);
  }
}

// Once for each port, until its counts move again.
void PortWatch::WatchStops(ChannelStates& ports, absl::Time wall,
                           std::vector<EventRecord>& events) {
  const Fabric& fabric = *ports.fabric();
  ports.ForEachPort([&](Guid node, DirectionState& state) {
    if (state.sweep != ports.sweep() || state.interval.length <= absl::ZeroDuration()) return;
    const bool stopped =
        state.interval.sent_bytes.is_stopped || state.interval.received_bytes.is_stopped;
    if (std::exchange(state.stop_is_told, stopped) || !stopped) return;
    const SwitchIndex at = *fabric.FindSwitch(node);
    events.push_back(StoppedEvent(fabric, fabric.channel_at(at, state.reading.port), wall));
  });
}

void UnreadWatch::Take(const CounterSweep& sweep, absl::Time wall,
                       std::vector<EventRecord>& events) {
  if (sweep.readings.empty() && sweep.unanswered.empty()) return;
  absl::btree_map<Guid, Missing> missing;  // told in this order
  for (const UnansweredNode& entry : sweep.unanswered) {
    if (entry.node == Guid()) continue;
    Missing& of_switch = missing[entry.node];
    // What is refused says more than what is not answered.
    if (++of_switch.count == 1 || (of_switch.is_silent && !entry.is_silent)) {
      of_switch.first = entry.what;
    }
    of_switch.is_silent = of_switch.is_silent && entry.is_silent;
  }
  absl::flat_hash_set<Guid> read;
  for (const auto& reading : sweep.readings) read.insert(reading.node);
  Told unread, read_again;
  for (auto it = switches_.begin(); it != switches_.end();) {
    if (missing.contains(it->first)) {
      ++it;
      continue;
    }
    if (it->second.is_told && read.contains(it->first)) {  // else it has left the fabric
      read_again.emplace_back(
          it->first, absl::StrCat("switch ", ToString(it->first), ": its counters are read again"));
    }
    it = switches_.erase(it);
  }
  for (const auto& [guid, what] : missing) {
    Unread& state = switches_[guid];
    if (++state.sweeps < kSilentSweeps && what.is_silent) continue;
    if (std::exchange(state.is_told, true)) continue;
    unread.emplace_back(
        guid, absl::StrCat("counters are not read, and load is not known there: ", what.first,
                           what.count > 1 ? absl::StrCat(", and ", what.count - 1, " more") : ""));
  }
  Append(false, std::move(unread), wall, events);
  Append(true, std::move(read_again), wall, events);
}

PutCounters& StoreBatches::Room() {
  if (rows_ == kRows) {
    batches_.emplace_back();
    rows_ = 0;
  }
  ++rows_;
  return batches_.back();
}

void StoreBatches::Add(HistoryResolution resolution, int64_t slot, const HistoryRow& row) {
  std::vector<HistoryPart>& parts = Room().history;
  if (parts.empty() || parts.back().resolution != resolution || parts.back().slot != slot) {
    parts.push_back({resolution, slot, {}});
  }
  parts.back().rows.push_back(row);
}

absl::Status StoreBatches::Write(Store& store) {
  if (closes()) {
    if (batches_.empty()) batches_.emplace_back();
    batches_.back().closed = closed_;
  }
  for (PutCounters& batch : batches_) {
    // Side by side: mostly they share a transaction, as they wait together; neither needs the
    // other.
    std::promise<absl::Status> written, pruned;
    store.Submit(std::move(batch),
                 [&written](absl::Status status) { written.set_value(std::move(status)); });
    store.Submit(PruneHistory{2 * kRows},
                 [&pruned](absl::Status status) { pruned.set_value(std::move(status)); });
    const absl::Status first = written.get_future().get();
    const absl::Status second = pruned.get_future().get();
    RETURN_IF_ERROR(first);
    is_stored_ = &batch == &batches_.back();
    RETURN_IF_ERROR(second);
  }
  batches_.clear();
  return absl::OkStatus();
}

void HistorySlots::Close(ChannelStates& ports, OpenSlot& open) {
  if (open.length <= absl::ZeroDuration()) return;
  ClosedSlot closed{{open.resolution, 0, open.start, open.length}, {}};
  ports.ForEachPort([&](Guid node, DirectionState& state) {
    const HistorySums sums = std::exchange(state.*open.sums, HistorySums());
    if (!sums.NeedsRow(open.length)) return;
    closed.rows.push_back(sums.Row(node, state.reading.port.value()));
  });
  if (unwritten_.size() == kMaxUnwritten) unwritten_.erase(unwritten_.begin());
  unwritten_.push_back(std::move(closed));
  open.length = absl::ZeroDuration();
}

// Each time under another number: the store takes none twice.
void HistorySlots::WriteClosed(StoreBatches& batches) {
  for (ClosedSlot& closed : unwritten_) {
    closed.slot.slot = NextSlot(closed.slot.resolution);
    for (const HistoryRow& row : closed.rows) {
      batches.Add(closed.slot.resolution, closed.slot.slot, row);
    }
    batches.Close(closed.slot);
  }
}

void HistorySlots::Take(ChannelStates& ports, absl::Duration length, absl::Time wall,
                        StoreBatches& batches) {
  for (OpenSlot* open : {&minute_, &hour_}) {
    const int64_t step = absl::ToInt64Seconds(open->step);
    const int64_t middle = absl::ToUnixSeconds(wall - length / 2);
    const absl::Time start = absl::FromUnixSeconds(middle - middle % step);
    if (start != open->start) Close(ports, *open);
    open->start = start;
    open->length += length;
  }
  WriteClosed(batches);
  const int64_t slot = NextSlot(HistoryResolution::kReading);
  ports.ForEachPort([&](Guid node, DirectionState& state) {
    HistorySums sums;
    if (state.sweep == ports.sweep()) {
      for (HistorySums* each : {&sums, &state.minute, &state.hour}) each->Add(state.interval);
    }
    if (!sums.NeedsRow(length)) return;
    batches.Add(HistoryResolution::kReading, slot, sums.Row(node, state.reading.port.value()));
  });
  batches.Close({HistoryResolution::kReading, slot, wall - length, length});
}

void HistorySlots::CloseAll(ChannelStates& ports, StoreBatches& batches) {
  Close(ports, minute_);
  Close(ports, hour_);
  WriteClosed(batches);
}

void LoadKeeper::Configure(const LoadOptions& options) {
  std::lock_guard lock(mu_);
  options_ = options;
}

absl::Status LoadKeeper::Restore(absl::Time wall) {
  ASSIGN_OR_RETURN(const StoredLoad stored, store_->LoadMeasurements());
  std::lock_guard lock(mu_);
  history_.Restore(stored.last_slot);
  ports_.Restore(stored.loads, wall);
  return absl::OkStatus();
}

std::shared_ptr<const LinkLoad> LoadKeeper::LoadOf(const std::shared_ptr<const Fabric>& fabric,
                                                   absl::Span<const int64_t> link_ids) {
  std::vector<float> shares(fabric->channel_count());
  bool has_any = false;
  std::lock_guard lock(mu_);
  ports_.Await(fabric, link_ids);
  if (is_silent_) return std::make_shared<const LinkLoad>();
  for (uint32_t i = 0; i < fabric->channel_count(); ++i) {
    const double share = ports_.MeasureIn(*fabric, ChannelIndex(i), link_ids[i / 2]).average;
    shares[i] = static_cast<float>(share);
    has_any = has_any || share > 0;
  }
  return has_any ? std::make_shared<const LinkLoad>(shares) : std::make_shared<const LinkLoad>();
}

std::shared_ptr<const LinkLoad> LoadKeeper::PresentLoad() const {
  std::vector<float> shares(ports_.fabric()->channel_count());
  for (uint32_t i = 0; i < shares.size(); ++i) {
    shares[i] = static_cast<float>(ports_.Share(ChannelIndex(i)));
  }
  return std::make_shared<const LinkLoad>(shares);
}

// Plans under way keep what they have; load is a preference, so none of them is stale for it.
void LoadKeeper::Publish(const Fabric* fabric, std::shared_ptr<const LinkLoad> load) {
  std::lock_guard lock(tables_->mu);
  if (tables_->view == nullptr || tables_->view->snapshot->fabric.get() != fabric) return;
  auto snapshot = std::make_shared<Snapshot>(*tables_->view->snapshot);
  snapshot->load = load;
  auto view = std::make_shared<FabricView>(*tables_->view);
  view->snapshot = std::move(snapshot);
  tables_->view = std::move(view);
  tables_->load.SetMeasured(std::move(load));
}

void LoadKeeper::PublishNone() {
  const std::shared_ptr<const FabricView> view = tables_->Published();
  if (view == nullptr || view->snapshot->load->empty()) return;
  Publish(view->snapshot->fabric.get(), std::make_shared<const LinkLoad>());
}

void LoadKeeper::WriteCounters(StoreBatches& batches) {
  ports_.ForEachPort([&](Guid node, DirectionState& state) {
    if (!std::exchange(state.counters_changed, false)) return;
    batches.Add(RecordOf(node, state));
  });
}

void LoadKeeper::WriteLoads(absl::Time wall, StoreBatches& batches) {
  for (uint32_t i = 0; i < ports_.fabric()->channel_count(); ++i) {
    const ChannelIndex c(i);
    DirectionState& state = ports_.state(c);
    const double average = std::round(ports_.Share(c) / kStoredStep) * kStoredStep;
    const double peak = state.load.peak();
    if (state.load.read() == absl::InfinitePast() || ports_.link_id(c) == 0) continue;
    const bool is_same = average == state.written_average && peak == state.written_peak;
    // Without load a row's age decides nothing.
    if (is_same && (average == 0 || wall - state.written < kWriteSameLoad)) continue;
    state.written_average = average;
    state.written_peak = peak;
    state.written = wall;
    batches.Add(LinkLoadRecord{ports_.link_id(c), FromB(*ports_.fabric(), c), average, peak,
                               state.load.peaked(), state.load.read()});
  }
}

absl::Status LoadKeeper::Write(StoreBatches& batches) {
  absl::Status status = batches.Write(*store_);
  std::lock_guard lock(mu_);
  // What the store refuses for what it says would be refused again.
  const bool is_refused = absl::IsNotFound(status) || absl::IsAlreadyExists(status) ||
                          absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
  if (batches.closes() && (batches.is_stored() || is_refused)) history_.Stored();
  if (status.ok()) return status;
  for (DirectionState& state : ports_.states()) {
    state.counters_changed = state.has_reading;
    state.written_average = state.written_peak = -1;
  }
  return status;
}

absl::Status LoadKeeper::TakeReadings(const CounterSweep& sweep,
                                      const std::shared_ptr<const FabricView>& view,
                                      absl::Time wall, std::vector<EventRecord>& events) {
  if (sweep.readings.empty()) return absl::OkStatus();
  StoreBatches batches;
  {
    std::lock_guard lock(mu_);
    const absl::Duration length = length_ = ports_.BeginSweep(sweep);
    is_silent_ = false;
    if (const auto old = ports_.Adopt(*view)) watch_.Adopt(*old, *ports_.fabric());
    for (const CounterReading& reading : sweep.readings) ports_.Take(reading, wall);
    ports_.UpdateLoads(wall, options_.time_constant);
    Publish(ports_.fabric().get(), PresentLoad());
    watch_.Take(ports_, options_.error_threshold, wall, events);
    WriteCounters(batches);
    WriteLoads(wall, batches);
    if (length >= kMinInterval) history_.Take(ports_, length, wall, batches);
  }
  return Write(batches);
}

void LoadKeeper::ForgetIfSilent(absl::Duration monotonic) {
  std::lock_guard lock(mu_);
  if (!has_noted_ || ports_.sweep() != noted_sweep_) {
    has_noted_ = true;
    noted_sweep_ = ports_.sweep();
    noted_ = monotonic;
  }
  if (is_silent_ || monotonic - noted_ <= std::max(kLoadLife, 3 * length_)) return;
  is_silent_ = true;
  PublishNone();
}

void LoadKeeper::ClearIfSilent() {
  std::lock_guard lock(mu_);
  if (is_silent_) PublishNone();
}

absl::Status LoadKeeper::Flush() {
  StoreBatches batches;
  {
    std::lock_guard lock(mu_);
    if (ports_.fabric() == nullptr) return absl::OkStatus();
    WriteCounters(batches);
    history_.CloseAll(ports_, batches);
  }
  return Write(batches);
}

LinkMeasure LoadKeeper::Measure(const Fabric& fabric, LinkIndex link) const {
  LinkMeasure measure;
  std::lock_guard lock(mu_);
  measure.ab = ports_.MeasureIn(fabric, ChannelIndex(2 * link.value()));
  measure.ba = ports_.MeasureIn(fabric, ChannelIndex(2 * link.value() + 1));
  if (!is_silent_) return measure;
  for (DirectionMeasure* direction : {&measure.ab, &measure.ba}) {
    direction->average = 0;
    direction->certainty = Certainty::kUnknown;
  }
  return measure;
}

std::vector<PortCounterRecord> LoadKeeper::Counters(Guid guid) const {
  std::vector<PortCounterRecord> ports;
  std::lock_guard lock(mu_);
  const auto found = ports_.fabric() == nullptr ? std::nullopt : ports_.fabric()->FindSwitch(guid);
  if (!found) return ports;
  for (int port = 1; port <= ports_.fabric()->switch_info(*found).port_count; ++port) {
    const ChannelIndex c = ports_.fabric()->channel_at(*found, PortNum(static_cast<uint8_t>(port)));
    if (c == kNoChannel || !ports_.state(c).has_reading) continue;
    ports.push_back(RecordOf(guid, ports_.state(c)));
  }
  return ports;
}

}  // namespace coppice
