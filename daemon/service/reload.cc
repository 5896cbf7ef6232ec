#include "daemon/service/reload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/log.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/config_change.h"

namespace coppice {
namespace {

constexpr char kObject[] = "configuration";

std::string Describe(const ReloadOutcome& outcome) {
  if (outcome.changed.empty() && outcome.needs_restart.empty()) return "nothing has changed";
  std::string text;
  if (!outcome.changed.empty()) {
    text = absl::StrCat("in force: ", absl::StrJoin(outcome.changed, ", "));
  }
  if (!outcome.needs_restart.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "changed, but held from the next start only: ",
                    absl::StrJoin(outcome.needs_restart, ", "));
  }
  return text;
}

}  // namespace

void Reloader::Attach(RpcServer* server) {
  std::lock_guard lock(mu_);
  server_ = server;
}

absl::Duration Reloader::shutdown_grace() const {
  std::lock_guard lock(mu_);
  return running_.shutdown_grace;
}

absl::StatusOr<ReloadOutcome> Reloader::Reload(const std::string& by) {
  std::lock_guard lock(mu_);
  if (server_ == nullptr) {
    return absl::UnavailableError("the daemon is starting or stopping: reload it later");
  }
  absl::StatusOr<ReloadOutcome> outcome = Apply();
  if (outcome.ok()) {
    const std::string what = Describe(*outcome);
    spdlog::info("configuration read again: {}", what);
    manager_->Announce("config.reloaded", kObject, what, by);
  } else {
    const std::string why = absl::StrCat(outcome.status().message(), "; all is as it was before");
    spdlog::error("configuration refused: {}", why);
    manager_->Announce("config.refused", kObject, why, by);
  }
  return outcome;
}

absl::StatusOr<ReloadOutcome> Reloader::Apply() {
  if (read_ == nullptr) {
    return absl::FailedPreconditionError(
        "the daemon was started without a configuration file: start it with --config FILE");
  }
  ASSIGN_OR_RETURN(const Config file, read_());
  ConfigChange change = Compare(running_, file);
  if (!change.changed.empty()) {
    RETURN_IF_ERROR(manager_->Reconfigure(change.next.manager));
    server_->SetAdministrators(change.next.access.admin_group,
                               change.next.access.tls_administrators);
    server_->SetBounds(change.next.admission, change.next.connections);
    SetLogLevel(change.next.log_level);
    running_ = std::move(change.next);
  }
  return ReloadOutcome{std::move(change.changed), std::move(change.needs_restart)};
}

}  // namespace coppice
