#include "daemon/manager/distances/distance_meter.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/distances/distance_store.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

// How soon a cancellation is seen while a round waits.
constexpr absl::Duration kAskEvery = absl::Milliseconds(200);
constexpr size_t kMaxNamedHosts = 5;  // hosts in a message
constexpr size_t kMaxWords = 300;     // characters of an agent's
// Tasks that a connection remembers, so that an answer that comes late is told from a made-up one.
constexpr size_t kMaxGiven = 64;

absl::Status ShuttingDown() {
  return absl::UnavailableError("daemon: it is shutting down; what was measured is kept");
}

// Nobody can guess it, so that nobody else on the network measures with an agent.
std::string NewToken() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&token, absl::Hex(random(), absl::kZeroPad8));
  return token;
}

// What an agent says, for people.
std::string Shown(const std::string& words) { return absl::CHexEscape(words.substr(0, kMaxWords)); }

}  // namespace

DistanceMeter::~DistanceMeter() { Stop(); }

void DistanceMeter::Run(Actions& actions) {
  for (const std::function<void()>& action : actions) action();
}

void DistanceMeter::Start() {
  timer_.Start([this] { Loop(); });
}

void DistanceMeter::Stop() {
  timer_.Stop();
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    while (!measurements_.empty()) {
      EndMeasurement(std::shared_ptr<Measurement>(measurements_.back()), ShuttingDown(), actions);
    }
  }
  Run(actions);
}

void DistanceMeter::Loop() {
  for (;;) {
    const absl::Duration wait = std::min(Expire(), kMaxWait);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(wait),
                      [this] { return timer_.stopping() || woken_; });
    woken_ = false;
    if (timer_.stopping()) return;
  }
}

absl::StatusOr<DistanceMeter::Connected> DistanceMeter::Connect(AgentInfo info, AgentLink link,
                                                                AgentIdentity identity) {
  RETURN_IF_ERROR(CheckAgentInfo(info));
  const std::shared_ptr<const FabricView> view = manager_->fabric();
  if (view == nullptr) return NoFabricError();
  ASSIGN_OR_RETURN(info.host, HostOfAgent(*view->snapshot->fabric, info));
  if (absl::Status own = CheckHostIsOf(*view->snapshot->fabric, identity, info.host); !own.ok()) {
    Actor actor;
    actor.user = actor.caller = identity.name;
    actor.origin = identity.origin;
    actor.method = "Agents.Connect";
    manager_->deeds().Note(actor, absl::StrCat("host:", info.host), own.code());
    return own;
  }
  Connected connected;
  connected.host = info.host;
  connected.database = manager_->DatabaseId();
  manager_->HeardOfDatabase(info.last_database, absl::StrCat("the agent of host ", info.host));
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    const AgentTable::Agent* const present = agents_.Find(info.host);
    if (present != nullptr && present->identity != identity.name) {
      return absl::AlreadyExistsError(absl::StrCat(
          "host ", info.host, " has an agent, which came as ", Shown(present->identity),
          ", and you come as ", Shown(identity.name), ": stop that one, or come as it does"));
    }
    const AgentTable::Entered entered =
        agents_.Enter(std::move(info), std::make_shared<AgentLink>(std::move(link)), clock_->Now(),
                      std::move(identity.name));
    connected.session = entered.session;
    if (entered.replaced != 0) {
      FailTasksOf(entered.replaced, "another agent took its place", actions);
      actions.push_back([old = entered.old_link, host = connected.host] {
        old->end(absl::AbortedError(absl::StrCat("another agent has connected for host ", host,
                                                 "; let one run on each host")));
      });
    }
  }
  Run(actions);
  return connected;
}

void DistanceMeter::Disconnect(AgentSession session) {
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    if (!agents_.Leave(session, clock_->Now())) return;
    FailTasksOf(session, "its agent has gone", actions);
  }
  Run(actions);
}

void DistanceMeter::FailTasksOf(AgentSession session, absl::string_view why, Actions& actions) {
  given_.erase(session);
  const auto found = task_of_.find(session);
  if (found == task_of_.end()) return;
  const uint64_t id = found->second;
  const Task& task = tasks_.at(id);
  const std::string& host = session == task.active ? task.hosts.first : task.hosts.second;
  EndTask(id, absl::StrCat(host, ": ", why), actions);
}

