#include "daemon/manager/mapping/rank_mapper.h"

#include <algorithm>
#include <atomic>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/manager/job_ports.h"
#include "daemon/manager/mapping/search_bytes.h"
#include "daemon/manager/planner_work.h"
#include "daemon/mapping/algorithm.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

constexpr absl::Duration kMinBudget = absl::Milliseconds(1);
constexpr absl::Duration kProgressEvery = absl::Milliseconds(100);
constexpr absl::Duration kSignOfLifeEvery = absl::Seconds(1);
constexpr int kProgressShare = 10;  // of a search's time, one part in so many goes into progress
constexpr size_t kBusiestLinks = 16;
// A given matrix may take more than a table that is made.
constexpr size_t kMaxDistances = size_t{2} << 30;

Objective ObjectiveOf(const MappingTask& task) {
  return task.objective == Objective{} ? Objective{.congestion = 1} : task.objective;
}

// Where the ranks may sit. Names of one port count as places of their own.
struct SeatCounts {
  size_t slots = 0, places = 0;
};

SeatCounts SeatsOn(const std::vector<std::string>& hosts, size_t ranks_each) {
  const absl::flat_hash_set<absl::string_view> places(hosts.begin(), hosts.end());
  return {hosts.size() * ranks_each, places.size()};
}

SeatCounts SeatsOf(const JobRecord& job) {
  const absl::flat_hash_set<Guid> places(job.endpoints.begin(), job.endpoints.end());
  return {job.endpoints.size(), places.size()};
}

// An estimate from above of what a search holds beside the published fabric; null: none is begun.
size_t BytesNeeded(const MappingTask& task, const SeatCounts& seats, const Snapshot& snapshot,
                   const MappingAlgorithm* algorithm,
                   absl::Span<const std::pair<std::string, double>> parameters, uint32_t threads) {
  const Fabric& fabric = *snapshot.fabric;
  SearchExtent extent;
  extent.ranks = task.pattern->rank_count();
  extent.pairs = task.pattern->pair_count();
  extent.slots = std::max(seats.slots, extent.ranks);
  extent.places = seats.places;
  extent.leaves = std::min<size_t>(fabric.switch_count(), extent.places);
  extent.channels = fabric.channel_count();
  extent.switches = fabric.switch_count();
  extent.tables = snapshot.routes->kind() == RouteKind::kForwardingTables;
  size_t distances = extent.leaves * extent.leaves;
  if (task.distance == PlaceDistanceKind::kRoutes) distances = extent.leaves * extent.places;
  if (task.distance == PlaceDistanceKind::kMatrix)
    distances = sizeof(double) * task.matrix->count() * task.matrix->count();
  if (task.distance == PlaceDistanceKind::kMeasured) distances = 8 * extent.places * extent.places;
  const size_t problem = 2 * task.pattern->MemoryBytes() + 256 * extent.slots +
                         64 * extent.channels + std::min(distances, kMaxDistances);
  if (algorithm == nullptr) return problem;
  SetMethod(*algorithm, parameters, ObjectiveOf(task), extent);
  return problem + SearchBytes(extent, threads);
}

// While a search goes on: when it must stop, and who hears of its best.
class Pace {
 public:
  Pace(const Clock& clock, absl::Duration budget, const MappingProblem& problem,
       const MappingMeasures& before, const MapWatch& watch)
      : clock_(clock),
        begun_(clock.Monotonic()),
        end_(begun_ + budget),
        problem_(problem),
        before_(before),
        watch_(watch),
        next_(begun_ + kProgressEvery),
        told_ns_(absl::ToInt64Nanoseconds(begun_)) {}

