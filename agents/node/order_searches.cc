#include "agents/node/order_searches.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agents/node/asked_once.h"
#include "agents/node/renewal_times.h"
#include "agents/node/search_guard.h"
#include "agents/node/search_outcome.h"
#include "agents/node/search_request.h"

namespace coppice {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr char kGetJob[] = "/coppice.v1.Jobs/GetJob";
constexpr char kUsualPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// This program's file, as it is called at the start: sudo has to find it, too.
std::string OwnProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::string FromTheRoot(const std::string& path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).string();
}

// Each once, in the order of the job's ranks.
void AddHosts(const v1::Job& job, v1::GuardedSearch& search) {
  std::set<absl::string_view> seen;
  for (const std::string& endpoint : job.endpoints()) {
    const absl::string_view host = absl::string_view(endpoint).substr(0, endpoint.rfind('/'));
    if (seen.insert(host).second) search.add_hosts(std::string(host));
  }
}

absl::Status OfJob(const std::string& job, const absl::Status& status) {
  return {status.code(), absl::StrCat("search of job ", job, ": ", status.message())};
}

void AddVariable(const char* name, std::string value, std::vector<std::string>& environment) {
  if (!value.empty()) environment.push_back(absl::StrCat(name, "=", value));
}

std::string OwnVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

OrderSearches::OrderSearches(EventLoop* loop, DaemonLink* link, const Settings& settings)
    : loop_(loop),
      link_(link),
      settings_(settings.search),
      tls_(settings.tls),
      socket_(FromTheRoot(settings.socket)),
      guard_{OwnProgram(), kGuardCommand, settings.file} {}

OrderSearches::~OrderSearches() {
  for (auto& [number, search] : searches_) {
    loop_->Cancel(search.limit);
    if (search.question != nullptr) search.question->Abandon();
  }
}

// One user's searches leave room for another's.
absl::Status OrderSearches::Admit(const LocalCaller& caller, const std::string& job) const {
  size_t of_user = 0;
  for (const auto& [number, search] : searches_) {
    of_user += search.caller.uid == caller.uid ? 1 : 0;
    if (search.request.job_id() != job) continue;
    return absl::AlreadyExistsError("one of it goes on already; wait for its end");
  }
  const size_t most_of_user = (settings_.at_once + 1) / 2;
  if (searches_.size() < settings_.at_once && of_user < most_of_user) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("this node's agent has ", searches_.size(), " of ", settings_.at_once,
                   " searches under way, ", of_user, " of ", most_of_user, " for user ",
                   caller.user, " (search.at_once); wait for one to end"));
}

uint64_t OrderSearches::Begin(const LocalCaller& caller, const v1::SearchOrderRequest& request,
                              Milliseconds timeout, Done done) {
  absl::Status status = CheckSearchRequest(settings_, caller, geteuid(), request);
  if (status.ok()) {
    status = Admit(caller, request.job_id());
    if (!status.ok()) status = OfJob(request.job_id(), status);
  }
  const uint64_t number = ++last_;
  if (!status.ok()) {
    done(status);
    return number;
  }
  Search& search = searches_[number];
  search.caller = caller;
  search.request = request;
  search.done = std::move(done);
  const Milliseconds most = Milliseconds(request.budget_ms()) + settings_.grace;
  search.limit = loop_->After(timeout.count() > 0 ? std::min(timeout, most) : most, [this, number] {
    EndAs(number, absl::DeadlineExceededError(absl::StrCat(
                      "it took longer than its budget and ", settings_.grace.count(),
                      " ms beside it (search.grace), or than its caller waits, and was ended")));
  });
  v1::KeepAliveRequest renewal;
  renewal.set_id(request.job_id());
  Ask(number, kKeepAlive, renewal.SerializeAsString(), &OrderSearches::OnOwned);
  return number;
}

void OrderSearches::Ask(uint64_t number, const char* method, const std::string& request,
                        void (OrderSearches::*answered)(uint64_t, const grpc::Status&,
                                                        const std::string&)) {
  Search& search = searches_.at(number);
  search.question =
      AskOnce(*link_, {method, search.caller.user, request, kLongestTry}, alive_,
              [this, number, answered](const grpc::Status& status, const std::string& message) {
                const auto found = searches_.find(number);
                if (found == searches_.end()) return;
                found->second.question.reset();
                (this->*answered)(number, status, message);
              });
}