absl::Status DistanceMeter::TakeOutcome(AgentSession session, const PingPongOutcome& outcome) {
  RETURN_IF_ERROR(CheckOutcome(outcome));
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    const auto given = given_.find(session);
    if (given == given_.end() ||
        std::find(given->second.begin(), given->second.end(), outcome.id) == given->second.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("ping_pong.id: ", outcome.id, " is no task that this agent was given"));
    }
    const auto found = tasks_.find(outcome.id);
    if (found == tasks_.end()) return absl::OkStatus();  // late
    const Task& task = found->second;
    const bool is_active = session == task.active;
    const std::string& host = is_active ? task.hosts.first : task.hosts.second;
    if (outcome.error.empty()) {
      if (!is_active) return absl::OkStatus();
      // Under the lock: it is there before anybody can be told that the round is over.
      distance_store_->Put(
          {{task.hosts.first, task.hosts.second, outcome.latency_us, outcome.latency_spread_us,
            outcome.bandwidth_gbps, outcome.bandwidth_spread_gbps, outcome.samples, clock_->Now(),
            outcome.transport}});
      task.measurement->NoteMeasured(task.hosts, outcome.transport, Shown(outcome.remark));
    }
    EndTask(outcome.id, outcome.error.empty() ? "" : absl::StrCat(host, ": ", Shown(outcome.error)),
            actions);
  }
  Run(actions);
  return absl::OkStatus();
}

std::vector<AgentView> DistanceMeter::Agents(absl::string_view after, size_t limit) const {
  std::lock_guard lock(mutex_);
  return agents_.List(after, limit);
}

size_t DistanceMeter::connected() const {
  std::lock_guard lock(mutex_);
  return agents_.connected_count();
}

absl::StatusOr<std::vector<std::string>> DistanceMeter::Participants(
    const Fabric& fabric, const MeasureArgs& args, std::vector<std::string>& failures) const {
  ASSIGN_OR_RETURN(const std::vector<std::string> named,
                   ExpandEndpointNames(fabric, args.hosts, kMaxListedNodes, "hosts"));
  std::set<std::string> wanted(named.begin(), named.end());
  for (const std::string& host : wanted) {
    if (!fabric.FindHost(host).has_value() && agents_.Find(host) == nullptr) {
      return absl::NotFoundError(absl::StrCat("hosts: the fabric has no host ",
                                              absl::CHexEscape(host),
                                              "; coppicectl fabric nodes lists them"));
    }
  }
  if (wanted.empty()) {
    for (std::string& host : agents_.Connected()) wanted.insert(std::move(host));
  }
  const bool is_verbs = args.transport == Transport::kVerbs;
  std::vector<std::string> hosts, without, deaf, verbless;
  for (const std::string& host : wanted) {
    const AgentTable::Agent* const agent = agents_.Find(host);
    std::vector<std::string>& kind = agent == nullptr                      ? without
                                     : agent->info.measure_address.empty() ? deaf
                                     : is_verbs && !agent->info.has_verbs  ? verbless
                                                                           : hosts;
    kind.push_back(host);
  }
  if (hosts.size() < 2) {
    std::string why = absl::StrCat("of ", wanted.size(), " hosts ", hosts.size(),
                                   " can be measured, which takes two");
    if (!without.empty())
      absl::StrAppend(&why, "; without an agent: ", FirstOf(without, kMaxNamedHosts));
    if (!deaf.empty())
      absl::StrAppend(&why, "; with one that takes no part: ", FirstOf(deaf, kMaxNamedHosts));
    if (!verbless.empty())
      absl::StrAppend(&why, "; without verbs: ", FirstOf(verbless, kMaxNamedHosts));
    return absl::FailedPreconditionError(absl::StrCat(why, "; start coppice-agent on them"));
  }
  for (const std::string& host : without) failures.push_back(host + ": it has no agent");
  for (const std::string& host : deaf) failures.push_back(host + ": its agent takes no part");
  for (const std::string& host : verbless) failures.push_back(host + ": its agent has no verbs");
  return hosts;
}

absl::Status DistanceMeter::CheckFree(const std::vector<std::string>& hosts) const {
  std::vector<std::string> busy;
  for (const auto& other : measurements_) {
    const std::vector<std::string>& held = other->hosts();
    std::set_intersection(hosts.begin(), hosts.end(), held.begin(), held.end(),
                          std::back_inserter(busy));
  }
  if (busy.empty()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("another measurement holds ",
                                                   FirstOf(busy, kMaxNamedHosts),
                                                   "; wait for its end, or leave them out"));
}