  SearchControl Control() {
    return SearchControl([this] { return Stopped(); }, [this](const Mapping& m) { Tell(m); },
                         [this] { return absl::ToDoubleSeconds(end_ - clock_.Monotonic()); });
  }
  // For another search in what is left of the budget, whose scores mean something else.
  void BeginAgain() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    waits_ = false;
    best_ = 1;
  }
  bool cancelled() const { return cancelled_; }
  bool gave_way() const { return gave_way_; }
  absl::Duration took() const { return clock_.Monotonic() - begun_; }

 private:
  bool Stopped() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (watch_.is_cancelled && watch_.is_cancelled()) cancelled_ = true;
    const absl::Duration now = clock_.Monotonic();
    if (watch_.progress && (waits_ || IsSilent(now)) && mutex_.TryLock()) {
      TellInTime(now);
      if (IsSilent(now)) TellProgress(now, {});
      mutex_.Unlock();
    }
    return cancelled_ || now >= end_ || GivesWay(now);
  }

  // Nobody has heard of the search for a while.
  bool IsSilent(absl::Duration now) const {
    return now - absl::Nanoseconds(told_ns_.load()) >= kSignOfLifeEvery;
  }

  // Others wait, and it has had its share.
  bool GivesWay(absl::Duration now) {
    if (!watch_.others_wait || now - begun_ < MapWatch::kShareWhileOthersWait) return false;
    if (!gave_way_ && watch_.others_wait()) gave_way_ = true;
    return gave_way_;
  }

  // Whoever comes while another tells leaves it.
  void Tell(const Mapping& mapping) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!watch_.progress || !mutex_.TryLock()) return;
    waiting_ = mapping;
    waits_ = true;
    TellInTime(clock_.Monotonic());
    mutex_.Unlock();
  }

  // The newest order, unless another was told of a moment ago: then it waits.
  void TellInTime(absl::Duration begin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!waits_ || begin < next_) return;
    waits_ = false;
    const absl::StatusOr<MappingMeasures> measures = Measure(problem_, waiting_);
    if (measures.ok()) TellScore(waiting_, Score(problem_.objective, *measures, before_), begin);
    const absl::Duration now = clock_.Monotonic();
    next_ = now + std::max(kProgressEvery, kProgressShare * (now - begin));
  }

  // The order goes with the score that is the best so far.
  void TellScore(const Mapping& mapping, double score, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<uint32_t> positions;
    if (watch_.orders && score <= best_) positions = AssignSlots(*problem_.places, mapping);
    best_ = std::min(best_, score);
    TellProgress(now, std::move(positions));
  }

  void TellProgress(absl::Duration now, std::vector<uint32_t> positions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    told_ns_ = absl::ToInt64Nanoseconds(now);
    watch_.progress(now - begun_, best_, std::move(positions));
  }

  const Clock& clock_;
  const absl::Duration begun_, end_;
  const MappingProblem& problem_;
  const MappingMeasures& before_;
  const MapWatch& watch_;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> gave_way_{false};
  std::atomic<bool> waits_{false};  // waiting_ has not been told of
  absl::Mutex mutex_;
  Mapping waiting_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_ ABSL_GUARDED_BY(mutex_);
  double best_ ABSL_GUARDED_BY(mutex_) = 1;
  std::atomic<int64_t> told_ns_;  // when progress was last told of, by clock_
};

// 0: it counts none.
double MeanMessage(const Pattern& pattern) {
  return pattern.total_messages() > 0 ? pattern.total_bytes() / pattern.total_messages() : 0.0;
}

absl::StatusOr<Mapping> MappingOf(const Places& places, uint32_t rank_count,
                                  const std::vector<uint32_t>& positions) {
  if (positions.empty()) return places.PresentOrder(rank_count);
  if (positions.size() != rank_count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a permutation of %d positions for %d ranks; give each rank one",
                        positions.size(), rank_count));
  }
  const absl::Status status = CheckSlots(places, positions);
  if (!status.ok())
    return absl::InvalidArgumentError(absl::StrCat("permutation: ", status.message()));
  Mapping mapping;
  for (const uint32_t position : positions) mapping.push_back(places.place_of_slot(position));
  return mapping;
}

std::vector<absl::string_view> HostsOfSlots(const MappingProblem& problem) {
  const Fabric& fabric = *problem.snapshot->fabric;
  std::vector<absl::string_view> hosts;
  for (uint32_t slot = 0; slot < problem.places->slot_count(); ++slot) {
    const EndpointIndex e = problem.places->endpoint(problem.places->place_of_slot(slot));
    hosts.push_back(fabric.host_name(fabric.host(e)));
  }
  return hosts;
}

}  // namespace

absl::StatusOr<std::vector<EndpointIndex>> RankMapper::EndpointsOf(const MappingTask& task,
                                                                   const Fabric& fabric) {
  std::vector<EndpointIndex> endpoints;
  if (task.job.value() == 0) {
    for (const std::string& host : task.hosts) {
      ASSIGN_OR_RETURN(const EndpointIndex endpoint, ResolveEndpoint(fabric, host));
      endpoints.push_back(endpoint);
    }
    return endpoints;
  }
  ASSIGN_OR_RETURN(const JobView job, manager_->GetJob(task.job));
  RETURN_IF_ERROR(CheckActive(*job.record));
  for (size_t rank = 0; rank < job.record->endpoints.size(); ++rank) {
    const Guid guid = job.record->endpoints[rank];
    const std::optional<EndpointIndex> endpoint = fabric.FindEndpoint(guid);
    if (!endpoint.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", rank, " of job ", task.job.value(), ": its port ", ToString(guid),
                       " has left the fabric; map over the hosts that are left"));
    }
    endpoints.push_back(*endpoint);
  }
  return endpoints;
}

