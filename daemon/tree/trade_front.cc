#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/tree/trade.h"

namespace coppice {
namespace {

constexpr double kAlike = 1 + 1e-9;  // as in type I's choice: sums in another order differ by less

bool KeepsEntries(const TradeFigures& figures, const TradePolicy& policy) {
  return !policy.max_entries || figures.entries <= *policy.max_entries;
}

bool KeepsLink(const TradeFigures& figures, const TradePolicy& policy) {
  return policy.max_busiest_link_us <= 0 ||
         figures.busiest_link_us <= policy.max_busiest_link_us * kAlike;
}

// Over all points for which `keeps` holds.
template <class Keeps, class Figure>
double Least(absl::Span<const TradeFront::Point> points, Keeps keeps, Figure figure) {
  double least = std::numeric_limits<double>::infinity();
  for (const TradeFront::Point& point : points) {
    if (keeps(point.figures)) least = std::min<double>(least, figure(point.figures));
  }
  return least;
}

absl::Status NothingIsWithin(absl::Span<const TradeFront::Point> points,
                             const TradePolicy& policy) {
  const auto any = [](const TradeFigures&) { return true; };
  const auto entries = [](const TradeFigures& f) { return double{1} * f.entries; };
  const auto link = [](const TradeFigures& f) { return f.busiest_link_us; };
  const double least_entries = Least(points, any, entries);
  if (policy.max_entries && least_entries > *policy.max_entries) {
    return absl::FailedPreconditionError(absl::StrCat(
        "policy: no tree takes ", *policy.max_entries, " entries or fewer; the least is ",
        least_entries, ": raise the limit, or leave the type to the planner"));
  }
  const double least_link = Least(points, any, link);
  if (policy.max_busiest_link_us > 0 && least_link > policy.max_busiest_link_us * kAlike) {
    return absl::FailedPreconditionError(
        absl::StrFormat("policy: no tree keeps its busiest link to %.6g us; the least is %.6g "
                        "us: raise the limit",
                        policy.max_busiest_link_us, least_link));
  }
  const double together = Least(
      points, [&](const TradeFigures& f) { return KeepsEntries(f, policy); }, link);
  return absl::FailedPreconditionError(absl::StrFormat(
      "policy: no tree keeps both limits; with at most %d entries the busiest link is busy "
      "for %.6g us at least: raise one of them",
      *policy.max_entries, together));
}

// Least and greatest of one figure, for scaling.
struct Range {
  double least = std::numeric_limits<double>::infinity(), greatest = 0;
  void Widen(double value) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  double Scale(double value) const {
    return greatest > least * kAlike ? (value - least) / (greatest - least) : 0;
  }
};

}  // namespace

bool IsNoWorse(const TradeFigures& a, const TradeFigures& b) {
  return a.entries <= b.entries && a.total_us <= b.total_us * kAlike &&
         a.busiest_link_us <= b.busiest_link_us * kAlike;
}

bool TradeFront::Offer(const TradeFigures& figures, size_t id) {
  for (const Point& point : points_) {
    if (IsNoWorse(point.figures, figures)) return false;
  }
  std::erase_if(points_, [&](const Point& point) { return IsNoWorse(figures, point.figures); });
  points_.push_back({figures, id});
  return true;
}

void TradeFront::Sort() {
  absl::c_stable_sort(points_, [](const Point& a, const Point& b) {
    return std::tie(a.figures.total_us, a.figures.entries) <
           std::tie(b.figures.total_us, b.figures.entries);
  });
}

absl::StatusOr<size_t> ChooseByPolicy(absl::Span<const TradeFront::Point> points,
                                      const TradePolicy& policy) {
  const auto keeps = [&](const TradeFigures& figures) {
    return KeepsEntries(figures, policy) && KeepsLink(figures, policy);
  };
  Range us, entries, link;
  for (const TradeFront::Point& point : points) {
    if (!keeps(point.figures)) continue;
    us.Widen(point.figures.total_us);
    entries.Widen(point.figures.entries);
    link.Widen(point.figures.busiest_link_us);
  }
  size_t best = points.size();
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < points.size(); ++i) {
    const TradeFigures& figures = points[i].figures;
    if (!keeps(figures)) continue;
    // Divided, so that no weight is too large to be summed.
    const double weights = std::max({policy.latency, policy.entries, policy.link_load});
    const double sum = policy.latency / weights * us.Scale(figures.total_us) +
                       policy.entries / weights * entries.Scale(figures.entries) +
                       policy.link_load / weights * link.Scale(figures.busiest_link_us);
    if (sum >= least) continue;
    least = sum;
    best = i;
  }
  if (best == points.size()) return NothingIsWithin(points, policy);
  return best;
}

}  // namespace coppice
