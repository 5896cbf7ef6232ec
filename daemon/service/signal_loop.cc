#include "daemon/service/signal_loop.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coppice/v1/fabric.grpc.pb.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/worker_pool.h"
#include "proto/status_conversion.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

// Each line that is sent is an assignment of its own.
std::string Line(std::string status) {
  std::replace_if(
      status.begin(), status.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  return absl::StrCat("STATUS=", status, "\n");
}

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

struct SignalLoop {
  int Run() {
    service->Ready(StatusLine());
    const int signal = Listen();
    service->Stopping();  // last: the end of a reload says that the daemon is ready
    return signal;
  }

  // Until a signal to stop; returns it.
  int Listen() {
    const absl::Duration pulse = std::min(kStatusPeriod, service->watchdog() / kPartsOfWatchdog);
    WorkerPool reloads(1);
    auto next = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(pulse);
    while (true) {
      const auto now = std::chrono::steady_clock::now();
      if (service->is_there() && now >= next) {
        Pulse();
        next = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(pulse);
        continue;
      }
      const int signal =
          Next(service->is_there() ? absl::FromChrono(next - now) : absl::InfiniteDuration());
      if (signal == SIGHUP) {
        if (!is_asked.exchange(true)) reloads.Submit([this] { Reload(); });
      } else if (signal != 0) {
        is_stopping = true;
        return signal;
      }
    }
  }

  // The next signal; 0 after `wait` without one.
  int Next(absl::Duration wait) const {
    int signal = 0;
    if (wait == absl::InfiniteDuration()) {
      sigwait(&signals, &signal);
      return signal;
    }
    const timespec limit = absl::ToTimespec(wait);
    signal = sigtimedwait(&signals, nullptr, &limit);
    return std::max(signal, 0);
  }

  void Reload() {
    if (is_stopping) return;
    is_asked = false;
    service->Reloading();
    (void)reloader->Reload("");  // it has told what happened
    service->Ready(StatusLine());
  }

  // The status line and, if the daemon answers, the watchdog's sign of life.
  void Pulse() {
    service->Status(StatusLine());  // takes the manager's lock: also a sign of life
    if (service->watchdog() == absl::InfiniteDuration()) return;
    if (!own_address.empty()) {
      const absl::Status alive = AskOneself(own_address, service->watchdog() / kPartsOfWatchdog);
      if (!alive.ok()) {
        spdlog::error("the daemon does not answer at {}: {}; the service manager will restart it",
                      own_address, alive.ToString());
        return;
      }
    }
    service->KeepAlive();
  }

  std::string StatusLine() const {
    const DaemonCounts counts = manager->Counts();
    const std::string fault = manager->Statistics().fault;
    const std::shared_ptr<const FabricView> view = manager->fabric();
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

  const sigset_t signals;
  const std::string own_address;
  Manager* const manager;
  Reloader* const reloader;
  const ServiceManager* const service;
  std::atomic<bool> is_asked = false;  // SIGHUP came, and no reload has begun since
  std::atomic<bool> is_stopping = false;
};

}  // namespace

ServiceManager::ServiceManager() {
  const char* socket = std::getenv("NOTIFY_SOCKET");
  is_there_ = socket != nullptr && *socket != '\0';
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(/*unset_environment=*/0, &microseconds) > 0) {
    watchdog_ = absl::Microseconds(static_cast<int64_t>(microseconds));
  }
}

void ServiceManager::Ready(const std::string& status) const {
  Send(absl::StrCat(Line(status), "READY=1"));
}

void ServiceManager::Reloading() const {
  // The time tells the service manager which READY=1 is the answer (Type=notify-reload).
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t microseconds = absl::ToInt64Microseconds(absl::DurationFromTimespec(now));
  Send(absl::StrCat("RELOADING=1\nMONOTONIC_USEC=", microseconds));
}

void ServiceManager::Stopping() const { Send("STOPPING=1"); }
void ServiceManager::Status(const std::string& status) const { Send(Line(status)); }
void ServiceManager::KeepAlive() const { Send("WATCHDOG=1"); }

// A service manager that does not listen is no reason not to serve.
void ServiceManager::Send(const std::string& state) const {
  if (is_there_) (void)sd_notify(/*unset_environment=*/0, state.c_str());
}

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

int RunSignalLoop(const sigset_t& signals, const std::string& own_address, Manager* manager,
                  Reloader* reloader, const ServiceManager* service) {
  return SignalLoop{signals, own_address, manager, reloader, service}.Run();
}

}  // namespace coppice
