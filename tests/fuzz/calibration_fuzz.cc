// Any bytes as measured latencies, with and without constants fixed: a fit or INVALID_ARGUMENT,
// never more; what is fitted is finite, not negative, and survives its own text.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/tree/calibration/calibration.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void Fit(const std::vector<coppice::LatencySample>& samples, uint32_t choice) {
  const char* const kFixed[] = {"link_us", "nic.send_us", "switch", "nic", "init_us"};
  coppice::CalibrationOptions options;
  options.base = *coppice::BuiltInProfile(choice % 2 == 0 ? "paper" : "hdr");
  if (choice % 4 < 2) options.base.port_gbps = 0;
  if (choice % 8 < 4) options.scale = coppice::ResidualScale::kRelative;
  for (uint32_t i = 0; i < 5; ++i) {
    if ((choice >> (3 + i) & 1) != 0) options.fixed.emplace_back(kFixed[i]);
  }
  const auto fit = coppice::FitProfile(samples, options);
  if (!fit.ok()) {
    Require(fit.status().code() == absl::StatusCode::kInvalidArgument);
    return;
  }
  Require(fit->residuals_us.size() == samples.size());
  for (const coppice::FittedConstant& constant : fit->constants) {
    Require(std::isfinite(constant.value) && constant.value >= 0);
    Require(std::isfinite(constant.standard_error) && constant.standard_error >= 0);
  }
  Require(std::isfinite(fit->rms_us) && std::isfinite(fit->r_squared));
  Require(coppice::ParseProfile(coppice::ProfileToToml(fit->profile), "fuzz.toml").ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto samples =
      coppice::ParseLatencySamples({reinterpret_cast<const char*>(data) + 1, size - 1}, "fuzz.csv");
  if (samples.ok()) {
    Fit(*samples, data[0]);
  } else {
    Require(samples.status().code() == absl::StatusCode::kInvalidArgument);
  }
  return 0;
}