absl::StatusOr<RankMapper::Question> RankMapper::Ask(
    const MappingTask& given, const MappingAlgorithm* algorithm,
    absl::Span<const std::pair<std::string, double>> parameters) {
  const std::shared_ptr<const FabricView> view = manager_->fabric();
  if (view == nullptr) return NoFabricError();
  const Fabric& fabric = *view->snapshot->fabric;
  Question question;
  question.task = given;
  MappingTask& task = question.task;
  if (std::any_of(task.hosts.begin(), task.hosts.end(),
                  [](const std::string& h) { return LooksLikeNodeList(h); })) {
    ASSIGN_OR_RETURN(task.hosts, ExpandEndpointNames(fabric, task.hosts, kMaxListedNodes, "hosts"));
  }
  SeatCounts seats = SeatsOn(task.hosts, task.ranks_per_host);
  if (task.job.value() != 0) {
    ASSIGN_OR_RETURN(const JobView job, manager_->GetJob(task.job));
    seats = SeatsOf(*job.record);
  }
  ASSIGN_OR_RETURN(question.room, memory_.Take(BytesNeeded(task, seats, *view->snapshot, algorithm,
                                                           parameters, options_.threads),
                                               "this search"));
  question.fabric_version = fabric.version();
  if (task.fabric_version != 0 && task.fabric_version != question.fabric_version) {
    return absl::AbortedError(absl::StrCat("the fabric is at version ", question.fabric_version,
                                           ", not at ", task.fabric_version,
                                           "; plan anew on that"));
  }
  auto snapshot = std::make_shared<Snapshot>(*view->snapshot);
  snapshot->load = manager_->load();
  MappingProblem& problem = question.problem;
  problem.snapshot = snapshot;
  problem.pattern = task.pattern;
  problem.traffic = task.traffic;
  problem.use_load = !task.ignore_load;
  problem.objective = ObjectiveOf(task);
  ASSIGN_OR_RETURN(const std::vector<EndpointIndex> endpoints, EndpointsOf(task, fabric));
  if (task.job.value() == 0) {
    std::vector<Guid> ports;
    for (const EndpointIndex endpoint : endpoints) {
      ports.push_back(fabric.endpoint(endpoint).port_guid);
    }
    RETURN_IF_ERROR(Annotate(CheckSpeaking(*snapshot, ports), "hosts"));
  }
  ASSIGN_OR_RETURN(
      problem.places,
      Places::OfEndpoints(fabric, endpoints, task.job.value() == 0 ? task.ranks_per_host : 1));
  const absl::Status measured = Measured(question);
  RETURN_IF_ERROR(absl::IsNotFound(measured) ? GoOverLinks(question) : measured);
  return question;
}

absl::StatusOr<std::shared_ptr<const PlaceDistances>> RankMapper::DistancesOf(
    const MappingTask& task, const MappingProblem& problem) const {
  const Places& places = *problem.places;
  const Routes& routes = *problem.snapshot->routes;
  switch (task.distance) {
    case PlaceDistanceKind::kHops:
      return PlaceDistances::Hops(places, routes.distances());
    case PlaceDistanceKind::kRoutes:
      return PlaceDistances::RouteLengths(places, routes);
    case PlaceDistanceKind::kMatrix:
      return task.matrix;
    case PlaceDistanceKind::kMeasured:
      break;
  }
  if (measured_ == nullptr) {
    return absl::FailedPreconditionError("no distances are kept here; choose hops or routes");
  }
  return MeasuredDistances(places, *problem.snapshot, *measured_, MeanMessage(*task.pattern));
}

absl::Status RankMapper::Measured(Question& question) const {
  MappingProblem& problem = question.problem;
  ASSIGN_OR_RETURN(problem.distances, DistancesOf(question.task, problem));
  RETURN_IF_ERROR(CheckProblem(problem));
  ASSIGN_OR_RETURN(question.before, Measure(problem, problem.present()));
  return absl::OkStatus();
}

absl::Status RankMapper::GoOverLinks(Question& question) const {
  // A subnet manager takes seconds to route around a change; the links are there all the same.
  auto snapshot = std::make_shared<Snapshot>(*question.problem.snapshot);
  snapshot->routes = Routes::ShortestPaths(snapshot->fabric);
  question.problem.snapshot = std::move(snapshot);
  question.over_links = true;
  return Measured(question);
}

absl::Status RankMapper::CheckMoved(const Question& question) const {
  const uint64_t now = manager_->fabric()->snapshot->fabric->version();
  if (now == question.fabric_version) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("the fabric moved from version ", question.fabric_version,
                                         " to ", now, " during the search; call again"));
}

