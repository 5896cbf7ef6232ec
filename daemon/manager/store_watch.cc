#include "daemon/manager/store_watch.h"

#include "absl/strings/str_cat.h"
#include "daemon/base/log.h"

namespace coppice {
namespace {

constexpr char kDatabaseObject[] = "database";

}  // namespace

void StoreWatch::Look() {
  const StoreStatistics statistics = calls_->store().Statistics();
  const absl::Duration now = clock_->Monotonic();
  if (fault_.empty() && statistics.fault.empty()) {
    refused_before_ = statistics.refused;
    return;
  }
  if (statistics.fault.empty()) {
    const std::string what =
        absl::StrCat("it is written to again; for ", absl::ToInt64Seconds(now - since_), " s ",
                     statistics.refused - refused_before_, " changes were refused: ", fault_);
    fault_.clear();
    spdlog::info("{}: {}", kDatabaseObject, what);
    return events_->Append("store.recovered", kDatabaseObject, what);
  }
  const bool is_new = fault_.empty();
  fault_ = statistics.fault;
  if (is_new) {
    since_ = now;
    spdlog::error("nothing is granted until this is mended: {}", fault_);
  } else if (now - tried_ < kRetry) {
    return;
  }
  tried_ = now;
  events_->Append("store.failed", kDatabaseObject, fault_);
}

}  // namespace coppice
