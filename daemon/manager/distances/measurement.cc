#include "daemon/manager/distances/measurement.h"

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

absl::Status CheckNumber(const char* name, uint32_t value, uint32_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", value, "; give 1 to ", most));
}

}  // namespace

absl::Status CheckMeasureArgs(const MeasureArgs& args) {
  RETURN_IF_ERROR(CheckNumber("complete_up_to", args.complete_up_to, MeasureArgs::kMostComplete));
  RETURN_IF_ERROR(
      CheckNumber("latency_samples", args.latency_samples, MeasureArgs::kMostLatencySamples));
  RETURN_IF_ERROR(
      CheckNumber("bandwidth_samples", args.bandwidth_samples, MeasureArgs::kMostBandwidthSamples));
  return CheckNumber("bandwidth_bytes", args.bandwidth_bytes, MeasureArgs::kMostBandwidthBytes);
}

absl::Duration PairTimeout(const MeasureArgs& args) {
  constexpr double kBytesPerSecond = 100e6 / 8;
  const double bytes = static_cast<double>(args.bandwidth_samples) * args.bandwidth_bytes;
  return absl::Seconds(10) + args.latency_samples * absl::Milliseconds(20) +
         args.bandwidth_samples * absl::Milliseconds(20) + absl::Seconds(bytes / kBytesPerSecond);
}

Measurement::Measurement(MeasureArgs args, MeasureWatch watch, std::vector<std::string> hosts,
                         Rounds rounds, std::vector<std::string> failures, absl::Duration now)
    : args_(std::move(args)),
      watch_(std::move(watch)),
      hosts_(std::move(hosts)),
      rounds_(std::move(rounds)),
      begun_(now),
      failures_(std::move(failures)) {
  if (failures_.size() > kMostFailures) failures_.resize(kMostFailures);
}

std::vector<HostPair> Measurement::NextRound(absl::Duration now) {
  // Beyond what the agents themselves wait: their words are better than ours.
  constexpr absl::Duration kGrace = absl::Seconds(5);
  std::vector<HostPair> pairs;
  if (next_ == rounds_.size()) return pairs;
  for (const auto& [a, b] : rounds_[next_++]) {
    const bool in_order = hosts_[a] < hosts_[b];
    pairs.emplace_back(hosts_[in_order ? a : b], hosts_[in_order ? b : a]);
  }
  under_way_ = pairs.size();
  deadline_ = now + PairTimeout(args_) + kGrace;
  return pairs;
}

bool Measurement::EndPair(const HostPair& hosts, const std::string& error) {
  if (error.empty()) {
    ++pairs_;
  } else {
    ++failed_;
    if (failures_.size() < kMostFailures) {
      failures_.push_back(absl::StrCat(hosts.first, " and ", hosts.second, ": ", error));
    }
  }
  return --under_way_ == 0;
}

void Measurement::NoteMeasured(const HostPair& hosts, Transport transport,
                               const std::string& remark) {
  if (transport == Transport::kVerbs) ++over_verbs_;
  if (remark.empty() || remarks_.size() == kMostFailures) return;
  remarks_.push_back(
      absl::StrCat(hosts.first, " and ", hosts.second, ": measured over TCP: ", remark));
}

MeasureStanding Measurement::Standing(absl::Duration now) const {
  MeasureStanding standing;
  standing.round = static_cast<uint32_t>(under_way_ == 0 ? next_ : next_ - 1);
  standing.rounds = static_cast<uint32_t>(rounds_.size());
  standing.pairs = pairs_;
  standing.failed = failed_;
  standing.over_verbs = over_verbs_;
  standing.elapsed = now - begun_;
  return standing;
}

MeasureStanding Measurement::Summary(absl::Duration now) const {
  MeasureStanding standing = Standing(now);
  standing.failures = failures_;
  standing.remarks = remarks_;
  return standing;
}

}  // namespace coppice
