#include "daemon/rpc/calibration_conversion.h"

#include <string>

#include "daemon/rpc/trees_conversion.h"

namespace coppice {
namespace {

void ToProto(const LatencySample& sample, v1::LatencySample& message) {
  message.set_line(sample.line);
  message.set_operation(ToProto(sample.operation));
  message.set_bytes(sample.bytes);
  message.set_members(sample.members);
  message.set_type(ToProto(sample.type));
  message.set_width(sample.width);
  message.set_us(sample.us);
}

void ToProto(const FittedConstant& constant, v1::FittedConstant& message) {
  message.set_name(constant.name);
  message.set_value(constant.value);
  message.set_standard_error(constant.standard_error);
  message.set_state(std::string(ToString(constant.state)));
}

}  // namespace

CalibrateArgs FromProto(const v1::CalibrateRequest& request) {
  CalibrateArgs args;
  args.samples_csv = request.samples_csv();
  args.origin = request.origin();
  args.fixed.assign(request.fixed().begin(), request.fixed().end());
  args.scale = request.relative() ? ResidualScale::kRelative : ResidualScale::kAbsolute;
  args.name = request.name();
  args.apply = request.apply();
  return args;
}

void ToProto(const CalibrationView& view, v1::CalibrateResponse& response) {
  const Calibration& fit = view.fit;
  response.set_profile_toml(ProfileToToml(fit.profile));
  for (const FittedConstant& constant : fit.constants) {
    ToProto(constant, *response.add_constants());
  }
  response.set_samples(static_cast<uint32_t>(view.samples.size()));
  response.set_rms_us(fit.rms_us);
  response.set_worst_us(fit.worst_us);
  response.set_worst_sample(static_cast<uint32_t>(fit.worst_sample));
  response.set_r_squared(fit.r_squared);
  response.mutable_residuals_us()->Add(fit.residuals_us.begin(), fit.residuals_us.end());
  for (const size_t outlier : fit.outliers) {
    response.add_outliers(static_cast<uint32_t>(outlier));
  }
  for (const std::string& note : fit.notes) response.add_notes(note);
  response.set_applied(view.applied);
  for (const LatencySample& sample : view.samples) ToProto(sample, *response.add_measured());
}

}  // namespace coppice
