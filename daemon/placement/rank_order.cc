// The search's own time is best spent on one set of hosts. Which one, a multisection of the pattern
// along the fabric's groups tells in milliseconds: its congestion, or that of the present order
// where that is less, decides together with the cost of the hosts.
#include "daemon/placement/rank_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/output/mapping_answer.h"

namespace coppice {
namespace {

struct Judged {
  const Choice* choice = nullptr;
  MappingProblem problem;
  MappingMeasures present;
  double cost = 0;
};

absl::StatusOr<MappingProblem> ProblemOf(const PlacementQuestion& question,
                                         absl::Span<const HostIndex> hosts) {
  const Fabric& fabric = *question.snapshot.fabric;
  std::vector<EndpointIndex> endpoints;
  for (const HostIndex h : hosts) {
    const auto all = fabric.endpoints_of_host(h);
    endpoints.push_back(*std::min_element(all.begin(), all.end()));
  }
  MappingProblem problem;
  problem.pattern = question.request.pattern;
  ASSIGN_OR_RETURN(problem.places,
                   Places::OfEndpoints(fabric, endpoints, question.request.ranks_per_host));
  ASSIGN_OR_RETURN(problem.distances,
                   PlaceDistances::Hops(*problem.places, question.snapshot.routes->distances()));
  problem.snapshot = std::make_shared<const Snapshot>(question.snapshot);
  // Shortest paths are a guess at what the subnet will do: then all of them, in equal shares.
  problem.traffic = question.snapshot.routes->kind() == RouteKind::kShortestPath
                        ? TrafficModel::kEvenShortestPaths
                        : TrafficModel::kRoutes;
  problem.use_load = !question.snapshot.load->empty();
  problem.objective.congestion = 1;
  return problem;
}

double TrafficOf(const PlacementQuestion& question, double max_congestion) {
  const double bytes = question.request.pattern->total_bytes();
  const double least = question.snapshot.fabric->least_capacity_gbps();
  if (bytes <= 0) return 0;
  return max_congestion * question.request.constraints.host_count * (least > 0 ? least : 1) / bytes;
}

absl::StatusOr<Judged> Judge(const PlacementQuestion& question, const Choice& choice) {
  Judged judged;
  judged.choice = &choice;
  ASSIGN_OR_RETURN(judged.problem, ProblemOf(question, choice.hosts));
  ASSIGN_OR_RETURN(judged.present, Measure(judged.problem, judged.problem.present()));
  double congestion = judged.present.max_congestion.value_or(0);
  if (question.request.pattern->pair_count() > 0 && choice.hosts.size() > 1) {
    ASSIGN_OR_RETURN(const MappingAlgorithm* const quick, FindMappingAlgorithm("multisection"));
    AlgorithmOptions options;
    options.seed = question.request.seed;
    ASSIGN_OR_RETURN(const Mapped mapped, RunAlgorithm(*quick, judged.problem, {}, options, {}));
    ASSIGN_OR_RETURN(const MappingMeasures after, Measure(judged.problem, mapped.mapping));
    congestion = std::min(congestion, after.max_congestion.value_or(0));
  }
  judged.cost = choice.cost + question.request.objective.traffic * TrafficOf(question, congestion);
  return judged;
}

}  // namespace

absl::StatusOr<RankOrder> OrderRanks(const PlacementQuestion& question,
                                     const std::vector<Choice>& choices,
                                     const SearchControl& control) {
  Judged best;
  for (const Choice& choice : choices) {
    if (best.choice != nullptr && control.stopped()) break;
    ASSIGN_OR_RETURN(Judged judged, Judge(question, choice));
    if (best.choice == nullptr || judged.cost < best.cost) best = std::move(judged);
  }
  ASSIGN_OR_RETURN(const MappingAlgorithm* const search, FindMappingAlgorithm(kAutoAlgorithm));
  AlgorithmOptions options;
  options.seed = question.request.seed;
  ASSIGN_OR_RETURN(MappingAnswer answer,
                   AnswerMapping(best.problem, best.present, *search, {}, options, control));
  RankOrder order;
  order.hosts = best.choice->hosts;
  order.permutation = std::move(answer.slots);
  order.max_congestion = answer.after.max_congestion.value_or(0);
  order.traffic = TrafficOf(question, order.max_congestion);
  order.cost = best.choice->cost + question.request.objective.traffic * order.traffic;
  order.reason = std::move(answer.reason);
  return order;
}

}  // namespace coppice
