// Congestion-aware refinement over the routes that the fabric uses: the idea of T. Hoefler and M.
// Snir's refinement (ICS 2011, section 3.5), with exchanges that are evaluated from two ranks'
// peers alone and chosen where the worst channel says (congestion.h).
//
// The cost is the problem's objective with the smooth congestion of search/links/traffic_state.h in
// place of the greatest, and where the objective is congestion alone, of equals the one with fewer
// hop-bytes. With traffic shared approximately the search counts even shares, and returns the
// start if by the approximation it was better.
//
// O(steps * peers * length), about 1 to 10 microseconds a step; memory: the tables of
// search/links/traffic_routes.h and O(pairs + channels).
#include "daemon/mapping/algorithm/congestion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/groups/groups.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"

namespace coppice {
namespace {

// Lower is better: by the measures themselves, whatever the search has counted.
absl::StatusOr<std::pair<double, double>> Measured(const MappingProblem& problem,
                                                   const Mapping& mapping,
                                                   const MappingMeasures& present) {
  ASSIGN_OR_RETURN(const MappingMeasures measures, Measure(problem, mapping));
  return std::pair(Score(problem.objective, measures, present), *measures.hop_bytes);
}

absl::StatusOr<Mapped> BetterOf(const MappingProblem& problem, const Mapping& start,
                                const CongestionSearch& search, const CongestionBound& bound) {
  ASSIGN_OR_RETURN(const MappingMeasures present, Measure(problem, problem.present()));
  std::pair before(Score(problem.objective, present, present), *present.hop_bytes);
  if (start != problem.present()) {
    ASSIGN_OR_RETURN(before, Measured(problem, start, present));
  }
  ASSIGN_OR_RETURN(const auto after, Measured(problem, search.best(), present));
  if (after > before) return Mapped{start, "nothing better than the start was found"};
  Mapped mapped{search.best(), ""};
  if (problem.traffic != TrafficModel::kApproximate && search.Reached(bound.value)) {
    mapped.note = absl::StrFormat("proven: no order is below %g, %s", bound.value, bound.reason);
  }
  return mapped;
}

constexpr std::array<double, 6> kHeats = {0.001, 1, 0.1, 0.03, 0.3, 3};
// Hop-bytes beside the congestion lead through large fabrics, most of whose channels say nothing
// of the worst one; on small ones they lead away from the best.
constexpr std::array<double, 2> kSlopes = {1, 0.001};
constexpr uint32_t kPatience = 3;  // times all heats with and without hop-bytes
constexpr double kGain = 0.01;     // of the objective: less is not worth the same heat again

constexpr uint32_t kNobody = TrafficState::kNobody;
constexpr uint32_t kEnoughNear = 8;  // slots: then switches farther off are not looked at
constexpr uint32_t kMaxNear = 64;    // slots kept for a place
constexpr uint32_t kRankTries = 32;  // random ranks asked whether they cross the worst channel
constexpr uint32_t kStepsPerWorst = 128;
constexpr uint32_t kStepsPerPlaces = 64;

double Share(double weight, double present) { return present > 0 ? weight / present : weight; }

}  // namespace

absl::StatusOr<Mapped> RunCongestion(const MappingProblem& problem, const Mapping& start,
                                     const MethodOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(CongestionLine line, CongestionLine::Make(problem, start,
                                                             {.seed = options.seed,
                                                              .threads = options.threads,
                                                              .starts = options.Is("starts"),
                                                              .cuts = options.Count("cuts")}));
  const uint32_t rounds = options.Count("rounds");
  // Nothing that could stop early needs it.
  const CongestionBound bound = rounds > 0 ? FindCongestionBound(problem) : CongestionBound();
  line.Begin(control);
  for (uint32_t r = 0; r < rounds && !control.stopped(); ++r) {
    if (line.Reached(bound.value)) break;
    line.Anneal(bound.value, control);
  }
  return BetterOf(problem, start, line, bound);
}

bool CongestionLine::converged() const {
  return stale_ >= kPatience * kHeats.size() * kSlopes.size() && done_ >= 3 * done_at_gain_;
}

absl::StatusOr<CongestionLine> CongestionLine::Make(const MappingProblem& problem,
                                                    const Mapping& start, const Options& options) {
  ASSIGN_OR_RETURN(CongestionSearch search, CongestionSearch::Make(problem, start, options.seed));
  return CongestionLine(problem, start, options, std::move(search));
}

CongestionLine::CongestionLine(const MappingProblem& problem, const Mapping& start,
                               const Options& options, CongestionSearch search)
    : CongestionSearch(std::move(search)),
      problem_(problem),
      start_(start),
      options_(options),
      steps_(FirstSteps(problem)) {}

void CongestionLine::Begin(const SearchControl& control) {
  if (options_.starts) VisitStarts(control);
  if (options_.cuts > 0) VisitCuts(control);
}

void CongestionLine::VisitStarts(const SearchControl& control) {
  const AlgorithmOptions inner = {options_.seed, options_.threads, {}};
  for (const char* method : {"recursive", "multicore", "multisection", "greedy"}) {
    if (control.stopped()) return;
    const absl::StatusOr<Mapped> mapped =
        (*FindMappingAlgorithm(method))->Run(problem_, start_, inner, control);
    if (mapped.ok()) Visit(mapped->mapping);  // what a method refuses is not a start
  }
}

// By several seeds.
void CongestionLine::VisitCuts(const SearchControl& control) {
  const PlaceGroups groups = GroupByCapacity(problem_);
  const WeightedGraph graph = GraphOf(*problem_.pattern);
  for (uint32_t cut = 0; cut < options_.cuts && !control.stopped(); ++cut) {
    const uint64_t seed = options_.seed + cut;
    const absl::StatusOr<Seats> seats =
        Multisect(graph, groups, {.seed = seed, .pack = seed % 2 == 1, .cycles = 1}, control);
    if (!seats.ok()) return;
    Visit(MappingOf(*seats));
  }
}

void CongestionLine::Anneal(double enough, const SearchControl& control) {
  const double before = best_value().first, first = kHeats[heat_];
  CongestionSearch::Anneal({.steps = steps_,
                            .first = first,
                            .last = std::min(first, 0.1) * 0.01,
                            .slope = kSlopes[slope_]},
                           enough, control);
  done_ += steps_;
  ++stale_;
  if (best_value().first < before) {
    stale_ = 0;
    done_at_gain_ = done_;
  }
  if (best_value().first < before * (1 - kGain)) return;
  heat_ = (heat_ + 1) % kHeats.size();
  if (heat_ > 0) return;
  slope_ = 1 - slope_;
  if (slope_ == 0) steps_ *= 2;
}

LinkObjective::LinkObjective(const Objective& objective, const TrafficState::Values& present) {
  const double sum = objective.congestion + objective.hop_bytes + objective.qap_cost;
  congestion_ = Share(objective.congestion / sum, present.congestion);
  hop_bytes_ = Share(objective.hop_bytes / sum, present.hop_bytes);
  qap_cost_ = Share(objective.qap_cost / sum, present.qap_cost);
  slope_ = objective.hop_bytes > 0 || objective.congestion == 0 ? 0.0 : Share(1, present.hop_bytes);
}

CongestionSearch::CongestionSearch(const MappingProblem& problem, TrafficState state,
                                   LinkObjective objective, uint64_t seed)
    : problem_(problem), state_(std::move(state)), objective_(objective), random_(seed) {
  place_of_channel_.assign(problem.snapshot->fabric->channel_count(), kNobody);
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    if (state_.routes().leaf(p) == TrafficRoutes::kNoSwitch) continue;
    place_of_channel_[state_.routes().uplink(p)] = p;
    place_of_channel_[state_.routes().uplink(p) ^ 1] = p;
  }
  shared_places_ = problem.places->slot_count() > problem.places->count();
  FindNear();
  best_ = state_.mapping();
  TakeDown(state_.Now());
  best_smooth_ = objective_.Smooth(state_.Now(), slope_);
}

