// The fit: least squares inside an active set for constants that must not be negative.
//
//   settle (sides.h): the constants of least squares, whichever way each max() goes
//   check:  the samples determine them, are more than they, and put none significantly below zero
//   a constant below zero by less: hold it at zero, settle again             at most 12 times
//
// Standard errors: s^2 (J^T W J)^-1 with s^2 = weighted squares / (samples - constants).
#include "daemon/tree/calibration/calibration.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/calibration/advice.h"
#include "daemon/tree/calibration/model.h"
#include "daemon/tree/calibration/sides.h"
#include "daemon/tree/calibration/solver.h"

namespace coppice {
namespace {

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

  Calibration Report() const {
    Calibration result;
    result.profile = point_.profile;
    result.profile.name = options_.name;
    result.profile.is_estimate = options_.base.is_estimate && fixed_.any();
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
  switch (state) {
    case ConstantState::kFitted:
      return "fitted";
    case ConstantState::kFixed:
      return "fixed";
    case ConstantState::kHeldAtZero:
      return "held at zero";
  }
  return "";
}

absl::StatusOr<Calibration> FitProfile(absl::Span<const LatencySample> samples,
                                       const CalibrationOptions& options) {
  ASSIGN_OR_RETURN(const ConstantSet fixed, ConstantsNamed(options.fixed));
  RETURN_IF_ERROR(CheckInputs(samples, options.base));
  return Fit(samples, options, fixed).Run();
}

}  // namespace coppice
