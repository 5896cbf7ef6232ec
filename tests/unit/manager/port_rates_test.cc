// Rates from two readings, moving averages and rising errors: by hand, and at random against a port
// whose real traffic is known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "daemon/manager/channel_states.h"
#include "daemon/manager/load_keeper.h"
#include "tests/support/tier.h"

namespace coppice::port_rates_test {
namespace {

using testing::HasSubstr;

constexpr double kCapacity = 25e9;  // bytes a second: 200 Gb/s
constexpr uint64_t kStop = 4 * 0xffffffffULL;

CounterReading Reading(double seconds, uint64_t sent, bool is_extended = true) {
  CounterReading reading;
  reading.node = Guid(1);
  reading.port = PortNum(1);
  reading.values.sent_bytes = sent;
  reading.is_extended = is_extended;
  reading.when = absl::Seconds(seconds);
  return reading;
}

PortInterval Between(double seconds, uint64_t before, uint64_t after, bool is_extended = true) {
  return Compare(Reading(100, before, is_extended), Reading(100 + seconds, after, is_extended),
                 kCapacity);
}

TEST(PortRatesTest, RateIsBytesByTheMonotonicTime) {
  const PortInterval interval = Between(4, 1000, 9000);
  EXPECT_EQ(interval.length, absl::Seconds(4));
  EXPECT_EQ(interval.sent_bytes, (Growth{8000, Certainty::kExact, false}));
  EXPECT_EQ(interval.sent_rate(), 2000);
  EXPECT_EQ(interval.received_rate(), 0);
  EXPECT_FALSE(interval.is_cut);
}

TEST(PortRatesTest, SixtyFourBitsGoAround) {
  EXPECT_EQ(Between(1, UINT64_MAX - 9, 990).sent_bytes, (Growth{1000, Certainty::kExact, false}));
}

TEST(PortRatesTest, FallBeyondWhatTheLinkCarriesIsAReset) {
  EXPECT_EQ(Between(1, 5'000'000, 300).sent_bytes, (Growth{300, Certainty::kAtLeast, true}));
  EXPECT_EQ(Between(1, uint64_t{1} << 63, 0).sent_bytes, (Growth{0, Certainty::kAtLeast, true}));
}

TEST(PortRatesTest, OneResetCounterMakesTheOthersBounds) {
  CounterReading before = Reading(1, 500), after = Reading(2, 700);
  before.values.received_packets = 9;
  EXPECT_EQ(Compare(before, after, kCapacity).sent_bytes,
            (Growth{200, Certainty::kAtLeast, false}));
}

TEST(PortRatesTest, ThirtyTwoBitsStop) {
  EXPECT_EQ(Between(1, kStop - 10, kStop, false).sent_bytes,
            (Growth{10, Certainty::kAtLeast, false}));
  // Nothing is known.
  EXPECT_EQ(Between(1, kStop, kStop, false).sent_bytes,
            (Growth{0, Certainty::kUnknown, false, true}));
  EXPECT_EQ(Between(1, kStop, 40, false).sent_bytes, (Growth{40, Certainty::kAtLeast, true}));
}

TEST(PortRatesTest, CountThatSlipsBackIsUnknown) {
  EXPECT_EQ(Between(10, 5'000'000'000, 5'000'000'000 - 64).sent_bytes, Growth());
  EXPECT_EQ(Between(10, 1'000'000, 1'000'000 - 64, false).sent_bytes, Growth());
  EXPECT_FALSE(Between(10, 5'000'000'000, 5'000'000'000 - 64).is_cut);
  CounterReading before = Reading(1, 500), after = Reading(2, 700);
  before.values.sent_packets = 1000;
  after.values.sent_packets = 998;
  before.values.symbol_errors = 1000;
  after.values.symbol_errors = 999;
  before.values.link_downed = 2;
  after.values.link_downed = 1;
  const PortInterval interval = Compare(before, after, kCapacity);
  EXPECT_EQ(interval.sent_bytes, (Growth{200, Certainty::kExact, false}));
  EXPECT_EQ(interval.all_errors(), 0u);
}

TEST(PortRatesTest, ReadingsThatAreNoPair) {
  for (const double seconds : {0.0, -5.0, 0.009}) {
    EXPECT_EQ(Between(seconds, 1, 1000).length, absl::ZeroDuration()) << seconds;
  }
  EXPECT_GT(Between(0.011, 1, 1000).length, absl::ZeroDuration());
}

TEST(PortRatesTest, ChangeOfKindKnowsNoBytesButErrors) {
  CounterReading before = Reading(1, 500, false), after = Reading(2, 900, true);
  after.values.symbol_errors = 3;
  const PortInterval interval = Compare(before, after, kCapacity);
  EXPECT_EQ(interval.sent_bytes, Growth());
  EXPECT_EQ(interval.error(ErrorCount::kSymbolErrors), 3u);
}

TEST(PortRatesTest, WhatTheLinkCannotCarryIsCutAndNoted) {
  const PortInterval absurd = Between(1, 0, uint64_t{1} << 60);
  EXPECT_TRUE(absurd.is_cut);
  EXPECT_EQ(absurd.sent_rate(), kCapacity);
  const PortInterval slightly = Between(1, 0, static_cast<uint64_t>(kCapacity * 1.04));
  EXPECT_FALSE(slightly.is_cut);
  EXPECT_EQ(slightly.sent_rate(), kCapacity);
  // Unknown capacity cuts nothing.
  const PortInterval unknown = Compare(Reading(0, 0), Reading(1, uint64_t{1} << 50), 0);
  EXPECT_EQ(unknown.sent_bytes.count, uint64_t{1} << 50);
}

TEST(PortRatesTest, ErrorsCountUpToWhereTheyStop) {
  CounterReading before = Reading(1, 0), after = Reading(2, 0);
  before.values.symbol_errors = 65530;
  after.values.symbol_errors = 65535;
  before.values.integrity_errors = 15;
  after.values.integrity_errors = 15;
  before.values.link_downed = 200;
  after.values.link_downed = 2;
  before.values.vl15_dropped = 7;
  after.values.vl15_dropped = 14;
  const PortInterval interval = Compare(before, after, kCapacity);
  EXPECT_EQ(interval.error(ErrorCount::kSymbolErrors), 5u);
  EXPECT_EQ(interval.error(ErrorCount::kIntegrityErrors), 0u);
  EXPECT_EQ(interval.error(ErrorCount::kLinkDowned), 2u);
  EXPECT_EQ(interval.error(ErrorCount::kVl15Dropped), 7u);
  EXPECT_EQ(interval.all_errors(), 14u);
}

TEST(PortRatesTest, WideErrorsDoNotStopWhereNarrowOnesDo) {
  CounterReading before = Reading(1, 0), after = Reading(2, 0);
  before.has_extended_errors = after.has_extended_errors = true;
  before.values.symbol_errors = 65535;
  after.values.symbol_errors = 65542;
  before.values.vl15_dropped = 1'000'000;
  after.values.vl15_dropped = 1'000'007;
  EXPECT_EQ(Compare(before, after, kCapacity).all_errors(), 14u);
}

// What a stopped count had missed has not just happened.
TEST(PortRatesTest, ChangeOfWidthKnowsNoErrors) {
  CounterReading before = Reading(1, 500), after = Reading(2, 900);
  after.has_extended_errors = true;
  before.values.symbol_errors = 65535;
  after.values.symbol_errors = 5'000'000;
  EXPECT_EQ(Compare(before, after, kCapacity).all_errors(), 0u);
  EXPECT_EQ(Compare(before, after, kCapacity).sent_bytes.count, 400u);
}

// A port that sends at random rates, whose counter wraps, stops, is reset and is read with misses:
// what is exact equals what was sent, bounds are bounds, and nothing is ever above the capacity.
TEST(PortRatesTest, RandomHistoriesAgreeWithThePort) {
  std::mt19937_64 random(TestSeed());
  const int rounds = FullTier() ? 1'000'000 : 50'000;
  for (const bool is_extended : {true, false}) {
    unsigned __int128 sent = 0;  // in all
    uint64_t count = is_extended ? UINT64_MAX - 1'000'000'000'000 : 0;
    double now = 0;
    CounterReading base = Reading(now, count, is_extended);
    unsigned __int128 sent_at_base = 0;
    bool was_reset = false;
    for (int round = 0; round < rounds; ++round) {
      const double seconds = static_cast<double>(random() % 2000) / 100;
      const uint64_t bytes =
          static_cast<uint64_t>(kCapacity * seconds * static_cast<double>(random() % 1000) / 1000);
      const bool resets = random() % 50 == 0;
      const uint64_t before_reset = resets ? random() % (bytes + 1) : 0;
      if (resets) count = 0;
      count += bytes - before_reset;
      if (!is_extended) count = std::min(count, kStop);
      sent += bytes;
      now += seconds;
      was_reset |= resets;
      if (random() % 5 == 0) continue;  // the reading is lost
      const CounterReading next = Reading(now, count, is_extended);
      const PortInterval interval = Compare(base, next, kCapacity);
      if (interval.length == absl::ZeroDuration()) continue;
      const unsigned __int128 really = sent - sent_at_base;
      const Growth& growth = interval.sent_bytes;
      if (!was_reset && growth.certainty == Certainty::kExact) {
        ASSERT_TRUE(growth.count == really) << round;
      }
      ASSERT_TRUE(growth.count <= really + 1) << round;
      ASSERT_LE(interval.sent_rate(), kCapacity * 1.000001);
      ASSERT_GE(interval.sent_rate(), 0);
      if (is_extended && !was_reset) {
        ASSERT_EQ(growth.certainty, Certainty::kExact);
      }
      base = next;
      sent_at_base = sent;
      was_reset = false;
      if (!is_extended && random() % 3 == 0) {  // somebody clears it between two readings
        count = 0;
        base = Reading(now, 0, false);
      }
    }
  }
}

// The definition, interval by interval.
TEST(MovingAverageTest, EqualsItsDefinitionForIrregularIntervals) {
  std::mt19937_64 random(TestSeed());
  const double constant = 60;
  MovingAverage average;
  std::vector<std::array<double, 3>> intervals;  // begin, end, rate; below 0: unknown
  double now = 0;
  for (int i = 0; i < 200; ++i) {
    const double length = static_cast<double>(1 + random() % 4000) / 100;
    const bool is_known = random() % 6 != 0;
    const double rate = is_known ? static_cast<double>(random() % 1000) : -1;
    is_known ? average.Add(rate, length, constant) : average.Skip(length, constant);
    intervals.push_back({now, now + length, rate});
    now += length;
    double sum = 0, weight = 0;
    for (const auto& [begin, end, r] : intervals) {
      if (r < 0) continue;
      const double w = std::exp(-(now - end) / constant) - std::exp(-(now - begin) / constant);
      sum += w * r;
      weight += w;
    }
    if (weight > 0) {
      ASSERT_NEAR(average.value(), sum / weight, 1e-6 * (1 + sum / weight)) << i;
    }
  }
}

TEST(ChannelLoadTest, AveragePeakAndAge) {
  ChannelLoad load;
  const auto take = [&](double share, Certainty certainty, int second) {
    load.Take({static_cast<uint64_t>(share * kCapacity * 10), certainty, false}, absl::Seconds(10),
              kCapacity, absl::Seconds(second), absl::FromUnixSeconds(second), absl::Seconds(60));
  };
  EXPECT_EQ(load.Average(kCapacity, absl::Seconds(1)), 0);
  take(0.5, Certainty::kExact, 10);
  EXPECT_NEAR(load.Average(kCapacity, absl::Seconds(10)), 0.5, 1e-9);
  take(0.9, Certainty::kExact, 20);
  const double higher = load.Average(kCapacity, absl::Seconds(20));
  EXPECT_GT(higher, 0.5);
  EXPECT_NEAR(load.peak(), 0.9, 1e-9);
  EXPECT_EQ(load.peaked(), absl::FromUnixSeconds(20));
  take(0.1, Certainty::kAtLeast, 30);  // a bound that says nothing
  EXPECT_NEAR(load.Average(kCapacity, absl::Seconds(30)), higher, 1e-9);
  take(1.0, Certainty::kAtLeast, 40);  // one that does
  EXPECT_GT(load.Average(kCapacity, absl::Seconds(40)), higher);
  EXPECT_NEAR(load.Average(kCapacity / 2, absl::Seconds(40)), 1, 1e-9);  // never above 1
  EXPECT_EQ(load.Average(0, absl::Seconds(40)), 0);
  EXPECT_EQ(load.Average(kCapacity, absl::Seconds(40) + kLoadLife + absl::Seconds(1)), 0);
}

TEST(ChannelLoadTest, RestoredLoadCountsUntilTheFirstMeasurement) {
  ChannelLoad load;
  load.Restore({1, false, 0.7, 0.8, absl::FromUnixSeconds(5), absl::FromUnixSeconds(6)},
               absl::Seconds(100));
  EXPECT_EQ(load.Average(kCapacity, absl::Seconds(110)), 0.7);
  EXPECT_EQ(load.Average(kCapacity, absl::Seconds(100) + 2 * kLoadLife), 0);
  load.Take({0, Certainty::kExact, false}, absl::Seconds(10), kCapacity, absl::Seconds(120),
            absl::FromUnixSeconds(9), absl::Seconds(60));
  EXPECT_EQ(load.Average(kCapacity, absl::Seconds(120)), 0);
  EXPECT_EQ(load.peak(), 0.8);
}

PortInterval Errors(uint64_t symbols, uint64_t downed = 0,
                    absl::Duration length = absl::Seconds(10)) {
  PortInterval interval;
  interval.length = length;
  interval.errors[static_cast<size_t>(ErrorCount::kSymbolErrors)] = symbols;
  interval.errors[static_cast<size_t>(ErrorCount::kLinkDowned)] = downed;
  return interval;
}

TEST(ErrorWatchTest, ThresholdIsPerMinute) {
  EXPECT_FALSE(IsRising(Errors(1), 10));
  EXPECT_TRUE(IsRising(Errors(2), 10));
  EXPECT_FALSE(IsRising(Errors(9, 0, absl::Minutes(1)), 10));
  EXPECT_TRUE(IsRising(Errors(10, 0, absl::Minutes(1)), 10));
  EXPECT_TRUE(IsRising(Errors(0, 1), 10));
  EXPECT_FALSE(IsRising(Errors(0), 0));
}

TEST(ErrorWatchTest, IsToldOnceAnHourAndWhenItIsOver) {
  ErrorWatch watch;
  int told = 0;
  uint64_t errors = 0;
  absl::Duration now;
  for (int second = 10; second <= 2 * 3600; second += 10) {
    now = absl::Seconds(second);
    const auto what = watch.Take(Errors(5), true, now);
    if (!what) continue;
    ++told;
    errors += what->errors[0];
    EXPECT_FALSE(what->is_over);
    EXPECT_THAT(ErrorsInWords(what->errors), HasSubstr("symbol_errors +"));
  }
  EXPECT_EQ(told, 2);
  for (int second = 10; second < 300; second += 10) {
    EXPECT_FALSE(watch.Take(Errors(0), false, now + absl::Seconds(second)));
  }
  const auto over = watch.Take(Errors(0), false, now + absl::Minutes(5));
  ASSERT_TRUE(over);
  EXPECT_TRUE(over->is_over);
  EXPECT_EQ(errors + over->errors[0], 5u * 2 * 360);
  EXPECT_TRUE(watch.is_quiet());
}

}  // namespace
}  // namespace coppice::port_rates_test
