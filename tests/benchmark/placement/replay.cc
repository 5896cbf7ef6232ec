// Sizes follow U. Lublin, D. Feitelson, "The workload on parallel supercomputers: modeling the
// characteristics of rigid jobs", JPDC 63 (2003), section 3.2: a quarter are of one node, three in
// four of the others powers of two, the logarithm from a two-stage uniform distribution.
//
// A job comes if its hosts still fit under the fill, else a running one, drawn at random, ends.
#include "tests/benchmark/placement/replay.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/placement/placement_metrics.h"
#include "daemon/placement/placement_request.h"

namespace coppice {
namespace {

constexpr double kOneNode = 0.24, kPowerOfTwo = 0.75;            // Lublin and Feitelson, table 5
constexpr double kLow = 0.8, kMiddleBelow = 2.5, kFirst = 0.86;  // log2: from, middle, share
constexpr uint32_t kMaxPolls = 60;  // of a search for an order: what a few milliseconds allow
constexpr uint32_t kMaxToAll = 64;  // ranks that all talk to each other

uint32_t DrawSize(uint32_t largest, std::mt19937_64& rng) {
  const auto uniform = [&](double from, double to) {
    return from + (to - from) * (static_cast<double>(rng() >> 11) * 0x1p-53);
  };
  if (uniform(0, 1) < kOneNode) return 1;
  const double high = std::log2(largest), middle = std::max(kLow, high - kMiddleBelow);
  double log = uniform(0, 1) < kFirst ? uniform(kLow, middle) : uniform(middle, high);
  if (uniform(0, 1) < kPowerOfTwo) log = std::round(log);
  return std::clamp(static_cast<uint32_t>(std::lround(std::exp2(log))), 1U, largest);
}

// One of four patterns: ring, five-point stencil, hypercube, all to all (large jobs: hypercube).
std::shared_ptr<const Pattern> DrawPattern(uint32_t ranks, std::mt19937_64& rng) {
  constexpr double kBytes = 1 << 20;
  std::vector<Pattern::Entry> entries;
  const auto both = [&](uint32_t a, uint32_t b, double bytes) {
    if (a == b) return;
    entries.push_back({.from = a, .to = b, .bytes = bytes, .messages = 1});
    entries.push_back({.from = b, .to = a, .bytes = bytes, .messages = 1});
  };
  const uint64_t drawn = rng() % 4, kind = drawn == 3 && ranks > kMaxToAll ? 2 : drawn;
  const auto width = static_cast<uint32_t>(std::max(1.0, std::floor(std::sqrt(ranks))));
  for (uint32_t r = 0; r < ranks; ++r) {
    if (kind == 0 && ranks > 1) both(r, (r + 1) % ranks, kBytes);
    if (kind == 1 && (r + 1) % width != 0 && r + 1 < ranks) both(r, r + 1, kBytes);
    if (kind == 1 && r + width < ranks) both(r, r + width, kBytes);
    for (uint32_t bit = 1; kind == 2 && bit < ranks; bit *= 2) {
      if ((r & bit) == 0 && (r | bit) < ranks) both(r, r | bit, kBytes);
    }
    for (uint32_t other = r + 1; kind == 3 && other < ranks; ++other) {
      both(r, other, 4 * kBytes / ranks);
    }
  }
  return *Pattern::Make(ranks, std::move(entries));
}

struct Job {
  std::vector<HostIndex> hosts;
  std::shared_ptr<const Pattern> pattern;
  std::vector<std::pair<uint32_t, double>> traffic;  // (channel, bytes over capacity), once asked
};

class Machine {
 public:
  Machine(const Snapshot& snapshot, const PlacementIndex& index, const PlacementRule& rule,
          const ReplayOptions& options)
      : snapshot_(snapshot), index_(index), rule_(rule), options_(options), rng_(options.seed) {
    occupancy_.holder.assign(index.host_count(), Occupancy::kFree);
    occupancy_.is_placed.assign(index.host_count(), false);
    occupancy_.is_out.assign(index.host_count(), false);
    occupancy_.channel_users.assign(snapshot.fabric->channel_count(), 0);
    for (uint32_t l = 0; l < index.leaf_count(); ++l) {
      leaf_sizes_.push_back(static_cast<uint32_t>(index.hosts(l).size()));
    }
    std::sort(leaf_sizes_.begin(), leaf_sizes_.end(), std::greater<>());
  }

  absl::StatusOr<ReplayResult> Run() {
    const auto largest = std::max(1U, index_.host_count() / options_.largest_share);
    for (uint32_t job = 0; job < options_.jobs; ++job) {
      const uint32_t size = DrawSize(largest, rng_);
      auto pattern = DrawPattern(size, rng_);
      while (held_ + size > options_.fill * index_.host_count()) End(rng_() % running_.size());
      RETURN_IF_ERROR(Begin(job + 1, size, std::move(pattern)));
      if (options_.measure_every > 0 && (job + 1) % options_.measure_every == 0) {
        RETURN_IF_ERROR(MeasureAll());
      }
    }
    result_.fragmentation /= options_.jobs;
    result_.pods /= options_.jobs;
    result_.distance /= options_.jobs;
    for (double* const sum : {&result_.congestion, &result_.own, &result_.fullest}) {
      *sum /= std::max(1U, measures_);
    }
    return result_;
  }

