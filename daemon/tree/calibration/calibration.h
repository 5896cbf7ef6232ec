// Cost profiles from measured latencies: least squares over the closed forms (Chen 2024, formulas
// (1)-(8); closed_form.h), which are linear in every constant but where a max() of closed_form.h
// changes sides.
//
// One sample is one measured collective, its latency the median of many runs of the slowest member:
//
//   T = init + log_k P * ( (delta or 1) * 2 l + 2 phi(0) + (S_up + S_down) * phi' [+ both S / B]
//                          + k * max(theta + S* gamma, S_up / B) + k * max(c_send, S_down / B) )
//
// Two sums can never be split by latencies of whole trees: delta * l + phi(0) of either type, and
// theta + c_send unless B bounds some samples. So at least two constants must be known from
// elsewhere and fixed; a fit that still is not determined is an error that names what is missing,
// never a guess. delta, B and what the closed forms do not hold (same_host_us, MTU, degree) are
// kept from the base profile.
//
// Knows no files and no command line.
#ifndef COPPICE_DAEMON_TREE_CALIBRATION_CALIBRATION_H_
#define COPPICE_DAEMON_TREE_CALIBRATION_CALIBRATION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

struct LatencySample {
  Operation operation = Operation::kBarrier;
  uint64_t bytes = 0;    // 0 for Barrier; at most 2^40
  uint32_t members = 2;  // 2 to 2^24
  TreeType type = TreeType::kTypeI;
  uint32_t width = 2;  // k, or d of type II: 2 to members
  double us = 0;       // above 0, at most 1e9
  uint32_t line = 0;   // of the text it was read from; 0: none
};

// INVALID_ARGUMENT names the column that is out of the range above.
absl::Status CheckLatencySample(const LatencySample& sample);

// CSV. The first line that says something is the header: operation, bytes, members, type (or "tree
// type", "tree_type"; I or II, 1 or 2), width, microseconds (or us), in any order and case; other
// columns are ignored. Fields may be quoted. Blank lines, lines that begin with #, blanks around
// fields, \r and a byte order mark are skipped. INVALID_ARGUMENT, as "ORIGIN, line L: column C:
// what is wrong": anything else, no sample at all, more than 20,000 samples or 16 MiB. O(text).
absl::StatusOr<std::vector<LatencySample>> ParseLatencySamples(absl::string_view text,
                                                               absl::string_view origin);

// What the fit makes least: the sum of squared residuals in microseconds (Chen states the model's
// error so: at most 0.5 us), or of residuals divided by the measured latency, for samples that span
// orders of magnitude.
enum class ResidualScale : uint8_t { kAbsolute, kRelative };

struct CalibrationOptions {
  CostProfile base;                // starting point, and value of all that is not fitted
  std::vector<std::string> fixed;  // constants kept from base: "link_us", "nic.send_us", or all of
                                   // "nic" or "switch"
  ResidualScale scale = ResidualScale::kAbsolute;
  std::string name = "calibrated";  // of the new profile
};

// Fixes what `text` says: "NAME" at the base's value, "NAME=VALUE" at that one (then also
// mean_route_links and port_gbps, which are never fitted). INVALID_ARGUMENT: no such constant, or
// not a number, 0 or more.
absl::Status FixConstant(absl::string_view text, CalibrationOptions& options);

enum class ConstantState : uint8_t { kFitted, kFixed, kHeldAtZero };
absl::string_view ToString(ConstantState state);  // "fitted", "fixed", "held at zero"

struct FittedConstant {
  std::string name;  // as in a profile's text: "link_us", "nic.match_us"
  double value = 0;
  double standard_error = 0;  // 0 if fixed; if held at zero, that of the value below it
  ConstantState state = ConstantState::kFitted;
};

struct Calibration {
  // is_estimate only if the base is and some constant was fixed; switch_is_measured if the base is
  // or some sample is of type II.
  CostProfile profile;
  std::vector<FittedConstant> constants;  // all twelve, in the order of a profile's text
  std::vector<double> residuals_us;       // [sample] measured - predicted
  double rms_us = 0, worst_us = 0;        // of the residuals; the largest magnitude
  size_t worst_sample = 0;
  double r_squared = 0;            // in microseconds, whatever the scale
  std::vector<size_t> outliers;    // samples; reported, not dropped
  std::vector<std::string> notes;  // what a reader of the result must know, in words
};

// INVALID_ARGUMENT: a sample, a fixed name or the base is wrong; the samples do not determine the
// constants that are not fixed (the message names them, what to measure and what to fix instead),
// are not more than these, or put one significantly below zero (more than three standard errors).
// One that is below zero by less is held at zero and noted. A direction of constants counts as not
// determined if its singular value, columns scaled to unit length, is below 1e-8 of the largest, or
// so small that the residuals leave a share of the latencies open that is larger than these.
// Deterministic. O(samples * constants^2), times the rounds in which a max() changes sides.
absl::StatusOr<Calibration> FitProfile(absl::Span<const LatencySample> samples,
                                       const CalibrationOptions& options);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_CALIBRATION_CALIBRATION_H_