absl::Status DistanceMeter::Measure(const MeasureArgs& args, MeasureWatch watch) {
  RETURN_IF_ERROR(CheckMeasureArgs(args));
  const std::shared_ptr<const FabricView> view = manager_->fabric();
  if (view == nullptr) return NoFabricError();
  std::vector<std::string> hosts, failures;
  {
    std::lock_guard lock(mutex_);
    ASSIGN_OR_RETURN(hosts, Participants(*view->snapshot->fabric, args, failures));
    RETURN_IF_ERROR(CheckFree(hosts));
  }
  // Without the lock: of many hosts this takes a while, in which agents go on.
  PairRounds rounds = hosts.size() <= args.complete_up_to
                          ? CompleteRounds(static_cast<uint32_t>(hosts.size()))
                          : SampledRounds(LevelsOf(*view->snapshot, hosts), SampleOptions());
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return ShuttingDown();
    RETURN_IF_ERROR(CheckFree(hosts));
    const auto measurement =
        std::make_shared<Measurement>(args, std::move(watch), std::move(hosts), std::move(rounds),
                                      std::move(failures), clock_->Monotonic());
    measurements_.push_back(measurement);
    Proceed(measurement, actions);
    woken_ = true;
    changed_.notify_all();
  }
  Run(actions);
  return absl::OkStatus();
}

void DistanceMeter::Proceed(const std::shared_ptr<Measurement>& measurement, Actions& actions) {
  const MeasureWatch& watch = measurement->watch();
  if (watch.is_cancelled && watch.is_cancelled()) {
    return EndMeasurement(measurement, absl::CancelledError("measurement: the client went away"),
                          actions);
  }
  const std::vector<HostPair> round = measurement->NextRound(clock_->Monotonic());
  if (round.empty()) return EndMeasurement(measurement, absl::OkStatus(), actions);
  // Those that fail at once come last: the last of them may begin the next round.
  std::vector<std::pair<HostPair, std::string>> failed;
  for (const HostPair& hosts : round) {
    const AgentTable::Agent* const a = agents_.Find(hosts.first);
    const AgentTable::Agent* const b = agents_.Find(hosts.second);
    const bool are_there = a != nullptr && b != nullptr && !b->info.measure_address.empty();
    absl::Status speaks;  // else not over what was asked for
    if (measurement->args().transport == Transport::kVerbs) {
      speaks = PartitionOf(measurement->args(), hosts).status();
    }
    if (are_there && !speaks.ok()) {
      failed.emplace_back(hosts, std::string(speaks.message()));
    } else if (are_there) {
      SendPair(measurement, hosts, actions);
    } else {
      failed.emplace_back(hosts, absl::StrCat(a == nullptr ? hosts.first : hosts.second,
                                              ": it has no agent any more"));
    }
  }
  for (const auto& [hosts, error] : failed) EndPair(measurement, hosts, error, actions);
}

void DistanceMeter::SendPair(const std::shared_ptr<Measurement>& measurement, const HostPair& hosts,
                             Actions& actions) {
  const AgentTable::Agent& a = *agents_.Find(hosts.first);
  const AgentTable::Agent& b = *agents_.Find(hosts.second);
  const MeasureArgs& args = measurement->args();
  PingPong passive{.id = ++last_task_,
                   .token = NewToken(),
                   .active = false,
                   .peer = hosts.first,
                   .peer_address = {},
                   .latency_samples = args.latency_samples,
                   .bandwidth_samples = args.bandwidth_samples,
                   .bandwidth_bytes = args.bandwidth_bytes,
                   .timeout = PairTimeout(args)};
  const bool have_verbs = a.info.has_verbs && b.info.has_verbs;
  const absl::StatusOr<PartitionNum> partition = PartitionOf(args, hosts);
  passive.transport =
      args.transport.value_or(have_verbs && partition.ok() ? Transport::kVerbs : Transport::kTcp);
  passive.or_tcp = !args.transport.has_value();
  if (passive.transport == Transport::kVerbs) passive.partition = *partition;
  PingPong active = passive;
  active.active = true;
  active.peer = hosts.second;
  active.peer_address = b.info.measure_address;
  tasks_.emplace(last_task_, Task{measurement, hosts, a.session, b.session});
  for (const AgentSession session : {a.session, b.session}) {
    task_of_[session] = last_task_;
    std::deque<uint64_t>& given = given_[session];
    given.push_back(last_task_);
    if (given.size() > kMaxGiven) given.pop_front();
  }
  // The one that waits first.
  actions.push_back([link = b.link, task = std::move(passive)] { link->send(task); });
  actions.push_back([link = a.link, task = std::move(active)] { link->send(task); });
}

