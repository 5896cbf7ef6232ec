// One wire under noise: the waiting that queueing theory states, the share that noise takes, and
// first in, first out.
#include "daemon/simulation/channels.h"

#include <algorithm>
#include <cmath>

#include "daemon/simulation/simulator.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::channels_test {
namespace {

// One channel of 0.04 us per packet of noise.
Layout OneChannel(double noise, NoisePattern pattern) {
  Layout layout;
  layout.profile = RoundProfile();
  layout.pattern = pattern;
  layout.channels = {{.index = ChannelIndex(5), .us_per_byte = 4e-5, .noise = noise}};
  return layout;
}

// Mean waiting of packets without bytes that come `apart_us` apart.
double MeanWait(const Layout& layout, double apart_us, int packets, uint64_t seed) {
  Channels channels(layout, seed);
  double sum = 0;
  for (int i = 0; i < packets; ++i)
    sum += channels.Cross(0, i * apart_us, 0, 0).head_us - i * apart_us;
  return sum / packets;
}

TEST(Channels, PoissonNoiseDelaysAsQueueingTheorySays) {
  // w(u) = D u / (2 (1 - u)), looked at now and then, and by a stranger after a long time, and by
  // the first packet of all.
  for (const double u : {0.2, 0.5, 0.8}) {
    const Layout layout = OneChannel(u, NoisePattern::kPoisson);
    const double expected = 0.04 * u / (2 * (1 - u));
    EXPECT_NEAR(MeanWait(layout, 0.5, 200000, TestSeed()), expected, 0.05 * expected) << u;
    EXPECT_NEAR(MeanWait(layout, 1e6, 100000, TestSeed()), expected, 0.05 * expected) << u;
    double first = 0;
    for (uint64_t seed = 0; seed < 20000; ++seed) first += MeanWait(layout, 0, 1, seed);
    EXPECT_NEAR(first / 20000, expected, 0.05 * expected) << u;
  }
}

TEST(Channels, PeriodicNoiseDelaysByWhatIsLeftOfOnePacket) {
  // A look at a random time finds a packet with probability u, half of it left: u D / 2.
  for (const double u : {0.2, 0.8}) {
    const Layout layout = OneChannel(u, NoisePattern::kPeriodic);
    EXPECT_NEAR(MeanWait(layout, 0.0123456, 100000, TestSeed()), 0.02 * u, 0.002 * u) << u;
    EXPECT_NEAR(MeanWait(layout, 1e6, 100000, TestSeed()), 0.02 * u, 0.002 * u) << u;
  }
}

TEST(Channels, NoiseTakesItsShareOfTheBandwidth) {
  // A train of packets back to back gets what noise leaves.
  for (const NoisePattern pattern : {NoisePattern::kPoisson, NoisePattern::kPeriodic}) {
    const Layout layout = OneChannel(0.8, pattern);
    Channels channels(layout, TestSeed());
    double now = 0;
    for (int i = 0; i < 20000; ++i) now = channels.Cross(0, now, 0, 1000).tail_us;
    EXPECT_NEAR(20000 * 0.04 / now, 0.2, 0.02);
  }
}

TEST(Channels, WithoutNoiseTheWireIsFreeOrBusy) {
  const Layout layout = OneChannel(0, NoisePattern::kPoisson);
  Channels channels(layout, 1);
  EXPECT_DOUBLE_EQ(channels.Cross(0, 1, 0, 1000).head_us, 1);
  EXPECT_DOUBLE_EQ(channels.Cross(0, 1, 0, 1000).head_us, 1.04);
  EXPECT_DOUBLE_EQ(channels.Cross(0, 1.02, 0, 500).head_us, 1.08);
  EXPECT_DOUBLE_EQ(channels.Cross(0, 1.5, 0, 500).head_us, 1.5);
  const ChannelTraffic use = channels.Uses()[0];
  EXPECT_EQ(use.packets, 4);
  EXPECT_EQ(use.bytes, 3000);
  EXPECT_EQ(use.longest_queue, 2);
  EXPECT_EQ(use.noise_packets, 0);
  EXPECT_EQ(use.channel, ChannelIndex(5));
}

TEST(Channels, ATailFromASlowerLinkComesLate) {
  const Layout layout = OneChannel(0, NoisePattern::kPoisson);
  Channels channels(layout, 1);
  EXPECT_DOUBLE_EQ(channels.Cross(0, 1, 0.1, 1000).tail_us, 1.1);
  const Crossing next = channels.Cross(0, 1.01, 0.02, 1000);
  EXPECT_DOUBLE_EQ(next.head_us, 1.04);
  EXPECT_DOUBLE_EQ(next.tail_us, 1.08);
}

TEST(Channels, FirstInFirstOutAndNeverIdleWhileSomebodyWaits) {
  const Layout layout = OneChannel(0.6, NoisePattern::kPoisson);
  Channels channels(layout, TestSeed());
  RandomStream random(TestSeed(), 0);
  double now = 0, before = 0;
  for (int i = 0; i < 10000; ++i) {
    now += 0.1 * random.Uniform();
    const Crossing crossing = channels.Cross(0, now, 0, 500);
    EXPECT_GE(crossing.head_us, std::max(now, before));
    EXPECT_DOUBLE_EQ(crossing.tail_us, crossing.head_us + 0.02);
    // The wire was busy from `before` on, or free when the packet came: what it waited for beyond
    // `before` is whole packets of noise, or the rest of one.
    const double gap = crossing.head_us - std::max(now, before);
    if (now <= before) {
      EXPECT_NEAR(gap / 0.04, std::round(gap / 0.04), 1e-6);
    }
    before = crossing.tail_us;
  }
}

}  // namespace
}  // namespace coppice::channels_test
