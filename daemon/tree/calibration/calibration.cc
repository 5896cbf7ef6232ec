// The fit: least squares inside an active set for constants that must not be negative.
//
//   settle (model.h): the constants of least squares, whichever way each max() goes
//   check:  the samples determine them, are more than they, and put none significantly below zero
//   a constant below zero by less: hold it at zero, settle again             at most 12 times
//
// Standard errors: s^2 (J^T W J)^-1 with s^2 = weighted squares / (samples - constants).
#include "daemon/tree/calibration/calibration.h"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/calibration/model.h"
#include "daemon/tree/calibration/solver.h"

namespace coppice {
namespace {

// Why samples do not determine the constants, and what would: an error that a person with a cluster
// can act on.
//
// What to measure is found by trying: imagined samples (another width, another size, ...) are added
// to the rows of the real ones, and the fewest kinds of them that leave the fewest directions open
// are named. What stays open then, no latency of a whole tree can tell. What to fix instead is a
// basis of the real rows' columns (a matroid, so the greedy choice in order of preference is best).

// Kinds of samples that may be missing, most easily measured first. A set of them is a mask.
enum Variation : uint32_t { kWidths, kMembers, kSizes, kReduce, kBcast, kOtherType, kVariations };

// Constants that are worth fitting, before those that data sheets and single messages tell.
constexpr size_t kPreference[] = {kNicConstants + kForward,
                                  kNicConstants + kMatch,
                                  kInitConstant,
                                  kNicConstants + kReducePerByte,
                                  kNicConstants + kForwardPerByte,
                                  kSwitchConstants + kForward,
                                  kSwitchConstants + kMatch,
                                  kSwitchConstants + kReducePerByte,
                                  kSwitchConstants + kForwardPerByte,
                                  kLinkConstant,
                                  kNicConstants + kSend,
                                  kSwitchConstants + kSend};

absl::string_view Describe(uint32_t variation, TreeType type) {
  constexpr absl::string_view kVariationNames[] = {"a second width", "a second number of members",
                                                   "a second size", "reduce or allreduce", "bcast"};
  if (variation < std::size(kVariationNames)) return kVariationNames[variation];
  return type == TreeType::kTypeI ? "type II trees" : "type I trees";
}

// Some different samples, spread over all, that stand for what could be measured beside them.
std::vector<LatencySample> Representatives(absl::Span<const LatencySample> samples) {
  constexpr size_t kMax = 48;
  const auto key = [](const LatencySample& s) {
    return std::make_tuple(s.type, s.operation, s.bytes, s.members, s.width);
  };
  std::vector<LatencySample> different(samples.begin(), samples.end());
  std::stable_sort(different.begin(), different.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  different.erase(std::unique(different.begin(), different.end(),
                              [&](const auto& a, const auto& b) { return key(a) == key(b); }),
                  different.end());
  std::vector<LatencySample> chosen;
  const size_t count = std::min(kMax, different.size());
  for (size_t i = 0; i < count; ++i) chosen.push_back(different[i * different.size() / count]);
  return chosen;
}

// The same sample with one thing changed; none if it cannot be.
std::vector<LatencySample> Varied(LatencySample sample, uint32_t variation) {
  constexpr uint64_t kShort = 64, kLong = 65536;  // a packet, and a message that fills the port
  const uint32_t width = sample.width;
  switch (variation) {
    case kWidths:
      if (width < 4 && width * 4 > sample.members) return {};
      sample.width = width * 4 <= sample.members ? width * 4 : width / 2;
      return {sample};
    case kMembers:
      sample.members = std::min(sample.members, uint32_t{1} << 20) * 8;
      return {sample};
    case kSizes: {
      if (sample.operation == Operation::kBarrier) return {};
      LatencySample longer = sample;
      sample.bytes = sample.bytes == kShort ? 2 * kShort : kShort;
      longer.bytes = longer.bytes == kLong ? 2 * kLong : kLong;
      return {sample, longer};
    }
    case kReduce:
    case kBcast:
      sample.operation = variation == kReduce ? Operation::kReduce : Operation::kBcast;
      sample.bytes = std::max(sample.bytes, kShort);
      return {sample};
    default:
      sample.type = sample.type == TreeType::kTypeI ? TreeType::kTypeII : TreeType::kTypeI;
      return {sample};
  }
}

class Advice {
 public:
  Advice(const CostProfile& profile, absl::Span<const LatencySample> samples,
         const Unknowns& unknowns, ResidualScale scale, double tolerance)
      : profile_(profile),
        samples_(samples),
        unknowns_(unknowns),
        scale_(scale),
        tolerance_(tolerance),
        real_(WeightedRows(profile, samples, SidesAt(profile, samples), unknowns, scale)),
        triangle_(Reduce(real_, Eigen::VectorXd())),
        open_(UndeterminedDirections(triangle_, tolerance)) {}

  absl::Status Check() const {
    if (open_.cols() == 0) return absl::OkStatus();
    std::vector<std::string> sentences = {"the samples do not determine all constants"};
    ConstantSet unseen;
    for (size_t j = 0; j < unknowns_.size(); ++j) unseen[unknowns_[j]] = real_.col(j).isZero(0);
    if (unseen.any()) sentences.push_back(absl::StrCat("none depends on ", NamesOf(unseen)));
    const std::string together = Groups(open_);
    if (!together.empty()) sentences.push_back(absl::StrCat("cannot be told apart: ", together));
    AddMeasurements(sentences);
    sentences.push_back(absl::StrCat("fixing ", NamesOf(Dispensable()),
                                     " leaves constants that these samples determine"));
    return absl::InvalidArgumentError(absl::StrJoin(sentences, "; "));
  }

 private:
  // What the best set of imagined samples would settle, and what even it leaves.
  void AddMeasurements(std::vector<std::string>& sentences) const {
    uint32_t best = 0;
    Eigen::MatrixXd left = open_;
    for (uint32_t mask = 1; mask < (1U << kVariations); ++mask) {
      const Eigen::MatrixXd open = OpenWith(mask);
      const bool is_smaller = std::popcount(mask) < std::popcount(best);
      if (open.cols() < left.cols() || (open.cols() == left.cols() && best != 0 && is_smaller)) {
        best = mask;
        left = open;
      }
    }
    std::vector<absl::string_view> wanted;
    for (uint32_t v = 0; v < kVariations; ++v) {
      if ((best >> v & 1) != 0) wanted.push_back(Describe(v, samples_.front().type));
    }
    if (!wanted.empty()) {
      sentences.push_back(absl::StrCat("measure ", absl::StrJoin(wanted, " and "), " as well"));
    }
    const std::string never = Groups(left);
    if (!never.empty()) {
      sentences.push_back(
          absl::StrCat("no latencies of whole trees tell apart ", never, ", so fix some of them"));
    }
  }

  // Open directions if the variations of `mask`, alone and combined, were measured as thoroughly as
  // the real samples.
  Eigen::MatrixXd OpenWith(uint32_t mask) const {
    std::vector<LatencySample> imagined = Representatives(samples_);
    for (uint32_t v = 0; v < kVariations; ++v) {
      if ((mask >> v & 1) == 0) continue;
      const size_t count = imagined.size();
      for (size_t i = 0; i < count; ++i) {
        for (const LatencySample& sample : Varied(imagined[i], v)) imagined.push_back(sample);
      }
    }
    for (LatencySample& sample : imagined) {
      sample.us = std::max(PredictUs(profile_, sample), 1e-3);
    }
    const double times = std::sqrt(
        std::max(1.0, static_cast<double>(samples_.size()) / static_cast<double>(imagined.size())));
    const Eigen::MatrixXd more =
        WeightedRows(profile_, imagined, SidesAt(profile_, imagined), unknowns_, scale_);
    Eigen::MatrixXd rows(real_.cols() + more.rows(), real_.cols());
    rows << Rows(triangle_), times * more;
    return UndeterminedDirections(Reduce(std::move(rows), Eigen::VectorXd()), tolerance_);
  }

  // The constants that the open directions tie together, a list for each tie. Two constants are
  // tied if the projection on the open directions maps one on the other.
  std::string Groups(const Eigen::MatrixXd& open) const {
    constexpr double kTied = 1e-3;
    const Eigen::MatrixXd projection = open * open.transpose();
    const size_t count = unknowns_.size();
    std::vector<bool> seen(count);
    std::vector<std::string> groups;
    for (size_t first = 0; first < count; ++first) {
      std::vector<size_t> tied = {first};
      ConstantSet names;
      for (size_t i = 0; i < tied.size(); ++i) {
        names.set(unknowns_[tied[i]]);
        seen[tied[i]] = true;
        for (size_t j = 0; j < count; ++j) {
          if (seen[j] || std::abs(projection(tied[i], j)) < kTied) continue;
          seen[j] = true;
          tied.push_back(j);
        }
      }
      if (names.count() > 1) groups.push_back(absl::StrCat("(", NamesOf(names), ")"));
    }
    return absl::StrJoin(groups, ", ");
  }

  // The unknowns beside a largest set that the real samples determine.
  ConstantSet Dispensable() const {
    ConstantSet dispensable;
    const Eigen::MatrixXd rows = Rows(triangle_);
    std::vector<Eigen::Index> kept;
    for (const size_t constant : kPreference) {
      const auto at = std::find(unknowns_.begin(), unknowns_.end(), constant);
      if (at == unknowns_.end()) continue;
      kept.push_back(at - unknowns_.begin());
      const Triangle triangle = Reduce(rows(Eigen::all, kept), Eigen::VectorXd());
      if (UndeterminedDirections(triangle, tolerance_).cols() == 0) continue;
      kept.pop_back();
      dispensable.set(constant);
    }
    return dispensable;
  }

  const CostProfile& profile_;
  absl::Span<const LatencySample> samples_;
  const Unknowns& unknowns_;
  ResidualScale scale_;
  double tolerance_;
  Eigen::MatrixXd real_;
  Triangle triangle_;
  Eigen::MatrixXd open_;
};

// INVALID_ARGUMENT, if `samples` leave directions of `unknowns` open at `profile` (see
// UndeterminedDirections); else OK. `samples` must not be empty.
absl::Status CheckDetermined(const CostProfile& profile, absl::Span<const LatencySample> samples,
                             const Unknowns& unknowns, ResidualScale scale, double tolerance) {
  return Advice(profile, samples, unknowns, scale, tolerance).Check();
}

constexpr double kSignificant = 3;     // standard errors below zero: 1 of 700 fits by chance
constexpr double kRounding = 1e-9;     // share of the latencies that is taken for rounding
constexpr double kOutlier = 4;         // times the spread that the median residual tells
constexpr double kModelErrorUs = 0.5;  // Chen 2024, 6: model and measurement differ by at most this

absl::Status CheckInputs(absl::Span<const LatencySample> samples, const CostProfile& base) {
  if (samples.empty()) return absl::InvalidArgumentError("no samples to fit a profile to");
  for (size_t i = 0; i < samples.size(); ++i) {
    RETURN_IF_ERROR(Annotate(CheckLatencySample(samples[i]), absl::StrCat("sample ", i + 1)));
  }
  const auto check = [&](absl::string_view name, double value) {
    if (std::isfinite(value) && value >= 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("base profile ", base.name, ": ", name, " is ",
                                                   value, "; it must be a number, 0 or more"));
  };
  RETURN_IF_ERROR(check("mean_route_links", base.mean_route_links));
  RETURN_IF_ERROR(check("port_gbps", base.port_gbps));
  for (size_t c = 0; c < kConstantCount; ++c) {
    RETURN_IF_ERROR(check(ConstantName(c), ConstantIn(base, c)));
  }
  return absl::OkStatus();
}

// One fit: the samples, the constants as they come to stand, and the report.
class Fit {
 public:
  Fit(absl::Span<const LatencySample> samples, const CalibrationOptions& options, ConstantSet fixed)
      : samples_(samples), options_(options), fixed_(fixed) {
    size_t i = 0;
    latencies_.resize(static_cast<Eigen::Index>(samples.size()));
    for (double& weighted : latencies_) {
      weighted = WeightOf(samples[i], options.scale) * samples[i].us;
      ++i;
    }
  }

  absl::StatusOr<Calibration> Run() {
    CostProfile start = options_.base;
    bool again = true;
    while (again) {
      problem_ = {.samples = samples_, .unknowns = {}, .scale = options_.scale};
      for (size_t c = 0; c < kConstantCount; ++c) {
        if (!fixed_[c] && !held_[c]) problem_.unknowns.push_back(c);
      }
      if (problem_.unknowns.empty()) return NothingToFit();
      point_ = Settle(problem_, start);
      RETURN_IF_ERROR(CheckPoint());
      ASSIGN_OR_RETURN(again, HoldOne());
      start = point_.profile;
    }
    return Report();
  }

 private:
  absl::Status NothingToFit() const {
    return absl::InvalidArgumentError(
        held_.any() ? absl::StrCat("the samples put every constant at or below zero (",
                                   NamesOf(held_), "); check their latencies")
                    : std::string("every constant is fixed; leave some to be fitted"));
  }

  // The samples determine the constants, with some to spare. Sets errors_.
  absl::Status CheckPoint() {
    const auto check = [&](double tolerance) {
      return CheckDetermined(point_.profile, samples_, problem_.unknowns, options_.scale,
                             tolerance);
    };
    RETURN_IF_ERROR(check(0));
    const size_t unknowns = problem_.unknowns.size();
    if (samples_.size() <= unknowns) {
      return absl::InvalidArgumentError(
          absl::StrCat(samples_.size(), " samples for ", unknowns,
                       " constants leave nothing to tell how well these fit; measure at least ",
                       unknowns + 1, ", or fix some of ", NamesOf(AsSet(problem_.unknowns))));
    }
    const double spread =
        std::sqrt(point_.squares / static_cast<double>(samples_.size() - unknowns));
    const absl::Status status = check(spread / latencies_.norm());
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the samples scatter too much (%.3g %s around the best fit): %s", spread,
          options_.scale == ResidualScale::kAbsolute ? "us" : "of the latency", status.message()));
    }
    rows_ = WeightedRows(point_.profile, samples_, SidesAt(point_.profile, samples_),
                         problem_.unknowns, options_.scale);
    triangle_ = Reduce(rows_, Eigen::VectorXd());
    const Eigen::VectorXd errors = spread * InverseDiagonal(triangle_).cwiseSqrt();
    for (size_t j = 0; j < unknowns; ++j) {
      errors_[problem_.unknowns[j]] = errors[static_cast<Eigen::Index>(j)];
    }
    return absl::OkStatus();
  }

