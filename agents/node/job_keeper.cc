#include "agents/node/job_keeper.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "proto/status_conversion.h"

namespace coppice {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr char kKeepAlive[] = "/coppice.v1.Jobs/KeepAlive";
constexpr char kEndJob[] = "/coppice.v1.Jobs/EndJob";

// How soon the end of the last process is noticed, of some hundred; of the most, within ten
// seconds.
constexpr Milliseconds kLookEvery{1'000};
constexpr Milliseconds kFirstRenewalPause{200};
// Who is denied for longer, and for longer than the lease, is denied for good.
constexpr Milliseconds kMinDenial{60'000};
// Of one user at a time.
constexpr size_t kMaxAskedRequests = 4096, kMaxAskedProcesses = 4096;

Milliseconds LeaseOf(const v1::KeepAliveResponse& response) {
  return Milliseconds(response.lease().seconds() * 1000 + response.lease().nanos() / 1'000'000);
}

template <class Value>
void KeepEachOnce(std::vector<Value>& values) {
  absl::c_sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

absl::StatusOr<ProcessIdentity> FindOwnProcess(const LocalCaller& caller, int64_t pid) {
  absl::StatusOr<ProcessIdentity> process = FindProcess(pid);
  // The kernel itself said whose the caller is.
  if (!process.ok() || caller.uid == 0 || pid == caller.process) return process;
  const absl::StatusOr<uid_t> owner = OwnerOfProcess(pid);
  if (!owner.ok()) return owner.status();
  if (*owner == caller.uid) return process;
  return absl::InvalidArgumentError(
      absl::StrCat("process ", pid, " is another user's; name your own"));
}

absl::Status NotHeld(const HeldJob& job, const absl::Status& why) {
  const auto code = absl::IsNotFound(why) ? absl::StatusCode::kInvalidArgument : why.code();
  return absl::Status(code, absl::StrCat("job ", job.id, ": ", why.message()));
}

}  // namespace

JobKeeper::JobKeeper(EventLoop* loop, DaemonLink* link, HoldFile file,
                     const std::vector<HeldJob>& jobs)
    : loop_(loop), link_(link), file_(std::move(file)), turns_(loop) {
  for (const HeldJob& job : jobs) {
    spdlog::info("job {} of {} is held again", job.id, job.user);
    Add(job, Milliseconds(0));
  }
  if (!jobs_.empty()) LookAtProcesses();
}

JobKeeper::~JobKeeper() {
  for (auto& [id, kept] : jobs_) Stop(kept);
  for (auto& [number, check] : checks_) check->Abandon();
  loop_->Cancel(look_);
  if (is_save_due_) (void)Save();
}

void JobKeeper::Stop(Kept& kept) {
  loop_->Cancel(kept.timer);
  if (kept.call != nullptr) kept.call->Abandon();
  kept.call.reset();
}

void JobKeeper::Add(const HeldJob& job, Milliseconds first_renewal) {
  const uint64_t seed = std::hash<std::string>()(job.id) ^ std::hash<std::string>()(BootId());
  Kept kept{.job = job, .pause = {kFirstRenewalPause, kMaxRenewalPause, seed}};
  Schedule(jobs_.emplace(job.id, std::move(kept)).first->second, first_renewal);
}

HoldShares JobKeeper::SharesBeside(const std::string& id, const std::string& user) const {
  HoldShares shares;
  for (const auto& [held, kept] : jobs_) {
    if (held == id) continue;
    const bool is_users = kept.job.user == user;
    ++shares.jobs;
    shares.jobs_of_user += is_users ? 1 : 0;
    shares.processes += kept.job.processes.size();
    shares.processes_of_user += is_users ? kept.job.processes.size() : 0;
  }
  return shares;
}

absl::Status JobKeeper::Admit(const LocalCaller& caller, const v1::HoldJobRequest& request) const {
  if (absl::Status status = CheckHoldRequest(request); !status.ok()) return status;
  const auto processes = static_cast<size_t>(request.processes_size());
  const auto asked = asked_.find(caller.user);
  if (asked != asked_.end() && (asked->second.requests >= kMaxAskedRequests ||
                                asked->second.processes + processes > kMaxAskedProcesses)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("job ", request.job_id(), ": user ", caller.user,
                     " has too many requests to hold jobs under way; wait for some to end"));
  }
  if (jobs_.count(request.job_id()) > 0) return absl::OkStatus();
  return AdmitJob(request.job_id(), caller.user, SharesBeside(request.job_id(), caller.user));
}

JobKeeper::Done JobKeeper::Count(const LocalCaller& caller, const v1::HoldJobRequest& request,
                                 Done done) {
  const auto processes = static_cast<size_t>(request.processes_size());
  Asked& asked = asked_[caller.user];
  ++asked.requests;
  asked.processes += processes;
  return [this, user = caller.user, processes, done = std::move(done)](const absl::Status& status) {
    Asked& counted = asked_[user];
    counted.processes -= processes;
    if (--counted.requests == 0) asked_.erase(user);
    done(status);
  };
}

// Whether it is the caller's to renew, and still lives: by renewing it.
void JobKeeper::Hold(const LocalCaller& caller, const v1::HoldJobRequest& request, Done done) {
  if (absl::Status status = Admit(caller, request); !status.ok()) return done(status);
  v1::KeepAliveRequest renewal;
  renewal.set_id(request.job_id());
  const uint64_t number = ++last_check_;
  checks_[number] =
      Ask(kKeepAlive, caller.user, renewal, kMaxTry,
          [this, number, caller, request, counted = Count(caller, request, std::move(done))](
              const grpc::Status& status, const std::string& message) {
            checks_.erase(number);
            OnChecked(caller, request, status, message, counted);
          });
}

void JobKeeper::OnChecked(const LocalCaller& caller, const v1::HoldJobRequest& request,
                          const grpc::Status& status, const std::string& message,
                          const Done& done) {
  v1::KeepAliveResponse renewed;
  if (message.empty() || !renewed.ParseFromString(message)) {
    const absl::Status failed = FromGrpcStatus(status);
    return done(failed.ok() ? absl::UnavailableError("the daemon gave no answer; call again")
                            : failed);
  }
  if (renewed.state() != v1::JOB_STATE_ACTIVE) {
    return done(absl::FailedPreconditionError(
        absl::StrCat("job ", request.job_id(), ": it is over, or never was; register another")));
  }
  const auto on_found = [this, lease = LeaseOf(renewed), done](absl::StatusOr<HeldJob> job) {
    if (!job.ok()) return done(job.status());
    Keep(*std::move(job), lease, done);
  };
  FindHeldJob(caller, request, on_found, turns_);
}

void JobKeeper::Keep(HeldJob job, Milliseconds lease, const Done& done) {
  const std::string id = job.id;
  const auto found = jobs_.find(id);
  if (found != jobs_.end()) {
    absl::c_copy(found->second.job.processes, std::back_inserter(job.processes));
    KeepEachOnce(job.processes);
  }
  const HoldShares others = SharesBeside(id, job.user);
  absl::Status admitted = AdmitProcesses(job, others);
  if (admitted.ok() && found == jobs_.end()) admitted = AdmitJob(id, job.user, others);
  if (!admitted.ok()) return done(admitted);
  Unsaved change{id, std::nullopt, done};
  if (found == jobs_.end()) {
    Add(job, RenewalWait(lease));
  } else {
    Kept& kept = found->second;
    change.before = std::exchange(kept.job, std::move(job));
    kept.is_ending = false;
  }
  jobs_.find(id)->second.lease = lease;
  unsaved_.push_back(std::move(change));
  SaveSoon();
  if (!is_looking_) LookAtProcesses();
}

std::shared_ptr<ForwardedCall> JobKeeper::Ask(const char* method, const std::string& user,
                                              const google::protobuf::MessageLite& request,
                                              Milliseconds timeout, Answer answer) {
  const std::string bytes = request.SerializeAsString();
  const auto message = std::make_shared<std::string>();
  auto on_end = [message, answer = std::move(answer),
                 alive = std::weak_ptr<bool>(alive_)](const grpc::Status& status) {
    if (!alive.expired()) answer(status, *message);
  };
  return link_->Call({method, user, bytes, timeout},
                     {[message](const std::string& text) { *message = text; }, std::move(on_end),
                      /*reads_on=*/true});
}

void JobKeeper::Schedule(Kept& kept, Milliseconds wait) {
  loop_->Cancel(kept.timer);
  kept.timer = loop_->After(wait, [this, id = kept.job.id] { Act(id); });
}

void JobKeeper::Act(const std::string& id) {
  Kept& kept = jobs_.at(id);
  if (kept.call != nullptr) return;  // its answer comes first
  link_->Hurry();
  if (kept.is_ending) {
    v1::EndJobRequest request;
    request.set_id(id);
    kept.call =
        Ask(kEndJob, kept.job.user, request, kMaxTry,
            [this, id](const grpc::Status& status, const std::string&) { OnEnded(id, status); });
    return;
  }
  v1::KeepAliveRequest request;
  request.set_id(id);
  kept.call = Ask(kKeepAlive, kept.job.user, request, MaxTry(kept.lease),
                  [this, id](const grpc::Status& status, const std::string& message) {
                    OnRenewed(id, status, message);
                  });
}

// Denied is also who speaks through an agent that is no administrator just now: a configuration of
// the daemon that is soon mended. Once the lease has run out meanwhile there is nothing to hold.
bool JobKeeper::IsForGood(Kept& kept, const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::PERMISSION_DENIED) {
    kept.denied_since.reset();
    return status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
           status.error_code() == grpc::StatusCode::NOT_FOUND;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!kept.denied_since) kept.denied_since = now;
  return now - *kept.denied_since > std::max(kept.lease, kMinDenial);
}

// The call of a job that is let go is abandoned: it is there.
void JobKeeper::OnRenewed(const std::string& id, const grpc::Status& status,
                          const std::string& message) {
  Kept& kept = jobs_.at(id);
  kept.call.reset();
  if (kept.is_ending) return Schedule(kept, Milliseconds(0));
  v1::KeepAliveResponse response;
  if (!message.empty() && response.ParseFromString(message)) {
    if (response.state() != v1::JOB_STATE_ACTIVE) {
      spdlog::info("job {}: it is over; no longer held", id);
      return LetGo(id);
    }
    kept.pause.Reset();
    kept.denied_since.reset();
    kept.lease = LeaseOf(response);
    return Schedule(kept, RenewalWait(kept.lease));
  }
  if (IsForGood(kept, status)) {
    spdlog::warn("job {}: its lease cannot be renewed: {}", id, status.error_message());
    return LetGo(id);
  }
  Schedule(kept, std::min(kept.pause.Next(), MaxPause(kept.lease)));
}

void JobKeeper::OnEnded(const std::string& id, const grpc::Status& status) {
  Kept& kept = jobs_.at(id);
  kept.call.reset();
  if (!kept.is_ending) return Schedule(kept, Milliseconds(0));  // held again meanwhile
  if (!status.ok() && !IsForGood(kept, status)) return Schedule(kept, kept.pause.Next());
  spdlog::info("job {}: its processes are gone; {}", id,
               status.ok() ? std::string("ended") : status.error_message());
  LetGo(id);
}

void JobKeeper::LookAtProcesses() {
  is_looking_ = true;
  std::vector<ProcessIdentity> held;
  for (const auto& [id, kept] : jobs_) {
    held.insert(held.end(), kept.job.processes.begin(), kept.job.processes.end());
  }
  FindGone(
      std::move(held), [this](const auto& gone) { OnLooked(gone); }, turns_);
}

void JobKeeper::OnLooked(const std::set<ProcessIdentity>& gone) {
  std::vector<std::string> left;
  for (auto& [id, kept] : jobs_) {
    if (!gone.empty()) {
      std::erase_if(kept.job.processes, [&gone](const auto& one) { return gone.count(one) > 0; });
    }
    if (!kept.is_ending && kept.job.processes.empty()) left.push_back(id);
  }
  for (const std::string& id : left) {
    Kept& kept = jobs_.at(id);
    if (!kept.job.end_job) {
      spdlog::info("job {}: its processes are gone; its lease runs out", id);
      LetGo(id);
      continue;
    }
    kept.is_ending = true;
    kept.pause.Reset();
    if (kept.call == nullptr) Schedule(kept, Milliseconds(0));
  }
  is_looking_ = !jobs_.empty();
  if (is_looking_) look_ = loop_->After(kLookEvery, [this] { LookAtProcesses(); });
}

void JobKeeper::LetGo(const std::string& id) {
  const auto found = jobs_.find(id);
  Stop(found->second);
  jobs_.erase(found);
  SaveSoon();
}

void JobKeeper::SaveSoon() {
  if (std::exchange(is_save_due_, true)) return;
  loop_->Post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) SaveNow();
  });
}

