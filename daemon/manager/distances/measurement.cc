#include "daemon/manager/distances/measurement.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxGroupsTried = 1024;

NodePair Ordered(uint32_t a, uint32_t b) { return {std::min(a, b), std::max(a, b)}; }

// Pairs that were chosen, and the choosing of more.
class Sampler {
 public:
  Sampler(const NodeLevels& nodes, uint64_t seed)
      : nodes_(nodes),
        count_(static_cast<uint32_t>(nodes.group.size())),
        random_(seed),
        is_sampled_(count_, false) {}

  PairRounds Run(uint32_t rounds_per_level) {
    if (count_ < 2) return {};
    for (const uint32_t level : Levels()) {
      uint32_t added = 0;
      while (added < rounds_per_level && AddRoundOf(level)) ++added;
    }
    while (AddRoundOfUnsampled()) {
    }
    return std::move(rounds_);
  }

 private:
  using Free = std::vector<std::vector<uint32_t>>;  // [group] nodes without a pair in this round

  // Those that two different nodes can have, ascending.
  std::set<uint32_t> Levels() const {
    std::vector<uint32_t> sizes(nodes_.group_count, 0);
    for (const uint32_t g : nodes_.group) ++sizes[g];
    std::set<uint32_t> levels;
    const uint32_t stride = std::max(nodes_.group_count / kMaxGroupsTried, 1u);
    for (uint32_t a = 0; a < nodes_.group_count; ++a) {
      if (sizes[a] > 1) levels.insert(nodes_.level(a, a));
      if (a % stride != 0) continue;
      for (uint32_t b = 0; b < nodes_.group_count; ++b) {
        if (a != b) levels.insert(nodes_.level(a, b));
      }
    }
    return levels;
  }

  // A maximal matching of the pairs of that level that were not chosen before; false: there is
  // none.
  bool AddRoundOf(uint32_t level) {
    Free free(nodes_.group_count);
    for (const uint32_t v : Shuffled(count_)) free[nodes_.group[v]].push_back(v);
    std::vector<NodePair> round;
    for (const uint32_t g : Shuffled(nodes_.group_count)) {
      std::vector<uint32_t> without;
      while (!free[g].empty()) {
        const uint32_t u = free[g].back();
        free[g].pop_back();
        const std::optional<uint32_t> v = TakePartner(u, level, free);
        if (v.has_value()) {
          Choose(u, *v, round);
        } else {
          without.push_back(u);
        }
      }
      free[g] = std::move(without);
    }
    return Add(std::move(round));
  }

  std::optional<uint32_t> TakePartner(uint32_t u, uint32_t level, Free& free) {
    const uint32_t own = nodes_.group[u];
    if (nodes_.level(own, own) == level) {
      const std::optional<uint32_t> v = TakeFrom(u, free[own]);
      if (v.has_value()) return v;
    }
    const uint32_t tries = std::min(nodes_.group_count, kMaxGroupsTried);
    const uint32_t first = Below(nodes_.group_count);
    for (uint32_t i = 0; i < tries; ++i) {
      const uint32_t g = (first + i) % nodes_.group_count;
      if (g == own || free[g].empty() || nodes_.level(own, g) != level) continue;
      const std::optional<uint32_t> v = TakeFrom(u, free[g]);
      if (v.has_value()) return v;
    }
    return std::nullopt;
  }

  std::optional<uint32_t> TakeFrom(uint32_t u, std::vector<uint32_t>& candidates) const {
    for (size_t k = candidates.size(); k-- > 0;) {
      const uint32_t v = candidates[k];
      if (chosen_.contains(Ordered(u, v))) continue;
      candidates[k] = candidates.back();
      candidates.pop_back();
      return v;
    }
    return std::nullopt;
  }