  // True if a constant below zero is now held at zero.
  absl::StatusOr<bool> HoldOne() {
    size_t lowest = kConstantCount;
    double depth = 0;
    for (size_t j = 0; j < problem_.unknowns.size(); ++j) {
      const size_t c = problem_.unknowns[j];
      const double value = ConstantIn(point_.profile, c);
      const double share =
          -value * triangle_.length[static_cast<Eigen::Index>(j)] / latencies_.norm();
      if (share > kRounding && value < -kSignificant * errors_[c]) return Negative(c, value);
      if (share > depth) {
        depth = share;
        lowest = c;
      }
    }
    if (lowest == kConstantCount) return false;
    if (depth > kRounding) {
      notes_.push_back(absl::StrFormat("%s came out at %.4g +/- %.2g and is held at zero",
                                       ConstantName(lowest), ConstantIn(point_.profile, lowest),
                                       errors_[lowest]));
    }
    held_.set(lowest);
    ConstantIn(point_.profile, lowest) = 0;
    return true;
  }

  absl::Status Negative(size_t constant, double value) const {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s comes out at %.4g +/- %.2g, but no constant is below zero: the samples contradict the "
        "cost model, or what is fixed (%s) or kept of the base (mean_route_links %g, port_gbps %g) "
        "is wrong; check these, or fix %s",
        ConstantName(constant), value, errors_[constant],
        fixed_.any() ? NamesOf(fixed_) : std::string("nothing"), point_.profile.mean_route_links,
        point_.profile.port_gbps, ConstantName(constant)));
  }

  bool AreSwitchesMeasured() const {
    return std::any_of(samples_.begin(), samples_.end(), [](const LatencySample& sample) {
      return sample.type == TreeType::kTypeII;
    });
  }

  Calibration Report() const {
    Calibration result;
    result.profile = point_.profile;
    result.profile.name = options_.name;
    result.profile.is_estimate = options_.base.is_estimate && fixed_.any();
    result.profile.switch_is_measured = options_.base.switch_is_measured || AreSwitchesMeasured();
    for (size_t c = 0; c < kConstantCount; ++c) {
      result.constants.push_back({.name = std::string(ConstantName(c)),
                                  .value = ConstantIn(result.profile, c),
                                  .standard_error = errors_[c],
                                  .state = fixed_[c]  ? ConstantState::kFixed
                                           : held_[c] ? ConstantState::kHeldAtZero
                                                      : ConstantState::kFitted});
    }
    AddResiduals(result);
    AddOutliers(result);
    AddNotes(result);
    return result;
  }

  void AddResiduals(Calibration& result) const {
    double squares = 0, mean = 0, variation = 0;
    for (const LatencySample& sample : samples_) mean += sample.us;
    mean /= static_cast<double>(samples_.size());
    for (size_t i = 0; i < samples_.size(); ++i) {
      const double residual = samples_[i].us - PredictUs(result.profile, samples_[i]);
      result.residuals_us.push_back(residual);
      squares += residual * residual;
      variation += (samples_[i].us - mean) * (samples_[i].us - mean);
      if (std::abs(residual) <= result.worst_us) continue;
      result.worst_us = std::abs(residual);
      result.worst_sample = i;
    }
    result.rms_us = std::sqrt(squares / static_cast<double>(samples_.size()));
    // Equal latencies leave nothing to explain.
    result.r_squared = variation > 0 ? 1 - squares / variation : 1;
  }

  // Residuals far out of line with their median, each for the freedom that the fit left its sample.
  void AddOutliers(Calibration& result) const {
    const Eigen::VectorXd leverages = Leverages(rows_, triangle_);
    std::vector<double> sizes;
    for (size_t i = 0; i < samples_.size(); ++i) {
      const double freedom = 1 - leverages[static_cast<Eigen::Index>(i)];
      const double residual = WeightOf(samples_[i], options_.scale) * result.residuals_us[i];
      sizes.push_back(freedom > kRounding ? std::abs(residual) / std::sqrt(freedom) : 0);
    }
    std::vector<double> sorted = sizes;
    const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    const double bound = kOutlier * 1.4826 * *middle;  // the deviation whose median this is
    for (size_t i = 0; i < samples_.size(); ++i) {
      const bool is_rounding = std::abs(result.residuals_us[i]) < 1e-6 * samples_[i].us;
      if (sizes[i] > bound && !is_rounding) result.outliers.push_back(i);
    }
  }

  void AddNotes(Calibration& result) const {
    result.notes = notes_;
    if (!point_.at_rest) {
      result.notes.push_back(
          "some samples lie where the port's rate just begins to bound a node's rate; the "
          "constants "
          "are the best that were found, not certainly the best");
    }
    if (result.worst_us > kModelErrorUs) {
      result.notes.push_back(absl::StrFormat(
          "the largest residual, %.3g us, is above %.1f us, the most that the cost model and its "
          "authors' measurements differ",
          result.worst_us, kModelErrorUs));
    }
  }

  static ConstantSet AsSet(const Unknowns& unknowns) {
    ConstantSet set;
    for (const size_t c : unknowns) set.set(c);
    return set;
  }

  absl::Span<const LatencySample> samples_;
  const CalibrationOptions& options_;
  ConstantSet fixed_, held_;
  Eigen::VectorXd latencies_;  // weighted
  Problem problem_;
  Settled point_;
  Eigen::MatrixXd rows_;
  Triangle triangle_;
  std::array<double, kConstantCount> errors_{};
  std::vector<std::string> notes_;
};

}  // namespace

absl::string_view ToString(ConstantState state) {
  constexpr absl::string_view kStateNames[] = {"fitted", "fixed", "held at zero"};
  return kStateNames[static_cast<size_t>(state)];
}

absl::StatusOr<Calibration> FitProfile(absl::Span<const LatencySample> samples,
                                       const CalibrationOptions& options) {
  ASSIGN_OR_RETURN(const ConstantSet fixed, ConstantsNamed(options.fixed));
  RETURN_IF_ERROR(CheckInputs(samples, options.base));
  return Fit(samples, options, fixed).Run();
}

}  // namespace coppice
