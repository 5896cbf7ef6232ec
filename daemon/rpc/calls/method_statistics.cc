#include "daemon/rpc/calls/method_statistics.h"

#include <cmath>
#include <numeric>

namespace coppice {

absl::Duration LatencyBound(size_t bucket) {
  if (bucket + 1 >= kLatencyBuckets) return absl::InfiniteDuration();
  return absl::Microseconds(int64_t{1} << bucket);
}

uint64_t MethodNumbers::calls() const {
  return std::accumulate(by_code.begin(), by_code.end(), uint64_t{0});
}

std::optional<size_t> BucketOfShare(absl::Span<const uint64_t> counts, double share) {
  const uint64_t all = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (all == 0) return std::nullopt;
  const double wanted = std::max(1.0, std::ceil(share * static_cast<double>(all)));
  size_t bucket = 0;
  for (uint64_t within = counts[0]; static_cast<double>(within) < wanted;
       within += counts[bucket]) {
    ++bucket;
  }
  return bucket;
}

absl::Duration MethodNumbers::Quantile(double share) const {
  const std::optional<size_t> bucket = BucketOfShare(latency, share);
  return bucket ? LatencyBound(*bucket) : absl::ZeroDuration();
}

MethodNumbers MethodStatistics::Method::Numbers() const {
  MethodNumbers numbers;
  numbers.name = name_;
  numbers.is_stream = is_stream_;
  for (size_t i = 0; i < kStatusCodes; ++i) numbers.by_code[i] = by_code_[i];
  for (size_t i = 0; i < kLatencyBuckets; ++i) numbers.latency[i] = latency_[i];
  numbers.total_latency = absl::Nanoseconds(total_ns_.load());
  // Streams that opened after the codes were read count as open.
  if (is_stream_) numbers.open = opened_ - numbers.calls();
  return numbers;
}

std::vector<MethodNumbers> MethodStatistics::Numbers() const {
  std::vector<MethodNumbers> all;
  for (const Method& method : methods_) all.push_back(method.Numbers());
  return all;
}

}  // namespace coppice