 private:
  uint32_t LeastLeaves(uint32_t hosts) const {
    uint32_t leaves = 0;
    for (uint32_t rest = hosts; rest > 0; ++leaves) rest -= std::min(rest, leaf_sizes_[leaves]);
    return leaves;
  }

  absl::Status Begin(uint32_t number, uint32_t size, std::shared_ptr<const Pattern> pattern) {
    Job job;
    ASSIGN_OR_RETURN(job.hosts, rule_(occupancy_, size));
    std::sort(job.hosts.begin(), job.hosts.end(), [&](HostIndex a, HostIndex b) {
      return std::pair(index_.leaf_of(a), a) < std::pair(index_.leaf_of(b), b);
    });
    job.pattern = std::move(pattern);
    PlacementRequest request;
    request.objective = DefaultObjective();
    const PlacementMeasures m = MeasurePlacement(snapshot_, index_, occupancy_, request, job.hosts);
    result_.fragmentation += double{1} * m.leaf_switches / LeastLeaves(size);
    result_.pods += m.pods;
    result_.distance += m.mean_distance;
    for (const HostIndex h : job.hosts) occupancy_.holder[h.value()] = number;
    AddHolder(snapshot_, index_, job.hosts, occupancy_.channel_users);
    held_ += size;
    running_.push_back(std::move(job));
    return absl::OkStatus();
  }

  void End(size_t which) {
    Job& job = running_[which];
    for (const HostIndex h : job.hosts) occupancy_.holder[h.value()] = Occupancy::kFree;
    for (const ChannelIndex c : JobChannels(snapshot_, index_, job.hosts)) {
      --occupancy_.channel_users[c.value()];
    }
    held_ -= static_cast<uint32_t>(job.hosts.size());
    job = std::move(running_.back());
    running_.pop_back();
  }

  // What the job sends over each channel between switches, its ranks in the best order found.
  absl::Status FindTraffic(Job& job) const {
    if (!job.traffic.empty() || job.hosts.size() < 2) return absl::OkStatus();
    std::vector<EndpointIndex> endpoints;
    for (const HostIndex h : job.hosts) {
      endpoints.push_back(snapshot_.fabric->endpoints_of_host(h).front());
    }
    MappingProblem problem;
    problem.pattern = job.pattern;
    ASSIGN_OR_RETURN(problem.places, Places::OfEndpoints(*snapshot_.fabric, endpoints, 1));
    ASSIGN_OR_RETURN(problem.distances,
                     PlaceDistances::Hops(*problem.places, snapshot_.routes->distances()));
    problem.snapshot = std::make_shared<const Snapshot>(snapshot_);
    problem.objective.congestion = 1;
    ASSIGN_OR_RETURN(const MappingMeasures before, Measure(problem, problem.present()));
    ASSIGN_OR_RETURN(const MappingAlgorithm* const search, FindMappingAlgorithm(kAutoAlgorithm));
    std::atomic<uint32_t> polls = 0;
    const SearchControl control([&] { return ++polls > kMaxPolls; }, nullptr);
    ASSIGN_OR_RETURN(const MappingAnswer answer,
                     AnswerMapping(problem, before, *search, {}, AlgorithmOptions{}, control));
    ASSIGN_OR_RETURN(const LinkTraffic traffic, CountLinkTraffic(problem, answer.mapping));
    const std::vector<double> capacities = ChannelCapacities(problem);
    for (uint32_t c = 0; c < traffic.bytes.size(); ++c) {
      const ChannelIndex channel(c);
      const bool between = snapshot_.fabric->IsSwitch(snapshot_.fabric->channel_from(channel)) &&
                           snapshot_.fabric->IsSwitch(snapshot_.fabric->channel_to(channel));
      if (between && traffic.bytes[c] > 0) {
        job.traffic.emplace_back(c, traffic.bytes[c] / capacities[c]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status MeasureAll() {
    std::vector<double> total(snapshot_.fabric->channel_count(), 0);
    for (Job& job : running_) {
      RETURN_IF_ERROR(FindTraffic(job));
      for (const auto& [channel, bytes] : job.traffic) total[channel] += bytes;
    }
    for (const Job& job : running_) {
      double among_all = 0, own = 0;
      for (const auto& [channel, bytes] : job.traffic) {
        among_all = std::max(among_all, total[channel]);
        own = std::max(own, bytes);
      }
      result_.congestion += among_all;
      result_.own += own;
    }
    result_.fullest += *std::max_element(total.begin(), total.end());
    ++measures_;
    return absl::OkStatus();
  }

  const Snapshot& snapshot_;
  const PlacementIndex& index_;
  const PlacementRule& rule_;
  const ReplayOptions& options_;
  std::mt19937_64 rng_;
  Occupancy occupancy_;
  std::vector<uint32_t> leaf_sizes_;  // falling
  std::vector<Job> running_;
  uint32_t held_ = 0, measures_ = 0;
  ReplayResult result_;
};

}  // namespace

absl::StatusOr<ReplayResult> Replay(const Snapshot& snapshot, const PlacementIndex& index,
                                    const PlacementRule& rule, const ReplayOptions& options) {
  return Machine(snapshot, index, rule, options).Run();
}

}  // namespace coppice