absl::StatusOr<PartitionNum> DistanceMeter::PartitionOf(const MeasureArgs& args,
                                                        const HostPair& hosts) const {
  const std::shared_ptr<const FabricView> view = manager_->fabric();
  if (view == nullptr) return args.partition;
  const Fabric& fabric = *view->snapshot->fabric;
  const auto port_of = [&](const std::string& name) {
    const std::optional<HostIndex> host = fabric.FindHost(name);
    const auto cabled = host ? fabric.endpoints_of_host(*host) : absl::Span<const EndpointIndex>();
    return cabled.empty() ? Guid() : fabric.endpoint(cabled.front()).port_guid;
  };
  return PartitionOfPair(*view->snapshot, port_of(hosts.first), port_of(hosts.second),
                         args.partition);
}

void DistanceMeter::EndTask(uint64_t id, const std::string& error, Actions& actions) {
  const auto found = tasks_.find(id);
  const Task task = std::move(found->second);
  tasks_.erase(found);
  task_of_.erase(task.active);
  task_of_.erase(task.passive);
  EndPair(task.measurement, task.hosts, error, actions);
}

void DistanceMeter::EndPair(const std::shared_ptr<Measurement>& measurement, const HostPair& hosts,
                            const std::string& error, Actions& actions) {
  if (!measurement->EndPair(hosts, error)) return;
  if (measurement->watch().progress) {
    actions.push_back([measurement, standing = measurement->Standing(clock_->Monotonic())] {
      measurement->watch().progress(standing);
    });
  }
  Proceed(measurement, actions);
}

void DistanceMeter::EndMeasurement(const std::shared_ptr<Measurement>& measurement,
                                   const absl::Status& status, Actions& actions) {
  std::erase(measurements_, measurement);
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    const auto here = task++;
    if (here->second.measurement != measurement) continue;
    for (const AgentSession session : {here->second.active, here->second.passive}) {
      const AgentTable::Agent* const agent = agents_.Find(session);
      if (agent == nullptr || agent->link->stop == nullptr) continue;
      actions.push_back([link = agent->link, id = here->first] { link->stop(id); });
    }
    task_of_.erase(here->second.active);
    task_of_.erase(here->second.passive);
    tasks_.erase(here);
  }
  absl::StatusOr<MeasureStanding> result = measurement->Summary(clock_->Monotonic());
  if (!status.ok()) result = status;
  actions.push_back(
      [measurement, result = std::move(result)] { measurement->watch().done(result); });
}

absl::Duration DistanceMeter::Expire() {
  Actions actions;
  absl::Duration wait = absl::InfiniteDuration();
  {
    std::lock_guard lock(mutex_);
    const absl::Duration now = clock_->Monotonic();
    const std::vector<std::shared_ptr<Measurement>> all = measurements_;
    for (const std::shared_ptr<Measurement>& measurement : all) {
      const MeasureWatch& watch = measurement->watch();
      if (watch.is_cancelled && watch.is_cancelled()) {
        EndMeasurement(measurement, absl::CancelledError("measurement: the client went away"),
                       actions);
      } else if (measurement->is_late(now)) {
        FailLate(measurement, actions);
      }
    }
    for (const auto& measurement : measurements_) {
      wait = std::min({wait, measurement->deadline() - now, kAskEvery});
    }
  }
  Run(actions);
  return std::max(wait, absl::ZeroDuration());
}

void DistanceMeter::FailLate(const std::shared_ptr<Measurement>& measurement, Actions& actions) {
  std::vector<uint64_t> late;
  for (const auto& [id, task] : tasks_) {
    if (task.measurement == measurement) late.push_back(id);
  }
  std::sort(late.begin(), late.end());
  for (const uint64_t id : late) {
    EndTask(id,
            absl::StrCat("neither agent has said anything for ",
                         absl::FormatDuration(PairTimeout(measurement->args()))),
            actions);
  }
}

}  // namespace coppice