// What cannot be noted is not held; what cannot be struck off is let go after the next start.
void JobKeeper::SaveNow() {
  is_save_due_ = false;
  const absl::Status saved = Save();
  const std::vector<Unsaved> changes = std::exchange(unsaved_, {});
  if (!saved.ok()) {
    spdlog::error("{}", std::string(saved.message()));
    for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
      const auto found = jobs_.find(change->id);
      if (found == jobs_.end()) continue;
      if (change->before) {
        found->second.job = *change->before;
      } else {
        Stop(found->second);
        jobs_.erase(found);
      }
    }
  }
  for (const Unsaved& change : changes) change.done(saved);
}

absl::Status JobKeeper::Save() const {
  std::vector<HeldJob> jobs;
  for (const auto& [id, kept] : jobs_) jobs.push_back(kept.job);
  return file_.Save(jobs);
}

void FindGone(std::vector<ProcessIdentity> processes,
              std::function<void(const std::set<ProcessIdentity>& gone)> done, LoopTurns& turns,
              std::function<bool(const ProcessIdentity&)> is_gone) {
  KeepEachOnce(processes);
  turns.Add([processes = std::move(processes), done = std::move(done), is_gone = std::move(is_gone),
             gone = std::set<ProcessIdentity>(), next = size_t{0}]() mutable {
    if (next < processes.size() && is_gone(processes[next])) gone.insert(processes[next]);
    if (++next < processes.size()) return true;
    done(gone);
    return false;
  });
}

void FindHeldJob(const LocalCaller& caller, const v1::HoldJobRequest& request,
                 std::function<void(absl::StatusOr<HeldJob>)> done, LoopTurns& turns) {
  std::vector<int64_t> pids(request.processes().begin(), request.processes().end());
  if (pids.empty()) pids.push_back(caller.process);
  KeepEachOnce(pids);
  HeldJob job{request.job_id(), caller.user, {}, request.end_job()};
  turns.Add(
      [caller, pids = std::move(pids), job = std::move(job), done = std::move(done)]() mutable {
        const size_t next = job.processes.size();
        const absl::StatusOr<ProcessIdentity> process = FindOwnProcess(caller, pids[next]);
        if (!process.ok()) return done(NotHeld(job, process.status())), false;
        job.processes.push_back(*process);
        if (next + 1 < pids.size()) return true;
        return done(std::move(job)), false;
      });
}

}  // namespace coppice