absl::StatusOr<CongestionSearch> CongestionSearch::Make(const MappingProblem& problem,
                                                        const Mapping& start, uint64_t seed) {
  const bool with_qap_cost = problem.objective.qap_cost > 0;
  ASSIGN_OR_RETURN(TrafficState state,
                   TrafficState::Make(problem, problem.present(), with_qap_cost));
  const LinkObjective objective(problem.objective, state.Now());
  if (start != state.mapping()) state.Assign(start);
  return CongestionSearch(problem, std::move(state), objective, seed);
}

// The slots of the place's leaf switch, then those of the switches around it, ring by ring.
void CongestionSearch::FindNear() {
  const Places& places = *problem_.places;
  LeafRings rings(*problem_.snapshot->fabric, places);
  std::vector<std::vector<uint32_t>> slots(rings.count());  // [leaf switch]
  std::vector<uint32_t> weights(rings.count(), 0);
  for (uint32_t s = 0; s < places.slot_count(); ++s) {
    const uint32_t unit = rings.unit_of(places.place_of_slot(s).value());
    if (unit == LeafRings::kNobody) continue;
    slots[unit].push_back(s);
    ++weights[unit];
  }
  std::vector<uint32_t> ends = {0};
  for (uint32_t unit = 0; unit < rings.count(); ++unit) {
    for (const uint32_t near : rings.Around(unit, weights, kEnoughNear)) {
      near_.insert(near_.end(), slots[near].begin(), slots[near].end());
    }
    near_.resize(std::min<size_t>(near_.size(), ends.back() + kMaxNear));
    ends.push_back(static_cast<uint32_t>(near_.size()));
  }
  for (uint32_t p = 0; p < places.count(); ++p) {
    const uint32_t unit = rings.unit_of(p);
    near_begin_.push_back(unit == LeafRings::kNobody ? 0 : ends[unit]);
    near_begin_.push_back(unit == LeafRings::kNobody ? 0 : ends[unit + 1]);
  }
}

