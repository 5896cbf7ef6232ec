#include "daemon/service/signal_loop.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coppice/v1/fabric.grpc.pb.h"
#include "daemon/base/log.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/worker_pool.h"
#include "proto/status_conversion.h"

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

namespace {

// Whether the daemon still answers, found out as a client would: over a connection of its own to
// its own address, with a call that goes through gRPC's threads and takes the manager's lock. What
// the watchdog of a service manager is to hear is that, not that some thread still turns.

// Connects anew to "unix:PATH" and asks for the fabric. Any answer is one, also that there is no
// fabric yet; DEADLINE_EXCEEDED or UNAVAILABLE: there was none within `limit`. Blocks that long.
absl::Status AskOneself(const std::string& address, absl::Duration limit) {
  grpc::ChannelArguments arguments;
  // Otherwise gRPC would hand out the connection of the last time, and nobody would see that the
  // daemon accepts no new ones.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1::Fabric::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
  v1::FabricSummary summary;
  const grpc::Status status = stub->GetFabric(&context, v1::GetFabricRequest(), &summary);
  // Without a fabric the answer is UNAVAILABLE, with details that only a living daemon gives.
  const bool is_answer = status.ok() || !status.error_details().empty();
  return is_answer ? absl::OkStatus() : FromGrpcStatus(status);
}

constexpr absl::Duration kStatusPeriod = absl::Seconds(10);
// A sign of life takes up to one such part to find out, and must come before the last one ends.
constexpr int kPartsOfWatchdog = 3;

}  // namespace

int SignalLoop::Run() {
  service_->Ready(StatusLine());
  const int signal = Listen();
  service_->Stopping();  // last: the end of a reload says that the daemon is ready
  return signal;
}

int SignalLoop::Listen() {
  const absl::Duration pulse = std::min(kStatusPeriod, service_->watchdog() / kPartsOfWatchdog);
  WorkerPool reloads(1);
  auto next = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(pulse);
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    if (service_->is_there() && now >= next) {
      Pulse();
      next = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(pulse);
      continue;
    }
    const int signal =
        Next(service_->is_there() ? absl::FromChrono(next - now) : absl::InfiniteDuration());
    if (signal == SIGHUP) {
      if (!is_asked_.exchange(true)) reloads.Submit([this] { Reload(); });
    } else if (signal != 0) {
      is_stopping_ = true;
      return signal;
    }
  }
}

int SignalLoop::Next(absl::Duration wait) const {
  int signal = 0;
  if (wait == absl::InfiniteDuration()) {
    sigwait(&signals_, &signal);
    return signal;
  }
  const timespec limit = absl::ToTimespec(wait);
  signal = sigtimedwait(&signals_, nullptr, &limit);
  return std::max(signal, 0);
}

void SignalLoop::Reload() {
  if (is_stopping_) return;
  is_asked_ = false;
  service_->Reloading();
  (void)reloader_->Reload("");  // it has told what happened
  service_->Ready(StatusLine());
}

void SignalLoop::Pulse() {
  service_->Status(StatusLine());  // takes the manager's lock: also a sign of life
  if (service_->watchdog() == absl::InfiniteDuration()) return;
  if (!own_address_.empty()) {
    const absl::Status alive = AskOneself(own_address_, service_->watchdog() / kPartsOfWatchdog);
    if (!alive.ok()) {
      spdlog::error("the daemon does not answer at {}: {}; the service manager will restart it",
                    own_address_, alive.ToString());
      return;
    }
  }
  service_->KeepAlive();
}

std::string SignalLoop::StatusLine() const {
  const DaemonCounts counts = manager_->Counts();
  const std::string fault = manager_->Statistics().fault;
  const std::shared_ptr<const FabricView> view = manager_->fabric();
  if (view == nullptr) {
    return counts.last_sweep_error.empty()
               ? "reading the fabric for the first time"
               : absl::StrCat("no fabric is known yet: ", counts.last_sweep_error);
  }
  const Fabric& fabric = *view->snapshot->fabric;
  return absl::StrCat("fabric version ", fabric.version(), ": ", fabric.switch_count(),
                      " switches, ", fabric.endpoint_count(), " ports; ", counts.active_jobs,
                      " jobs, ", counts.granted_trees, " trees",
                      counts.last_sweep_error.empty()
                          ? ""
                          : absl::StrCat("; sweeps fail: ", counts.last_sweep_error),
                      fault.empty() ? "" : absl::StrCat("; writes fail: ", fault));
}

}  // namespace coppice
