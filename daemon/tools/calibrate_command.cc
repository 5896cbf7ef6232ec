// coppice-plan calibrate: a cost profile fitted to measured latencies. What it prints is itself a
// profile, the report in its comments, unless JSON is asked for or the profile goes to a file.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "daemon/base/status_macros.h"
#include "daemon/tools/command.h"
#include "daemon/tools/tree_inputs.h"
#include "daemon/tools/tree_options.h"
#include "daemon/tree/calibration/calibration.h"

namespace coppice {
namespace {

using Json = nlohmann::ordered_json;
using Samples = std::vector<LatencySample>;

struct CalibrateOptions {
  std::string file, base = "hdr", out, name = "calibrated";
  std::vector<std::string> fixed;
  bool relative = false, json = false;
};

bool IsOutlier(const Calibration& fit, size_t sample) {
  return std::binary_search(fit.outliers.begin(), fit.outliers.end(), sample);
}

Json NodeToJson(const NodeCost& node) {
  return {{"forward_us", node.forward_us},
          {"forward_us_per_byte", node.forward_us_per_byte},
          {"match_us", node.match_us},
          {"reduce_us_per_byte", node.reduce_us_per_byte},
          {"send_us", node.send_us}};
}

// The keys of a profile's text.
Json ProfileToJson(const CostProfile& profile) {
  return {{"name", profile.name},
          {"is_estimate", profile.is_estimate},
          {"init_us", profile.init_us},
          {"link_us", profile.link_us},
          {"same_host_us", profile.same_host_us},
          {"mean_route_links", profile.mean_route_links},
          {"port_gbps", profile.port_gbps},
          {"mtu_bytes", profile.mtu_bytes},
          {"header_bytes", profile.header_bytes},
          {"forward_includes_serialisation", profile.forward_includes_serialisation},
          {"nic_degree", profile.nic_degree},
          {"width_tolerance_us", profile.width_tolerance_us},
          {"nic", NodeToJson(profile.nic)},
          {"switch", NodeToJson(profile.switch_)}};
}

Json ToJson(const Samples& samples, const Calibration& fit) {
  Json json = {{"profile", ProfileToJson(fit.profile)},
               {"constants", Json::array()},
               {"samples", samples.size()},
               {"rms_us", fit.rms_us},
               {"worst_us", fit.worst_us},
               {"r_squared", fit.r_squared},
               {"notes", fit.notes},
               {"residuals", Json::array()}};
  for (const FittedConstant& constant : fit.constants) {
    json["constants"].push_back({{"name", constant.name},
                                 {"value", constant.value},
                                 {"standard_error", constant.standard_error},
                                 {"state", std::string(ToString(constant.state))}});
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    const LatencySample& sample = samples[i];
    json["residuals"].push_back({{"line", sample.line},
                                 {"operation", std::string(ToString(sample.operation))},
                                 {"bytes", sample.bytes},
                                 {"members", sample.members},
                                 {"type", std::string(ToString(sample.type))},
                                 {"width", sample.width},
                                 {"microseconds", sample.us},
                                 {"residual_us", fit.residuals_us[i]},
                                 {"outlier", IsOutlier(fit, i)}});
  }
  return json;
}

std::string ToText(const Samples& samples, const Calibration& fit) {
  std::string text = absl::StrFormat("%-26s %13s %13s\n", "CONSTANT", "VALUE", "STD ERROR");
  for (const FittedConstant& constant : fit.constants) {
    const std::string error = constant.state == ConstantState::kFixed
                                  ? std::string("fixed")
                                  : absl::StrFormat("%.3g", constant.standard_error);
    absl::StrAppendFormat(&text, "%-26s %13.6g %13s%s\n", constant.name, constant.value, error,
                          constant.state == ConstantState::kHeldAtZero ? "  held at zero" : "");
  }
  absl::StrAppendFormat(&text,
                        "\n%d samples; residuals: rms %.4g us, largest %.4g us (line %d), R^2 "
                        "%.6f\n",
                        samples.size(), fit.rms_us, fit.worst_us, samples[fit.worst_sample].line,
                        fit.r_squared);
  for (const std::string& note : fit.notes) absl::StrAppend(&text, "note: ", note, "\n");
  absl::StrAppendFormat(&text, "\n%6s %-10s %9s %8s %-4s %6s %12s %12s\n", "LINE", "OPERATION",
                        "BYTES", "MEMBERS", "TYPE", "WIDTH", "MEASURED US", "RESIDUAL US");
  for (size_t i = 0; i < samples.size(); ++i) {
    const LatencySample& sample = samples[i];
    absl::StrAppendFormat(&text, "%6d %-10s %9d %8d %-4s %6d %12.3f %12.3f%s\n", sample.line,
                          ToString(sample.operation), sample.bytes, sample.members,
                          ToString(sample.type), sample.width, sample.us, fit.residuals_us[i],
                          IsOutlier(fit, i) ? "  outlier" : "");
  }
  return text;
}

std::string AsComments(const std::string& text) {
  return absl::StrCat("# ", absl::StrReplaceAll(text, {{"\n", "\n# "}}), "\n\n");
}

absl::StatusOr<CalibrationOptions> FitOptions(const CalibrateOptions& options) {
  CalibrationOptions fit;
  fit.name = options.name;
  fit.scale = options.relative ? ResidualScale::kRelative : ResidualScale::kAbsolute;
  ASSIGN_OR_RETURN(fit.base, LoadProfile(options.base));
  for (const std::string& fixed : options.fixed) {
    RETURN_IF_ERROR(Annotate(FixConstant(fixed, fit), "--fix"));
  }
  return fit;
}

absl::Status RunCalibrate(const CalibrateOptions& options) {
  ASSIGN_OR_RETURN(const CalibrationOptions fit_options, FitOptions(options));
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.file));
  ASSIGN_OR_RETURN(const Samples samples, ParseLatencySamples(text, options.file));
  const absl::StatusOr<Calibration> fit = FitProfile(samples, fit_options);
  if (!fit.ok()) return Annotate(fit.status(), options.file);
  const std::string report = ToText(samples, *fit);
  const std::string profile = absl::StrCat(AsComments(report), ProfileToToml(fit->profile));
  if (!options.out.empty()) RETURN_IF_ERROR(WriteTextFile(options.out, profile));
  if (!options.json) return PrintText(options.out.empty() ? profile : report);
  return PrintText(absl::StrCat(
      ToJson(samples, *fit).dump(1, ' ', false, Json::error_handler_t::replace), "\n"));
}

}  // namespace

