// Counts and histograms of methods against plain reckoning.
#include "daemon/rpc/calls/method_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "tests/support/tier.h"

namespace coppice::method_statistics_test {
namespace {

TEST(MethodStatisticsTest, BucketsHoldWhatIsWithinTheirBounds) {
  EXPECT_EQ(absl::Microseconds(1), LatencyBound(0));
  EXPECT_EQ(absl::InfiniteDuration(), LatencyBound(kLatencyBuckets - 1));
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 20'000; ++i) {
    int64_t ns = static_cast<int64_t>(random() >> (random() % 63 + 1));
    // Also exactly at the bounds.
    if (i % 3 == 0) ns = (int64_t{1000} << (i % 30)) + static_cast<int64_t>(random() % 3) - 1;
    const size_t bucket = LatencyBucket(ns);
    ASSERT_LT(bucket, kLatencyBuckets);
    EXPECT_LE(absl::Nanoseconds(ns), LatencyBound(bucket)) << ns;
    if (bucket > 0) {
      EXPECT_GT(absl::Nanoseconds(ns), LatencyBound(bucket - 1)) << ns;
    }
  }
  EXPECT_EQ(0u, LatencyBucket(0));
  EXPECT_EQ(0u, LatencyBucket(-5));  // a clock that errs
}

TEST(MethodStatisticsTest, QuantilesAreUpperBoundsWithinAFactorOfTwo) {
  std::mt19937_64 random(TestSeed());
  MethodStatistics statistics;
  MethodStatistics::Method* const method = statistics.AddUnary("A.B");
  EXPECT_EQ(absl::ZeroDuration(), method->Numbers().Quantile(0.5));
  std::vector<int64_t> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back(static_cast<int64_t>(random() % 50'000'000) + 1000);
    method->Ended(absl::StatusCode::kOk, all.back());
  }
  std::sort(all.begin(), all.end());
  for (const double share : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    const absl::Duration exact =
        absl::Nanoseconds(all[static_cast<size_t>(std::ceil(share * 1000)) - 1]);
    EXPECT_GE(method->Numbers().Quantile(share), exact);
    EXPECT_LE(method->Numbers().Quantile(share), 2 * exact);
  }
}

TEST(MethodStatisticsTest, CountsByCodeAndOpenStreams) {
  MethodStatistics statistics;
  MethodStatistics::Method* const unary = statistics.AddUnary("Jobs.GetJob");
  MethodStatistics::Method* const stream = statistics.AddStream("Trees.WatchTrees");
  unary->Ended(absl::StatusCode::kOk, 2500);
  unary->Ended(absl::StatusCode::kNotFound, 500);
  unary->Ended(static_cast<absl::StatusCode>(99), 500);  // of a newer gRPC
  for (int i = 0; i < 3; ++i) stream->Opened();
  stream->Closed(absl::StatusCode::kCancelled);
  const std::vector<MethodNumbers> numbers = statistics.Numbers();
  ASSERT_EQ(2u, numbers.size());
  EXPECT_EQ("Jobs.GetJob", numbers[0].name);
  EXPECT_EQ(3u, numbers[0].calls());
  EXPECT_EQ(1u, numbers[0].by_code[static_cast<size_t>(absl::StatusCode::kNotFound)]);
  EXPECT_EQ(1u, numbers[0].by_code[static_cast<size_t>(absl::StatusCode::kUnknown)]);
  EXPECT_EQ(absl::Nanoseconds(3500), numbers[0].total_latency);
  EXPECT_EQ(2u, numbers[0].latency[0]);
  EXPECT_EQ(1u, numbers[0].latency[2]);
  EXPECT_TRUE(numbers[1].is_stream);
  EXPECT_EQ(2u, numbers[1].open);
  EXPECT_EQ(1u, numbers[1].calls());
}

TEST(MethodStatisticsTest, NothingIsLostBetweenThreads) {
  constexpr int kThreads = 4, kEach = 20'000;
  MethodStatistics statistics;
  MethodStatistics::Method* const method = statistics.AddUnary("A.B");
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([method] {
      for (int i = 0; i < kEach; ++i) {
        method->Ended(i % 2 == 0 ? absl::StatusCode::kOk : absl::StatusCode::kAborted, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MethodNumbers numbers = method->Numbers();
  EXPECT_EQ(uint64_t{kThreads} * kEach, numbers.calls());
  EXPECT_EQ(uint64_t{kThreads} * kEach / 2, numbers.by_code[0]);
  EXPECT_EQ(kThreads * absl::Nanoseconds(int64_t{kEach} * (kEach - 1) / 2), numbers.total_latency);
}

}  // namespace
}  // namespace coppice::method_statistics_test
