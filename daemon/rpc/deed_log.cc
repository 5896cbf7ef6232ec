#include "daemon/rpc/deed_log.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace coppice {
namespace {

constexpr absl::Duration kToldAgain = absl::Minutes(1);
constexpr size_t kMostObjectBytes = 256;
// They change something, and no mutation brings their deed.
constexpr absl::string_view kNotedAtEnd[] = {
    "Admin.Reload", "Agents.MeasureDistances", "Fabric.Calibrate", "Fabric.ResetCalibration",
    "Fabric.Sweep", "Mapping.PutOrder",
};

bool IsDenial(absl::StatusCode code) {
  return code == absl::StatusCode::kPermissionDenied || code == absl::StatusCode::kUnauthenticated;
}

// Without the port, which is another for each connection.
std::string HostOf(const std::string& origin) { return origin.substr(0, origin.rfind(':')); }

}  // namespace

bool DeedLog::IsToldOf(absl::string_view method, absl::StatusCode code) {
  if (code != absl::StatusCode::kOk) return IsDenial(code);
  return std::find(std::begin(kNotedAtEnd), std::end(kNotedAtEnd), method) != std::end(kNotedAtEnd);
}

void DeedLog::Add(const Actor& actor, absl::string_view object, absl::StatusCode code) {
  const DeedPtr made = DeedOf(actor, std::string(object.substr(0, kMostObjectBytes)), absl::Now());
  if (made == nullptr) return;
  DeedRecord deed = *made;
  deed.outcome = absl::StatusCodeToString(code);
  std::vector<DeedRecord> told;
  if (IsDenial(code)) {
    deed.share = DeedShare::kDenial;
    absl::MutexLock lock(&mutex_);
    if (denials_.size() >= kMostKinds) {
      TakePending(told);
      denials_.clear();
    }
    const auto [found, is_new] =
        denials_.try_emplace(Kind{deed.caller, deed.user, HostOf(deed.origin), deed.method});
    Repeated& repeated = found->second;
    if (!is_new && deed.time - repeated.told < kToldAgain) {
      deed.count = (repeated.pending.method.empty() ? 0 : repeated.pending.count) + 1;
      repeated.pending = std::move(deed);
    } else {
      if (!repeated.pending.method.empty()) told.push_back(std::move(repeated.pending));
      repeated.pending = {};
      repeated.told = deed.time;
      told.push_back(std::move(deed));
    }
  } else {
    told.push_back(std::move(deed));
  }
  if (!told.empty()) keep_(std::move(told));
}

void DeedLog::TakePending(std::vector<DeedRecord>& deeds) {
  for (auto& [kind, repeated] : denials_) {
    if (repeated.pending.method.empty()) continue;
    deeds.push_back(std::move(repeated.pending));
    repeated.pending = {};
  }
}

void DeedLog::Flush() {
  std::vector<DeedRecord> told;
  {
    absl::MutexLock lock(&mutex_);
    TakePending(told);
  }
  if (!told.empty()) keep_(std::move(told));
}

}  // namespace coppice