void RegisterCalibrateCommand(CLI::App& app, PlanCommand& chosen) {
  CLI::App* const command =
      app.add_subcommand("calibrate", "A cost profile by least squares from measured latencies");
  const auto options = std::make_shared<CalibrateOptions>();
  AddText(*command, "FILE", options->file,
          "CSV with the columns operation, bytes, members, type, width, microseconds; - reads "
          "standard input")
      ->required();
  AddText(*command, "--base", options->base,
          absl::StrCat("where unfitted constants come from: a TOML file or one of ",
                       absl::StrJoin(BuiltInProfileNames(), ", "), "; default ", options->base));
  command
      ->add_option("--fix", options->fixed,
                   "constant that is not fitted, as NAME (then the base's) or NAME=VALUE, such "
                   "as link_us=0.15; nic and switch stand for all of theirs; repeatable")
      ->allow_extra_args(false);
  AddText(*command, "--name", options->name,
          absl::StrCat("name of the new profile; default ", options->name));
  command->add_flag("--relative", options->relative,
                    "weigh each residual by its latency: for samples of very different lengths");
  AddText(*command, "--out", options->out, "write the profile to this file");
  command->add_flag("--json", options->json, "print JSON");
  command->callback(
      [options, &chosen] { chosen.run = [options] { return RunCalibrate(*options); }; });
}

}  // namespace coppice