  // Each with another that has no pair yet, or else with whoever is free. False: all have one.
  bool AddRoundOfUnsampled() {
    std::vector<uint32_t> left;
    for (const uint32_t v : Shuffled(count_)) {
      if (!is_sampled_[v]) left.push_back(v);
    }
    std::vector<NodePair> round;
    const size_t pairs = left.size() / 2;
    for (size_t i = 0; i < pairs; ++i) Choose(left[2 * i], left[2 * i + 1], round);
    if (left.size() == 1) Choose(left[0], (left[0] + 1 + Below(count_ - 1)) % count_, round);
    return Add(std::move(round));
  }

  void Choose(uint32_t u, uint32_t v, std::vector<NodePair>& round) {
    chosen_.insert(Ordered(u, v));
    round.push_back(Ordered(u, v));
    is_sampled_[u] = is_sampled_[v] = true;
  }

  bool Add(std::vector<NodePair> round) {
    if (round.empty()) return false;
    rounds_.push_back(std::move(round));
    return true;
  }

  // The same on every machine, which std::shuffle is not.
  std::vector<uint32_t> Shuffled(uint32_t n) {
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    for (uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[Below(i)]);
    return order;
  }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  const NodeLevels& nodes_;
  const uint32_t count_;
  std::mt19937_64 random_;
  std::vector<bool> is_sampled_;
  absl::flat_hash_set<NodePair> chosen_;
  PairRounds rounds_;
};

absl::Status CheckNumber(const char* name, uint32_t value, uint32_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", value, "; give 1 to ", most));
}

}  // namespace

PairRounds CompleteRounds(uint32_t n) {
  if (n < 2) return {};
  const uint32_t around = n % 2 == 0 ? n - 1 : n;  // who go around the table
  PairRounds rounds(around);
  for (uint32_t r = 0; r < around; ++r) {
    if (around != n) rounds[r].push_back({r, n - 1});
    // Node r faces the one that stands, or nobody.
    for (uint32_t k = 1; k <= (around - 1) / 2; ++k) {
      rounds[r].push_back(Ordered((r + k) % around, (r + around - k) % around));
    }
  }
  return rounds;
}

PairRounds SampledRounds(const NodeLevels& nodes, const SampleOptions& options) {
  return Sampler(nodes, options.seed).Run(options.rounds_per_level);
}

absl::Status CheckMeasureArgs(const MeasureArgs& args) {
  RETURN_IF_ERROR(CheckNumber("complete_up_to", args.complete_up_to, MeasureArgs::kMaxComplete));
  RETURN_IF_ERROR(
      CheckNumber("latency_samples", args.latency_samples, MeasureArgs::kMaxLatencySamples));
  RETURN_IF_ERROR(
      CheckNumber("bandwidth_samples", args.bandwidth_samples, MeasureArgs::kMaxBandwidthSamples));
  return CheckNumber("bandwidth_bytes", args.bandwidth_bytes, MeasureArgs::kMaxBandwidthBytes);
}

absl::Duration PairTimeout(const MeasureArgs& args) {
  constexpr double kBytesPerSecond = 100e6 / 8;
  const double bytes = static_cast<double>(args.bandwidth_samples) * args.bandwidth_bytes;
  return absl::Seconds(10) + args.latency_samples * absl::Milliseconds(20) +
         args.bandwidth_samples * absl::Milliseconds(20) + absl::Seconds(bytes / kBytesPerSecond);
}

Measurement::Measurement(MeasureArgs args, MeasureWatch watch, std::vector<std::string> hosts,
                         PairRounds rounds, std::vector<std::string> failures, absl::Duration now)
    : args_(std::move(args)),
      watch_(std::move(watch)),
      hosts_(std::move(hosts)),
      rounds_(std::move(rounds)),
      begun_(now),
      failures_(std::move(failures)) {
  if (failures_.size() > kMaxFailures) failures_.resize(kMaxFailures);
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
    if (failures_.size() < kMaxFailures) {
      failures_.push_back(absl::StrCat(hosts.first, " and ", hosts.second, ": ", error));
    }
  }
  return --under_way_ == 0;
}

void Measurement::NoteMeasured(const HostPair& hosts, Transport transport,
                               const std::string& remark) {
  if (transport == Transport::kVerbs) ++over_verbs_;
  if (remark.empty() || remarks_.size() == kMaxFailures) return;
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
