// The use cases of calibration: the cost profile with which trees are planned, as the configuration
// gives it or as a calibration has put it in force.
//
//   configured --Calibrate with apply, durable--> calibrated --Reset, durable--> configured
//                                                   |    ^
//                                                   +----+ Calibrate with apply: fitted against it
//
// The profile in force is Tables::profile and changes in the store's callbacks, so that it is
// always the one of some earlier state of the store. Plans under way keep theirs.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/manager.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

constexpr size_t kMaxFixed = 64;       // there are fourteen constants
constexpr size_t kMaxFixedBytes = 64;  // "switch.forward_us_per_byte=" and a number

absl::Status CheckArgs(const CalibrateArgs& args) {
  RETURN_IF_ERROR(CheckLength("origin", args.origin, kMaxNameBytes));
  RETURN_IF_ERROR(CheckLength("name", args.name, kMaxNameBytes));
  if (args.fixed.size() > kMaxFixed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "fixed: ", args.fixed.size(), " constants are named, the limit is ", kMaxFixed));
  }
  for (const std::string& fixed : args.fixed) {
    RETURN_IF_ERROR(CheckLength("fixed", fixed, kMaxFixedBytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<CalibrationView>> Fit(const CalibrateArgs& args,
                                                     const CostProfile& base) {
  RETURN_IF_ERROR(CheckArgs(args));
  const std::string origin = args.origin.empty() ? "samples_csv" : args.origin;
  CalibrationOptions options;
  options.base = base;
  options.scale = args.scale;
  if (!args.name.empty()) options.name = args.name;
  for (const std::string& fixed : args.fixed) {
    RETURN_IF_ERROR(Annotate(FixConstant(fixed, options), "fixed"));
  }
  auto view = std::make_shared<CalibrationView>();
  ASSIGN_OR_RETURN(view->samples, ParseLatencySamples(args.samples_csv, origin));
  absl::StatusOr<Calibration> fit = FitProfile(view->samples, options);
  if (!fit.ok()) return Annotate(fit.status(), origin);
  view->fit = *std::move(fit);
  return view;
}

}  // namespace

Profiles::Profiles(const UseCase& with)
    : UseCase(with), configured_(std::make_shared<const CostProfile>(options_->profile)) {
  PutInForce(configured_);
}

void Profiles::PutInForce(Profile profile) {
  std::lock_guard lock(tables_->mu);
  tables_->profile = std::move(profile);
}

void Profiles::Restore(const std::string& toml) {
  if (toml.empty()) return;
  absl::StatusOr<CostProfile> profile = ParseProfile(toml, "the database's calibrated profile");
  if (profile.ok()) {
    spdlog::info("cost profile: {}, from an earlier calibration", profile->name);
    return PutInForce(std::make_shared<const CostProfile>(*std::move(profile)));
  }
  std::string message = absl::StrCat(
      "an earlier calibration cannot be used, trees are planned with the configuration's profile ",
      configured_->name, ": ", profile.status().message(),
      "; calibrate again, or `calibrate --reset`");
  spdlog::error("cost profile: {}", message);
  events_->Append("profile.unusable", "profile", std::move(message));
}

void Profiles::Configure(const CostProfile& profile) {
  auto next = std::make_shared<const CostProfile>(profile);
  std::lock_guard lock(tables_->mu);
  if (tables_->profile == configured_) tables_->profile = next;
  configured_ = std::move(next);
}

void Profiles::Calibrate(const CalibrateArgs& args,
                         Callback<std::shared_ptr<const CalibrationView>> done) {
  Profile base;
  {
    std::lock_guard lock(tables_->mu);
    base = tables_->profile;
  }
  absl::StatusOr<std::shared_ptr<CalibrationView>> fit = Fit(args, *base);
  if (!fit.ok()) return done(fit.status());
  if (!args.apply) return done(*std::move(fit));
  std::string toml = ProfileToToml((*fit)->fit.profile);
  // What a restart reads back is put in force, not what was fitted: then nothing can differ.
  absl::StatusOr<CostProfile> parsed = ParseProfile(toml, "the fitted profile");
  if (!parsed.ok()) return done(parsed.status());
  auto profile = std::make_shared<const CostProfile>(*std::move(parsed));
  calls_->Submit(PutProfile{std::move(toml)},
                 [this, profile, view = *std::move(fit),
                  callback = std::move(done)](const absl::Status& status) mutable {
                   if (!status.ok()) return callback(status);
                   PutInForce(profile);
                   view->applied = true;
                   std::string message = absl::StrFormat(
                       "trees are planned with profile %s, fitted to %d samples, rms %.4g us",
                       profile->name, view->samples.size(), view->fit.rms_us);
                   spdlog::info("cost profile: {}", message);
                   events_->Append("profile.changed", "profile", std::move(message));
                   callback(std::shared_ptr<const CalibrationView>(std::move(view)));
                 });
}

void Profiles::Reset(Callback<Profile> done) {
  calls_->Submit(
      PutProfile{}, [this, callback = std::move(done)](const absl::Status& status) mutable {
        if (!status.ok()) return callback(status);
        Profile configured;
        {
          std::lock_guard lock(tables_->mu);
          configured = tables_->profile = configured_;
        }
        std::string message =
            absl::StrCat("trees are planned with the configuration's profile ", configured->name);
        spdlog::info("cost profile: {}", message);
        events_->Append("profile.changed", "profile", std::move(message));
        callback(std::move(configured));
      });
}

}  // namespace coppice