void CongestionSearch::Visit(const Mapping& mapping) {
  state_.Assign(mapping);
  const TrafficState::Values now = state_.Now();
  if (!IsBetter(now)) return;
  best_ = mapping;
  TakeDown(now);
  best_smooth_ = objective_.Smooth(now, slope_);
  offered_ = false;
}

bool CongestionSearch::Crosses(uint32_t rank, uint32_t channel) {
  bool crosses = false;
  const uint32_t here = state_.mapping()[rank].value();
  for (const Exchange& exchange : problem_.pattern->exchanges(rank)) {
    const auto look = [&](uint32_t c, double) { crosses |= c == channel; };
    const uint32_t peer = state_.mapping()[exchange.peer].value();
    if (exchange.out_bytes > 0) state_.routes().ForEachChannel(here, peer, look);
    if (exchange.in_bytes > 0) state_.routes().ForEachChannel(peer, here, look);
    if (crosses) return true;
  }
  return false;
}

// The worst channel, and the ranks whose bytes cross it: those of its place, or of a sample.
void CongestionSearch::FindWorst() {
  worst_ = state_.MostCongested();
  over_worst_.clear();
  if (worst_ == kNoChannel) return;
  const uint32_t place = place_of_channel_[worst_.value()];
  if (place != kNobody) {
    for (const uint32_t slot : problem_.places->slots(PlaceIndex(place))) {
      if (state_.rank_in(slot) != kNobody) over_worst_.push_back(state_.rank_in(slot));
    }
    return;
  }
  for (uint32_t i = 0; i < kRankTries; ++i) {
    const uint32_t rank = random_.Below(problem_.rank_count());
    if (Crosses(rank, worst_.value())) over_worst_.push_back(rank);
  }
}

// Any rank, if none is known.
uint32_t CongestionSearch::RankOverWorst() {
  if (over_worst_.empty()) return random_.Below(problem_.rank_count());
  return over_worst_[random_.Below(static_cast<uint32_t>(over_worst_.size()))];
}

bool CongestionSearch::Propose(uint32_t& rank, uint32_t& slot) {
  const uint64_t bits = random_();
  rank = (bits & 1) != 0 ? RankOverWorst() : random_.Below(problem_.rank_count());
  const absl::Span<const Exchange> peers = problem_.pattern->exchanges(rank);
  slot = random_.Below(problem_.places->slot_count());
  if ((bits & 6) != 0 && !peers.empty()) {
    const uint32_t peer = peers[random_.Below(static_cast<uint32_t>(peers.size()))].peer;
    const PlaceIndex place = state_.mapping()[peer];
    const absl::Span<const uint32_t> same = problem_.places->slots(place);
    const uint32_t begin = near_begin_[2 * place.value()];
    const uint32_t size = near_begin_[2 * place.value() + 1] - begin;
    if ((bits & 8) != 0 && same.size() > 1) {
      slot = same[random_.Below(static_cast<uint32_t>(same.size()))];
    } else if (size > 0) {
      slot = near_[begin + random_.Below(size)];
    }
  }
  return problem_.places->place_of_slot(slot) != state_.mapping()[rank];
}

