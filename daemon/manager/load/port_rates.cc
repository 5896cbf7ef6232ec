#include "daemon/manager/load/port_rates.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace coppice {
namespace {

// Widths of the classic counters in bits (IBA vol. 1, table 247), of data in units of 4 octets.
constexpr uint64_t Greatest(int bits) { return (uint64_t{1} << bits) - 1; }
constexpr uint64_t kGreatestBytes = 4 * Greatest(32);

// [ErrorCount]
constexpr int kErrorBits[kErrorCounts] = {16, 8, 8, 16, 16, 16, 16, 8, 8, 4, 4, 16};
const PortCounterField& FieldOf(size_t error) {
  return kPortCounterFields[kFirstErrorCounter + error];
}

// Of data: by kind of reading.
Growth GrowthOfData(uint64_t before, uint64_t after, bool is_extended, double most) {
  if (!is_extended) return GrowthOfStopping(before, after, kGreatestBytes);
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
  if (after.when - before.when < kShortestInterval) return interval;
  interval.length = after.when - before.when;
  if (before.has_extended_errors == after.has_extended_errors) {
    CompareErrors(before, after, interval);
  }
  if (before.is_extended == after.is_extended) CompareData(before, after, capacity, interval);
  return interval;
}

}  // namespace coppice
