#include "daemon/fabric/offline_subnet_port.h"

#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/clock.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_source.h"

namespace coppice {

absl::StatusOr<std::unique_ptr<OfflineSubnetPort>> OfflineSubnetPort::Create(
    absl::string_view spec) {
  RETURN_IF_ERROR(CheckFabricSpec(spec));
  return std::unique_ptr<OfflineSubnetPort>(new OfflineSubnetPort(spec));
}

absl::StatusOr<SweepResult> OfflineSubnetPort::Sweep(const SweepOptions&) {
  const absl::Duration start = SystemClock().Monotonic();
  SweepResult result;
  // Before the file is read: what is written meanwhile is seen by the next look.
  absl::StatusOr<Stamp> stamp = ReadStamp();
  ASSIGN_OR_RETURN(result.fabric, LoadFabric(spec_));
  if (stamp.ok()) swept_ = *stamp;
  result.elapsed = SystemClock().Monotonic() - start;
  return result;
}

absl::StatusOr<OfflineSubnetPort::Stamp> OfflineSubnetPort::ReadStamp() const {
  absl::string_view path = spec_;
  if (!absl::ConsumePrefix(&path, "file:")) return Stamp();
  const std::filesystem::path file{std::string(path)};
  Stamp stamp;
  std::error_code error;
  stamp.modified = std::filesystem::last_write_time(file, error);
  if (!error) stamp.bytes = std::filesystem::file_size(file, error);
  if (!error) return stamp;
  return absl::NotFoundError(absl::StrCat(spec_, ": ", error.message(), "; put the file back"));
}

absl::StatusOr<LightSweepResult> OfflineSubnetPort::LightSweep() {
  if (!swept_) return absl::FailedPreconditionError(absl::StrCat(spec_, " was not swept yet"));
  ASSIGN_OR_RETURN(const Stamp stamp, ReadStamp());
  LightSweepResult result;
  result.has_changed = stamp != *swept_;
  if (result.has_changed) result.what = absl::StrCat(spec_, " was written anew");
  return result;
}

absl::StatusOr<CounterSweep> OfflineSubnetPort::ReadCounters() {
  return absl::UnimplementedError(absl::StrCat(spec_, " has no counters: it is no live subnet"));
}

}  // namespace coppice
