// The use case of mapping: from a job or hosts and a pattern to an order of ranks, on the fabric as
// it is published, within the memory and the threads that the daemon gives to searches.
//
//   task --> places of the job's ports in the view --> problem --> algorithm (for the budget)
//                         ^                                            |
//                         +------- the fabric moved: ABORTED <---------+--> result, judged anew
//
// A search holds a snapshot and no lock; it takes nothing and changes nothing. Knows neither gRPC
// nor SQLite.
#ifndef COPPICE_DAEMON_MANAGER_MAPPING_RANK_MAPPER_H_
#define COPPICE_DAEMON_MANAGER_MAPPING_RANK_MAPPER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/clock.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/mapping/memory_budget.h"
#include "daemon/manager/quota_ledger.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/output/mapping_answer.h"

namespace coppice {

struct MapperOptions {
  absl::Duration default_budget = absl::Seconds(1);
  absl::Duration max_budget = absl::Minutes(10);
  uint32_t threads = 1;                   // of one search
  size_t memory_bytes = size_t{2} << 30;  // of all searches under way
};

enum class PlaceDistanceKind : uint8_t { kHops, kRoutes, kMatrix, kMeasured };

struct MappingTask {
  JobId job;                       // 0: `hosts`
  std::vector<std::string> hosts;  // as ResolveEndpoint takes them, or lists (node_list.h)
  uint32_t ranks_per_host = 1;     // of `hosts`
  std::shared_ptr<const Pattern> pattern;
  Objective objective;  // weighs nothing: congestion
  TrafficModel traffic = TrafficModel::kRoutes;
  PlaceDistanceKind distance = PlaceDistanceKind::kHops;
  std::shared_ptr<const PlaceDistances> matrix;  // of kMatrix: between the hosts as first named
  bool ignore_load = false;
  uint64_t fabric_version = 0;  // 0: any
};

struct MapRanksArgs {
  MappingTask task;
  Payer payer = {};
  std::string algorithm;  // empty: auto
  absl::Duration budget;  // zero: the default
  uint64_t seed = 1;
  std::vector<std::pair<std::string, double>> parameters;
  std::optional<LaunchFormat> emit;
};

// How a caller follows a search. All may be called by several threads at once; any may be null.
struct MapWatch {
  // What a search has of its budget though others wait for its thread.
  static constexpr absl::Duration kShareWhileOthersWait = absl::Seconds(10);

  // Of a better order, and about once a second otherwise. `positions`: the order whose score it is,
  // if `orders` are asked for and it was not told of before, else empty.
  std::function<void(absl::Duration elapsed, double score, std::vector<uint32_t> positions)>
      progress;
  std::function<bool()> is_cancelled;  // true: whoever asked has gone
  // True: it ends with the best that it has as soon as it has had its share.
  std::function<bool()> others_wait;
  bool orders = false;
};

struct MappingView {
  MappingAnswer answer;  // its slots are positions
  absl::Duration took;
  uint64_t fabric_version = 0;
  std::string launch_text;  // as asked for
};

// A task for a search elsewhere.
struct ProblemView {
  PlainProblem problem;
  std::vector<std::string> host_of_place;
  uint64_t fabric_version = 0;
};

struct EvaluationView {
  MappingMeasures before, after;
  double score = 1;
  std::vector<BusyLink> busiest;  // of `after`
  uint64_t fabric_version = 0;
  std::string launch_text;  // as asked for
};

// Thread-safe. Status codes: proto/coppice/v1/mapping.proto.
class RankMapper final {
 public:
  // All outlive it. `measured` null: nothing was.
  RankMapper(Manager* manager, const Clock* clock, MapperOptions options,
             const DistanceStore* measured = nullptr)
      : manager_(manager),
        clock_(clock),
        options_(options),
        measured_(measured),
        memory_(options.memory_bytes) {}

  // Searches on the caller's thread, and on as many more as the options say.
  absl::StatusOr<MappingView> MapRanks(const MapRanksArgs& args, const MapWatch& watch);
  // `positions` empty: the present order.
  absl::StatusOr<EvaluationView> Evaluate(const MappingTask& task,
                                          const std::vector<uint32_t>& positions,
                                          std::optional<LaunchFormat> emit = std::nullopt);
  absl::StatusOr<ProblemView> Problem(const MappingTask& task);
  // Of all searches, and of what is read for them.
  MemoryBudget& memory() { return memory_; }
  // Of that, room to read a request in. RESOURCE_EXHAUSTED.
  absl::StatusOr<MemoryBudget::Share> TakeToRead(size_t bytes) {
    return memory_.Take(bytes, "reading this request");
  }

 private:
  // What a task is on one view of the fabric.
  struct Question {
    MappingTask task;          // with the hosts that lists of them stand for
    MemoryBudget::Share room;  // for the search
    MappingProblem problem;
    uint64_t fabric_version = 0;
    MappingMeasures before;
    bool over_links = false;  // the tables do not lead there; shortest paths instead
  };
  // For a search by `algorithm`; null: for measures alone.
  absl::StatusOr<Question> Ask(const MappingTask& given, const MappingAlgorithm* algorithm,
                               absl::Span<const std::pair<std::string, double>> parameters);
  // From places and routes to distances and the present order's measures. NOT_FOUND: no route.
  absl::Status Measured(Question& question) const;
  // The same over shortest paths of the links that are there, as long as tables lead elsewhere.
  absl::Status GoOverLinks(Question& question) const;
  absl::StatusOr<std::shared_ptr<const PlaceDistances>> DistancesOf(
      const MappingTask& task, const MappingProblem& problem) const;
  absl::StatusOr<std::vector<EndpointIndex>> EndpointsOf(const MappingTask& task,
                                                         const Fabric& fabric);
  absl::Status CheckMoved(const Question& question) const;

  Manager* const manager_;
  const Clock* const clock_;
  const MapperOptions options_;
  const DistanceStore* const measured_;
  MemoryBudget memory_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_MAPPING_RANK_MAPPER_H_
