// calibrate: the cost profile that plans are made with, fitted to measured latencies, and put in
// force. What it prints is itself a profile, the report in its comments, unless JSON is asked for
// or the profile goes to a file.
#include <iostream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/cli/commands.h"
#include "client/cli/output.h"
#include "client/cli/words.h"
#include "proto/text/text_file.h"

namespace coppice {
namespace {

struct CalibrateOptions {
  v1::CalibrateRequest request;
  std::string file, out;
  bool reset = false;
};

std::string ConstantsText(const v1::CalibrateResponse& fit) {
  std::string text = absl::StrFormat("%-26s %13s %13s\n", "CONSTANT", "VALUE", "STD ERROR");
  for (const v1::FittedConstant& constant : fit.constants()) {
    const bool is_fixed = constant.state() == "fixed";
    absl::StrAppendFormat(&text, "%-26s %13.6g %13s%s\n", constant.name(), constant.value(),
                          is_fixed ? "fixed" : absl::StrFormat("%.3g", constant.standard_error()),
                          constant.state() == "held at zero" ? "  held at zero" : "");
  }
  return text;
}

std::string ResidualsText(const v1::CalibrateResponse& fit) {
  const std::set<uint32_t> outliers(fit.outliers().begin(), fit.outliers().end());
  std::string text =
      absl::StrFormat("%5s %-9s %9s %7s %-4s %5s %11s %11s\n", "LINE", "OPERATION", "BYTES",
                      "MEMBERS", "TYPE", "WIDTH", "MEASURED US", "RESIDUAL US");
  for (int i = 0; i < fit.measured_size() && i < fit.residuals_us_size(); ++i) {
    const v1::LatencySample& sample = fit.measured(i);
    absl::StrAppendFormat(&text, "%5d %-9s %9d %7d %-4s %5d %11.3f %11.3f%s\n", sample.line(),
                          Word(sample.operation()), sample.bytes(), sample.members(),
                          Word(sample.type()), sample.width(), sample.us(), fit.residuals_us(i),
                          outliers.count(static_cast<uint32_t>(i)) != 0 ? "  outlier" : "");
  }
  return text;
}

std::string ReportText(const v1::CalibrateResponse& fit) {
  const int worst = static_cast<int>(fit.worst_sample());
  const uint32_t line = worst < fit.measured_size() ? fit.measured(worst).line() : 0;
  std::string text = absl::StrCat(
      ConstantsText(fit),
      absl::StrFormat("\n%d samples; residuals: rms %.4g us, largest %.4g us (line %d), R^2 %.6f\n",
                      fit.samples(), fit.rms_us(), fit.worst_us(), line, fit.r_squared()));
  for (const std::string& note : fit.notes()) {
    absl::StrAppend(&text, "note: ", Wrapped(note, 6, kTerminalColumns - 2), "\n");  // after "# "
  }
  return absl::StrCat(text, fit.applied() ? "in force from now on\n" : "not in force: --apply\n",
                      "\n", ResidualsText(fit));
}

int Reset(Session& session, Connection& connection) {
  return Show(session, connection.Call(&FabricStub::ResetCalibration), [](const auto& now) {
    std::cout << "profile " << now.profile() << " of the configuration is in force\n";
  });
}

int Calibrate(Session& session, Connection& connection, CalibrateOptions& options) {
  if (options.reset) return Reset(session, connection);
  absl::StatusOr<std::string> text = ReadTextFile(options.file);
  if (!text.ok()) return Fail(text.status());
  if (!options.out.empty()) {
    // Before --apply puts it in force.
    if (const absl::Status may = CheckMayWrite(options.out); !may.ok()) return Fail(may);
  }
  options.request.set_samples_csv(*std::move(text));
  options.request.set_origin(options.file == "-" ? "standard input" : options.file);
  const auto fit = connection.Call(&FabricStub::Calibrate, options.request);
  if (!fit.ok()) return Fail(fit.status());
  if (fit->applied()) session.done = "the profile is in force";
  const std::string report = ReportText(*fit);
  const std::string profile = absl::StrCat("# ", absl::StrReplaceAll(report, {{"\n", "\n# "}}),
                                           "\n\n", fit->profile_toml());
  if (!options.out.empty()) {
    const absl::Status written = WriteTextFile(options.out, profile);
    if (!written.ok()) return Fail(written);
  }
  if (session.json) return PrintJson(std::cout, *fit), 0;
  std::cout << (options.out.empty() ? profile : report);
  return 0;
}

}  // namespace

void AddCalibrateCommand(CLI::App& app, Session& session) {
  auto [command, options] = AddCommand<CalibrateOptions>(
      app, session, "calibrate",
      "Fit the cost profile in force to measured latencies and plan with it", Calibrate,
      [&session](CalibrateOptions& asked) {
        session.is_of_profile = true;
        session.needs_fabric = false;
        if (asked.file.empty() && !asked.reset) throw CLI::RequiredError("FILE or --reset");
      });
  v1::CalibrateRequest& request = options.request;
  CLI::Option* const file = command->add_option(
      "FILE", options.file,
      "CSV with the columns operation, bytes, members, type, width, microseconds; - for stdin");
  command->add_flag("--reset", options.reset, "Go back to the profile of the configuration")
      ->excludes(file);
  command
      ->add_option_function<std::vector<std::string>>(
          "--fix",
          [&request](const std::vector<std::string>& fixed) {
            for (const std::string& constant : fixed) request.add_fixed(constant);
          },
          "Constant that is not fitted, as NAME (then as it is now) or NAME=VALUE, such as "
          "link_us=0.15; nic and switch stand for all of theirs; repeatable")
      ->allow_extra_args(false)
      ->needs(file);
  command
      ->add_option("--name", *request.mutable_name(), "Name of the new profile; default calibrated")
      ->needs(file);
  AddField(*command, "--relative", request, &v1::CalibrateRequest::set_relative,
           "Weigh each residual by its latency: for samples of very different lengths")
      ->needs(file);
  AddField(*command, "--apply", request, &v1::CalibrateRequest::set_apply,
           "Plan with it from now on, also after a restart")
      ->needs(file);
  command->add_option("--out", options.out, "Write the profile to this file")->needs(file);
}

}  // namespace coppice