void OrderSearches::OnOwned(uint64_t number, const grpc::Status& status,
                            const std::string& message) {
  const std::string job = searches_.at(number).request.job_id();
  const absl::Status renewed = RenewedJob(job, status, message).status();
  if (!renewed.ok()) return Finish(number, renewed);
  if (!HasWord(settings_.command, kHostFileWord)) return Start(number, {});
  v1::GetJobRequest request;
  request.set_id(job);
  Ask(number, kGetJob, request.SerializeAsString(), &OrderSearches::OnHosts);
}

void OrderSearches::OnHosts(uint64_t number, const grpc::Status& status,
                            const std::string& message) {
  v1::Job job;
  if (!status.ok()) return Finish(number, FromGrpcStatus(status));
  if (!job.ParseFromString(message) || job.endpoints().empty()) {
    return Finish(number, absl::InternalError("the daemon does not say on which hosts it is"));
  }
  Start(number, job);
}

std::vector<std::string> OrderSearches::Environment(bool is_own) const {
  std::vector<std::string> environment;
  const std::string path = OwnVariable("PATH");
  AddVariable("PATH", path.empty() ? kUsualPath : path, environment);
  AddVariable("LANG", OwnVariable("LANG"), environment);
  AddVariable("COPPICE_SERVER", link_->server(), environment);
  if (!is_own) return environment;
  AddVariable("HOME", OwnVariable("HOME"), environment);
  AddVariable("TMPDIR", OwnVariable("TMPDIR"), environment);
  AddVariable("COPPICE_TLS_CA", tls_.ca, environment);
  AddVariable("COPPICE_TLS_CERT", tls_.cert, environment);
  AddVariable("COPPICE_TLS_KEY", tls_.key, environment);
  return environment;
}

void OrderSearches::Start(uint64_t number, const v1::Job& job) {
  Search& search = searches_.at(number);
  v1::GuardedSearch guarded;
  *guarded.mutable_request() = search.request;
  guarded.set_server(link_->server());
  guarded.set_agent(socket_);
  AddHosts(job, guarded);
  const SearchWords values = WordsOf(guarded, search.caller.uid);
  search.command = CommandText(FillWords(settings_.command, values));
  const bool is_own = search.caller.uid == geteuid();
  SearchProcess::Command command;
  if (!is_own) command.words = FillWords(settings_.as_user, values);
  command.words.insert(command.words.end(), guard_.begin(), guard_.end());
  command.environment = Environment(is_own);
  command.input = GuardInput(guarded);
  auto process = SearchProcess::Start(loop_, command,
                                      [this, number](int wait_status, const std::string& said) {
                                        OnExit(number, wait_status, said);
                                      });
  if (!process.ok()) return Finish(number, process.status());
  search.process = *std::move(process);
  spdlog::info("search of job {} for user {}: {}", search.request.job_id(), search.caller.user,
               search.command);
}

void OrderSearches::OnExit(uint64_t number, int wait_status, const std::string& said) {
  const Search& search = searches_.at(number);
  if (search.verdict.ok()) return Finish(number, OutcomeOf(search.command, wait_status, said));
  const std::string words = LastWords(said);
  Finish(number, {search.verdict.code(),
                  absl::StrCat("\"", search.command, "\": ", search.verdict.message(),
                               words.empty() ? "" : ": ", words)});
}

void OrderSearches::EndAs(uint64_t number, const absl::Status& verdict) {
  const auto found = searches_.find(number);
  if (found == searches_.end()) return;
  Search& search = found->second;
  if (search.process == nullptr) return Finish(number, verdict);
  if (search.verdict.ok()) search.verdict = verdict;
  search.process->End();
}

void OrderSearches::Cancel(uint64_t number) {
  EndAs(number, absl::CancelledError("its caller wanted no more of it, and it was ended"));
}

void OrderSearches::Abandon(uint64_t number) {
  const auto found = searches_.find(number);
  if (found == searches_.end()) return;
  found->second.done = nullptr;
  Cancel(number);
}

void OrderSearches::Finish(uint64_t number, const absl::Status& status) {
  auto node = searches_.extract(number);
  Search& search = node.mapped();
  loop_->Cancel(search.limit);
  if (search.question != nullptr) search.question->Abandon();
  const absl::Status told = status.ok() ? status : OfJob(search.request.job_id(), status);
  spdlog::info("search of job {} for user {}: {}", search.request.job_id(), search.caller.user,
               told.ok() ? "has ended well" : std::string(status.message()));
  if (search.done) search.done(told);
}

}  // namespace coppice
