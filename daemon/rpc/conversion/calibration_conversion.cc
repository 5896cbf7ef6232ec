#include "daemon/rpc/conversion/calibration_conversion.h"

#include <string>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/rpc/conversion/trees_conversion.h"
#include "daemon/tree/closed_form.h"

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

namespace {

void RowToProto(const TypeChoice& choice, v1::TypeTableRow& row) {
  row.set_operation(ToProto(choice.operation));
  row.set_min_bytes(choice.min_bytes);
  row.set_max_bytes(choice.max_bytes);
  row.set_type(ToProto(choice.type));
  row.set_width(choice.widths.best);
  row.set_min_width(choice.widths.min);
  row.set_max_width(choice.widths.max);
  row.set_type_i_us(choice.type_i_us);
  row.set_type_ii_us(choice.type_ii_us);
}

}  // namespace

absl::Status TypeTableToProto(const CostProfile& profile, uint32_t members,
                              v1::TypeTable& message) {
  ASSIGN_OR_RETURN(const std::vector<TypeChoice> table, StaticTypeTable(profile, members));
  message.set_profile(profile.name);
  message.set_members(members);
  for (const TypeChoice& choice : table) RowToProto(choice, *message.add_rows());
  return absl::OkStatus();
}

}  // namespace coppice