absl::StatusOr<MappingView> RankMapper::MapRanks(const MapRanksArgs& args, const MapWatch& watch) {
  const absl::Duration budget =
      args.budget == absl::ZeroDuration() ? options_.default_budget : args.budget;
  if (budget < kMinBudget || budget > options_.max_budget) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a budget of ", absl::FormatDuration(budget), "; give ", absl::FormatDuration(kMinBudget),
        " to ", absl::FormatDuration(options_.max_budget),
        budget > options_.max_budget ? ", or raise mapping.max_budget of the daemon" : ""));
  }
  ASSIGN_OR_RETURN(const MappingAlgorithm* const algorithm,
                   FindMappingAlgorithm(args.algorithm.empty() ? kAutoAlgorithm : args.algorithm));
  ASSIGN_OR_RETURN(const PlannerWork work,
                   PlannerWork::Begin(manager_->quotas(), *clock_, args.payer,
                                      PlannerWork::Kind::kSearch, options_.threads));
  ASSIGN_OR_RETURN(Question question, Ask(args.task, algorithm, args.parameters));
  const MappingProblem& problem = question.problem;
  Pace pace(*clock_, budget, problem, question.before, watch);
  AlgorithmOptions options;
  options.seed = args.seed;
  options.threads = options_.threads;
  options.parameters = args.parameters;
  const auto search = [&] {
    return AnswerMapping(problem, question.before, *algorithm, problem.present(), options,
                         pace.Control());
  };
  absl::StatusOr<MappingAnswer> found = search();
  if (absl::IsNotFound(found.status()) && !question.over_links) {
    // Between two places that the present order does not join.
    RETURN_IF_ERROR(GoOverLinks(question));
    pace.BeginAgain();
    found = search();
  }
  RETURN_IF_ERROR(found.status());
  MappingAnswer answer = *std::move(found);
  if (pace.cancelled()) return absl::CancelledError("mapping: the client went away");
  RETURN_IF_ERROR(CheckMoved(question));
  MappingView view;
  view.took = pace.took();
  view.fabric_version = question.fabric_version;
  if (question.over_links) {
    absl::StrAppend(&answer.reason,
                    " Over shortest paths of the links that are there, as the forwarding tables do "
                    "not lead everywhere yet.");
  }
  if (pace.gave_way()) {
    absl::StrAppend(&answer.reason, " The best after ", absl::FormatDuration(view.took),
                    ": others waited for the daemon's searches.");
  }
  if (args.emit.has_value()) {
    ASSIGN_OR_RETURN(view.launch_text, LaunchText(*args.emit, HostsOfSlots(problem), answer.slots));
  }
  view.answer = std::move(answer);
  return view;
}

absl::StatusOr<EvaluationView> RankMapper::Evaluate(const MappingTask& task,
                                                    const std::vector<uint32_t>& positions,
                                                    std::optional<LaunchFormat> emit) {
  ASSIGN_OR_RETURN(const Question question, Ask(task, nullptr, {}));
  const MappingProblem& problem = question.problem;
  ASSIGN_OR_RETURN(const Mapping mapping,
                   MappingOf(*problem.places, problem.rank_count(), positions));
  EvaluationView result;
  result.before = question.before;
  result.fabric_version = question.fabric_version;
  ASSIGN_OR_RETURN(result.after, Measure(problem, mapping));
  result.score = Score(problem.objective, result.after, question.before);
  ASSIGN_OR_RETURN(result.busiest, FindBusyLinks(problem, mapping, kBusiestLinks));
  if (emit.has_value()) {
    ASSIGN_OR_RETURN(
        result.launch_text,
        LaunchText(*emit, HostsOfSlots(problem),
                   positions.empty() ? AssignSlots(*problem.places, mapping) : positions));
  }
  return result;
}

absl::StatusOr<ProblemView> RankMapper::Problem(const MappingTask& task) {
  ASSIGN_OR_RETURN(const Question question, Ask(task, nullptr, {}));
  const MappingProblem& problem = question.problem;
  const size_t places = std::min(problem.places->count(), PlainProblem::kMaxSlots);
  ASSIGN_OR_RETURN(
      const MemoryBudget::Share copies,  // one of ours, one on its way
      memory_.Take(2 * sizeof(double) * places * places, "the distances of all places"));
  ProblemView view;
  ASSIGN_OR_RETURN(view.problem, Flatten(problem));
  const Fabric& fabric = *problem.snapshot->fabric;
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    view.host_of_place.emplace_back(
        fabric.host_name(fabric.host(problem.places->endpoint(PlaceIndex(p)))));
  }
  view.fabric_version = question.fabric_version;
  return view;
}

}  // namespace coppice