double CongestionSearch::MeanChange() {
  const double now = objective_.Smooth(state_.Now(), slope_);
  double sum = 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t rank, slot;
    if (!Propose(rank, slot)) continue;
    const double change = std::abs(objective_.Smooth(state_.Try(rank, slot), slope_) - now);
    if (!std::isfinite(change)) continue;
    sum += change;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

bool CongestionSearch::IsBetter(const TrafficState::Values& now) const {
  const LinkObjective::Value value = objective_.Of(now);
  if (!prefers_smooth_) return value < best_value_;
  return MappingStanding{value.first, now.soft, value.second}.IsBetterThan(
      {best_value_.first, best_soft_, best_value_.second});
}

void CongestionSearch::TakeDown(const TrafficState::Values& now) {
  const LinkObjective::Value value = objective_.Of(now);
  const bool equal = value.first == best_value_.first;
  best_soft_ = equal ? std::min(best_soft_, now.soft) : now.soft;
  best_value_ = value;
  best_congestion_ = now.congestion;
}

// Takes a better mapping down. `smooth` is that of the mapping as it is.
void CongestionSearch::Look(double smooth) {
  if (smooth > best_smooth_ * 1.02) return;  // far from the best: not worth a look at the greatest
  const TrafficState::Values now = state_.Now();
  if (!IsBetter(now)) return;
  TakeDown(now);
  best_smooth_ = smooth;
  for (const uint32_t r : moved_) best_[r] = state_.mapping()[r];
  moved_.clear();
  offered_ = false;
}

bool CongestionSearch::Accepts(double smooth, double next, double temperature) {
  return next <= smooth || next - smooth < -temperature * std::log(1 - random_.Unit());
}

// What was tried becomes true.
void CongestionSearch::Take(uint32_t rank, uint32_t slot) {
  moved_.push_back(rank);
  if (state_.rank_in(slot) != kNobody) moved_.push_back(state_.rank_in(slot));
  state_.Commit();
}

// All ranks of a random rank's place against those of another place of as many slots, one after
// the other, and back if it is not accepted. What it comes to.
double CongestionSearch::ExchangePlaces(double smooth, double temperature) {
  const Places& places = *problem_.places;
  const PlaceIndex a = state_.mapping()[RankOverWorst()];
  const PlaceIndex b = places.place_of_slot(random_.Below(places.slot_count()));
  if (a == b || places.capacity(a) != places.capacity(b)) return smooth;
  double next = smooth;
  for (const bool back : {false, true}) {
    for (uint32_t i = 0; i < places.capacity(a); ++i) {
      const uint32_t slots[2] = {places.slots(a)[i], places.slots(b)[i]};
      const uint32_t first = state_.rank_in(slots[0]), second = state_.rank_in(slots[1]);
      if (first == kNobody && second == kNobody) continue;
      next = objective_.Smooth(
          first != kNobody ? state_.Try(first, slots[1]) : state_.Try(second, slots[0]), slope_);
      Take(first != kNobody ? first : second, slots[first != kNobody ? 1 : 0]);
    }
    if (back || Accepts(smooth, next, temperature)) break;
  }
  return next;
}

void CongestionSearch::Anneal(const AnnealOptions& options, double enough,
                              const SearchControl& control) {
  if (state_.mapping() != best_) state_.Assign(best_);
  moved_.clear();
  slope_ = options.slope;
  best_smooth_ = objective_.Smooth(state_.Now(), slope_);
  FindWorst();
  if (worst_ == kNoChannel || problem_.places->count() < 2 || Reached(enough)) return;
  const double mean = MeanChange();
  double temperature = mean * options.first;
  const double cooling =
      std::pow(options.last / options.first, static_cast<double>(kStepsPerWorst) / options.steps);
  double smooth = objective_.Smooth(state_.Now(), slope_);
  for (uint64_t step = 0; step < options.steps; ++step) {
    if (step % 16 == 0 && (control.stopped() || Reached(enough))) break;
    if (step % kStepsPerWorst == 0) {
      FindWorst();
      smooth = objective_.Smooth(state_.Now(), slope_);
      temperature *= cooling;
    }
    if (shared_places_ && step % kStepsPerPlaces == 0) {
      smooth = ExchangePlaces(smooth, temperature);
      Look(smooth);
      continue;
    }
    uint32_t rank, slot;
    if (!Propose(rank, slot)) continue;
    const double next = objective_.Smooth(state_.Try(rank, slot), slope_);
    if (!Accepts(smooth, next, temperature)) continue;
    Take(rank, slot);
    smooth = next;
    Look(smooth);
  }
  if (!offered_) control.Offer(best_);
  offered_ = true;
}

}  // namespace coppice
