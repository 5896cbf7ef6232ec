#include "tests/system/injected_loads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/manager/channel_states.h"

namespace coppice {
namespace {

constexpr uint64_t kUnit = 4;  // octets
// Between two readings 16 to 48 MB: far more than management, far less than a link can carry.
constexpr uint64_t kMinUnits = 4'000'000, kMoreUnits = 8'000'000;
// What OpenSM and the tools send meanwhile, at most.
constexpr uint64_t kPacketsOfOthers = 5000;
constexpr uint64_t kNewErrors = 1000;
// Averages forget all but this of what came before.
constexpr double kForgotten = 1e-4;

constexpr const char* FieldOf(bool is_sent) {
  return is_sent ? "PortCountersExtended.PortXmitData" : "PortCountersExtended.PortRcvData";
}

uint64_t BytesOf(const CounterReading& reading, bool is_sent) {
  return is_sent ? reading.values.sent_bytes : reading.values.received_bytes;
}

}  // namespace

size_t InjectedLoads::Check(size_t links) {
  gate_->Hold();
  subnet_.await("what was read last", [&] { return gate_->IsTaken(); });
  fabric_ = manager_->fabric()->snapshot->fabric;
  traffic_ = ChooseTraffic(links);
  for (const Traffic& traffic : traffic_) {
    for (const auto& count : {traffic.sender, traffic.receiver}) {
      if (count) SetFirst(*count, traffic.units);
    }
  }
  const Traffic& with_errors = traffic_.front();
  const CounterGate::Place place =
      (with_errors.sender ? with_errors.sender : with_errors.receiver)->place;
  const uint64_t errors = Below(1000);
  Set(place, "PortCounters.SymbolErrorCounter", errors);
  const uint64_t packets = gate_->PacketsSent();
  first_ = ReadOnce();
  for (const Traffic& traffic : traffic_) {
    for (const auto& count : {traffic.sender, traffic.receiver}) {
      if (count) SetSecond(*count, traffic.units, first_);
    }
  }
  Set(place, "PortCounters.SymbolErrorCounter", errors + kNewErrors);
  second_ = ReadOnce();
  packets_ = 2 * (gate_->PacketsSent() - packets) + kPacketsOfOthers;
  size_t compared = 0;
  // What a sweep did not see has lost its averages meanwhile.
  if (manager_->fabric()->snapshot->fabric == fabric_ && !testing::Test::HasFatalFailure()) {
    for (uint32_t c = 0; c < fabric_->channel_count(); ++c) {
      compared += CheckChannel(ChannelIndex(c)) && TrafficOn(ChannelIndex(c)) != nullptr;
    }
    if (WasReadTwice(place)) CheckErrors(place, with_errors.channel);
  }
  gate_->Open();
  return compared;
}

std::string InjectedLoads::EndOf(const CounterGate::Place& place) const {
  const SwitchIndex at = *fabric_->FindSwitch(place.first);
  return absl::StrCat("\"", fabric_->switch_info(at).description, "\"[", place.second.value(), "]");
}

// The count at the sending or the receiving end of a channel; hosts' are not read.
std::optional<InjectedLoads::Count> InjectedLoads::CountAt(ChannelIndex channel, bool is_sent) {
  const ChannelIndex begins = is_sent ? channel : Fabric::Reverse(channel);
  if (!fabric_->IsSwitch(fabric_->channel_from(begins))) return std::nullopt;
  static constexpr Fault kFaults[] = {Fault::kNone,    Fault::kNone,      Fault::kGoesAround,
                                      Fault::kIsReset, Fault::kSlipsBack, Fault::kLeaps};
  return Count{BeginOf(*fabric_, begins), is_sent, kFaults[Below(std::size(kFaults))]};
}

std::vector<InjectedLoads::Traffic> InjectedLoads::ChooseTraffic(size_t links) {
  std::vector<Traffic> chosen;
  std::vector<uint32_t> order(fabric_->link_count());
  for (uint32_t l = 0; l < order.size(); ++l) order[l] = l;
  std::shuffle(order.begin(), order.end(), random_);
  for (size_t i = 0; i < std::min(links, order.size()); ++i) {
    Traffic traffic;
    traffic.channel = ChannelIndex(static_cast<uint32_t>(2 * order[i] + Below(2)));
    traffic.units = kMinUnits + Below(kMoreUnits);
    traffic.sender = CountAt(traffic.channel, true);
    traffic.receiver = CountAt(traffic.channel, false);
    chosen.push_back(traffic);
  }
  return chosen;
}

void InjectedLoads::Set(const CounterGate::Place& place, const std::string& field, uint64_t value) {
  subnet_.console(absl::StrCat("PerformanceSet ", EndOf(place), " ", field, "=", value));
}

void InjectedLoads::SetFirst(const Count& count, uint64_t units) {
  const char* const field = FieldOf(count.is_sent);
  if (count.fault == Fault::kGoesAround) Set(count.place, field, uint64_t{0} - units / 2);
  if (count.fault == Fault::kIsReset) Set(count.place, field, uint64_t{1} << 41);
  if (count.fault == Fault::kSlipsBack) Set(count.place, field, uint64_t{1} << 40);
}

void InjectedLoads::SetSecond(const Count& count, uint64_t units, const Readings& first) {
  const auto it = first.find(count.place);
  if (it == first.end()) return;
  const uint64_t now = BytesOf(it->second, count.is_sent) / kUnit;
  uint64_t next = now + units;
  if (count.fault == Fault::kGoesAround) next = units - units / 2;
  if (count.fault == Fault::kIsReset) next = units / 2;
  if (count.fault == Fault::kSlipsBack) next = now - now / 100;
  if (count.fault == Fault::kLeaps) next = now + (uint64_t{1} << 40);
  Set(count.place, FieldOf(count.is_sent), next);
}

InjectedLoads::Readings InjectedLoads::ReadOnce() {
  gate_->Let();
  subnet_.await("one reading", [&] { return gate_->IsTaken(); });
  return gate_->Readings();
}

bool InjectedLoads::WasReadTwice(const CounterGate::Place& place) const {
  return first_.contains(place) && second_.contains(place);
}

double InjectedLoads::SecondsOf(const CounterGate::Place& place) const {
  return absl::ToDoubleSeconds(second_.at(place).when - first_.at(place).when);
}

bool InjectedLoads::IsReset(const CounterGate::Place& place) const {
  return std::any_of(traffic_.begin(), traffic_.end(), [&](const Traffic& each) {
    const auto is_reset = [&](const std::optional<Count>& count) {
      return count && count->place == place && count->fault == Fault::kIsReset;
    };
    return is_reset(each.sender) || is_reset(each.receiver);
  });
}

const InjectedLoads::Traffic* InjectedLoads::TrafficOn(ChannelIndex channel) const {
  const auto it = std::find_if(traffic_.begin(), traffic_.end(),
                               [&](const Traffic& each) { return each.channel == channel; });
  return it == traffic_.end() ? nullptr : &*it;
}

InjectedLoads::Moved InjectedLoads::MovedBy(const Count& count, uint64_t units,
                                            double possible) const {
  const uint64_t before = BytesOf(first_.at(count.place), count.is_sent);
  const uint64_t after = BytesOf(second_.at(count.place), count.is_sent);
  const uint64_t grown = after - before;  // modulo 2^64
  const auto slack = static_cast<double>(packets_ * kPacketBytes);
  const double set = static_cast<double>(kUnit * units);
  switch (count.fault) {
    case Fault::kNone:
    case Fault::kGoesAround:
      EXPECT_NEAR(set, static_cast<double>(grown), slack);
      return {static_cast<double>(grown), Known::kExactly};
    case Fault::kIsReset:
      EXPECT_NEAR(set / 2, static_cast<double>(after), slack);
      return {static_cast<double>(after), Known::kAtLeast};
    case Fault::kSlipsBack:
      EXPECT_LT(after, before);
      return {0, Known::kNothing};
    case Fault::kLeaps:
      EXPECT_GT(static_cast<double>(grown), possible);
      return {possible, Known::kExactly};
  }
  return {};
}

InjectedLoads::Moved InjectedLoads::MovedAlone(const CounterGate::Place& place,
                                               bool is_sent) const {
  const uint64_t before = BytesOf(first_.at(place), is_sent);
  const uint64_t after = BytesOf(second_.at(place), is_sent);
  EXPECT_GE(after, before);
  EXPECT_LE(after - before, packets_ * kPacketBytes);
  return {static_cast<double>(after - before), Known::kExactly};
}

// The rate as the port's record tells it.
void InjectedLoads::CheckRate(const CounterGate::Place& place, bool is_sent,
                              double expected) const {
  const absl::StatusOr<std::vector<PortCounterRecord>> ports = manager_->PortCounts(place.first);
  ASSERT_TRUE(ports.ok()) << ports.status();
  for (const PortCounterRecord& port : *ports) {
    if (port.port != place.second.value()) continue;
    const double rate = is_sent ? port.sent_bytes_per_second : port.received_bytes_per_second;
    EXPECT_NEAR(expected, rate, 1 + 1e-6 * expected);
    return;
  }
  ADD_FAILURE() << "has no record";
}

// False: a reading of it is missing.
bool InjectedLoads::CheckChannel(ChannelIndex channel) {
  const Traffic* const traffic = TrafficOn(channel);
  const double capacity = static_cast<double>(fabric_->capacity_gbps(channel)) * 1e9 / 8;
  Moved best;
  double share = 0;
  std::string story = "channel";
  for (const bool is_sent : {true, false}) {
    const ChannelIndex begins = is_sent ? channel : Fabric::Reverse(channel);
    if (!fabric_->IsSwitch(fabric_->channel_from(begins))) continue;
    const CounterGate::Place place = BeginOf(*fabric_, begins);
    if (!WasReadTwice(place)) return false;
    const auto count = traffic == nullptr ? std::optional<Count>()
                       : is_sent          ? traffic->sender
                                          : traffic->receiver;
    absl::StrAppend(&story, is_sent ? " from " : " to ", EndOf(place),
                    count ? absl::StrCat(" with fault ", static_cast<int>(count->fault)) : "");
    SCOPED_TRACE(story);
    const double possible = capacity * SecondsOf(place);
    Moved moved = count ? MovedBy(*count, traffic->units, possible) : MovedAlone(place, is_sent);
    if (IsReset(place)) moved.known = std::min(moved.known, Known::kAtLeast);
    CheckRate(place, is_sent, std::min(moved.bytes, possible) / SecondsOf(place));
    if (moved.known <= best.known) continue;
    best = moved;
    share = std::min(moved.bytes / possible, 1.0);
  }
  SCOPED_TRACE(story);
  const LinkMeasure measure = manager_->Measure(*fabric_, Fabric::link_of(channel));
  const DirectionMeasure& load = channel.value() % 2 == 0 ? measure.ab : measure.ba;
  EXPECT_TRUE(load.average >= 0 && load.average <= 1 && load.peak <= 1) << load.average;
  EXPECT_GE(load.peak + kForgotten, load.average);
  EXPECT_LE(load.average, share + kForgotten);
  if (best.known == Known::kExactly) {
    EXPECT_NEAR(share, load.average, kForgotten);
  }
  return true;
}

void InjectedLoads::CheckErrors(const CounterGate::Place& place, ChannelIndex channel) {
  const CounterGate::Place ends[] = {BeginOf(*fabric_, channel),
                                     BeginOf(*fabric_, Fabric::Reverse(channel))};
  const auto [lower, upper] = std::minmax(ends[0], ends[1]);
  const std::string object = absl::StrCat("link:", ToString(lower.first), "/", lower.second.value(),
                                          "-", ToString(upper.first), "/", upper.second.value());
  EventFilter filter;
  filter.kind_prefix = "link.errors";
  filter.limit = 100'000;
  subnet_.await("errors that rise at " + EndOf(place), [&] {
    const absl::StatusOr<std::vector<EventRecord>> events = manager_->Events(filter);
    if (!events.ok()) return false;
    const EventRecord* last = nullptr;
    for (const EventRecord& event : *events) {
      if (event.object == object) last = &event;
    }
    return last != nullptr && absl::StrContains(last->message, "errors rise:");
  });
}

}  // namespace coppice
