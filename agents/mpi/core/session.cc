#include "agents/mpi/core/session.h"

#include <errno.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/core/presence.h"
#include "agents/mpi/core/returned_errors.h"

namespace coppice::mpi {
namespace {

constexpr int kHostBytes = sizeof(coppice_capabilities::host);

std::string LastError() {
  const char* text = coppice_last_error();
  return text == nullptr || *text == '\0' ? "no reason given" : text;
}

// What all ranks must agree on, or some would wait in a collective that the others never call.
struct Agreed {
  int has_trace_file, put_pattern, reorder, reorder_budget_ms, trees, trees_after, trees_max_bytes,
      timeout_ms;
};

}  // namespace

Session& Session::Get() {
  static Session* const session = new Session;  // outlives every static object of the program
  return *session;
}

void Session::Say(const std::string& line) {
  if (!settings_.verbose) return;
  {
    const std::lock_guard lock(said_mutex_);
    const auto said = said_.find(line);
    if (said != said_.end()) {
      ++said->second;
      return;
    }
    if (said_.size() >= kMaxLines) {
      ++unsaid_;
      return;
    }
    said_[line] = 1;
  }
  std::fprintf(stderr, "coppice: %s\n", line.c_str());
}

void Session::SayCounts() {
  const std::lock_guard lock(said_mutex_);
  for (const auto& [line, times] : said_) {
    if (times > 1) std::fprintf(stderr, "coppice: %d times: %s\n", times, line.c_str());
  }
  if (unsaid_ > 0) std::fprintf(stderr, "coppice: and %d more lines like these\n", unsaid_);
  said_.clear();
  unsaid_ = 0;
}

std::string Session::Application() const {
  return settings_.application.empty() ? program_invocation_short_name : settings_.application;
}

AgentPatience& Session::Patience() {
  if (!patience_) {
    patience_.emplace(std::chrono::milliseconds(settings_.timeout_ms), SteadyClock::now());
  }
  return *patience_;
}

coppice_client* Session::PresentClient(Answer* why_not, bool is_waited_for) {
  const std::lock_guard lock(client_mutex_);
  const AgentPatience& patience = Patience();  // which begins with the first question
  const SteadyClock::time_point now = SteadyClock::now();
  if (is_waited_for ? !patience.MayAsk(now) : patience.IsLeftAlone(now)) {
    why_not->why_not = patience.IsLeftAlone(now)
                           ? "the node's agent is away"
                           : "the program has waited for the node's agent long enough already";
    return nullptr;
  }
  if (client_ == nullptr) {
    const char* agent = settings_.agent.empty() ? nullptr : settings_.agent.c_str();
    if (coppice_open(agent, static_cast<uint32_t>(settings_.timeout_ms), &client_) != COPPICE_OK) {
      client_ = nullptr;
      why_not->why_not = LastError();
    }
  }
  return client_;
}

void Session::Note(SteadyClock::time_point due, Answer* answer) {
  if (answer->status != COPPICE_OK) answer->why_not = LastError();
  const SteadyClock::time_point now = SteadyClock::now();
  const SteadyClock::duration waited = std::max(now - due, SteadyClock::duration::zero());
  const bool is_answered =
      answer->status != COPPICE_UNAVAILABLE && answer->status != COPPICE_DEADLINE_EXCEEDED;
  if (!is_answered) {
    const auto wasted = std::chrono::duration_cast<std::chrono::milliseconds>(waited);
    answer->wasted_ms = static_cast<int>(wasted.count());
  }
  const std::lock_guard lock(client_mutex_);
  Patience().Asked(is_answered, waited, now);
}

void Session::WaitedForOthers(int wasted_ms) {
  if (wasted_ms <= 0) return;
  const std::lock_guard lock(client_mutex_);
  Patience().WaitedForOthers(std::chrono::milliseconds(wasted_ms), SteadyClock::now());
}

void Session::Start() {
  PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank_);
  PMPI_Comm_size(MPI_COMM_WORLD, &world_size_);
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);  // null again after the program let go of it
  is_spawned_ = parent != MPI_COMM_NULL;
  int threads = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&threads);
  has_threads_ = threads == MPI_THREAD_MULTIPLE;
  std::string problems;
  settings_ = ReadSettings(&problems);
  if (world_rank_ == 0 && !problems.empty()) std::fprintf(stderr, "coppice: %s", problems.c_str());
  if (settings_.AskForAnything()) StartReturnedErrors();
  if (settings_.AskForAnything() && !AreAllPresent()) settings_.AskForNothing();
  if (settings_.AskForAnything()) AgreeOnSettings();
  StartCommunicatorRanks();
  is_up_ = true;
  if (settings_.trees == TreesWhen::kNever && !settings_.reorder) return;
  FindHost();
  RegisterJob();
}

bool Session::AreAllPresent() const {
#ifndef OPEN_MPI
  // Worlds that one launcher starts have no names of their own. What spawned this one decides.
  if (is_spawned_) return true;
#endif
  const Presence presence = FindPresence(std::chrono::milliseconds(settings_.start_timeout_ms));
  if (presence == Presence::kTimedOut) {
    std::fprintf(
        stderr,
        "coppice: rank %d: nothing is traced, reordered or sent along trees, because other "
        "ranks did not say within %d ms that they have this library and its variables: "
        "give both to all commands on all nodes, or set COPPICE_START_TIMEOUT_MS\n",
        world_rank_, settings_.start_timeout_ms);
  }
  return presence == Presence::kAll || presence == Presence::kUnknown;
}

void Session::AgreeOnSettings() {
  Agreed agreed = {!settings_.trace_file.empty(),
                   settings_.put_pattern,
                   settings_.reorder,
                   settings_.reorder_budget_ms,
                   static_cast<int>(settings_.trees),
                   settings_.trees_after,
                   settings_.trees_max_bytes,
                   settings_.timeout_ms};
  PMPI_Bcast(&agreed, sizeof(agreed) / sizeof(int), MPI_INT, 0, MPI_COMM_WORLD);
  if (world_rank_ == 0) return;
  settings_.trace_file = agreed.has_trace_file ? "(that of rank 0)" : "";
  settings_.put_pattern = agreed.put_pattern;
  settings_.reorder = agreed.reorder;
  settings_.reorder_budget_ms = agreed.reorder_budget_ms;
  settings_.trees = static_cast<TreesWhen>(agreed.trees);
  settings_.trees_after = agreed.trees_after;
  settings_.trees_max_bytes = agreed.trees_max_bytes;
  settings_.timeout_ms = agreed.timeout_ms;
  settings_.verbose = false;
}

void Session::FindHost() {
  host_ = settings_.host;
  if (host_.empty()) {
    coppice_capabilities facts = {};
    facts.size = sizeof(facts);
    const Answer answer =
        Ask([&](coppice_client* client) { return coppice_query(client, &facts); });
    if (answer.status == COPPICE_OK) host_ = facts.host;
  }
  if (host_.size() >= kHostBytes) host_.clear();
}

void Session::RegisterJob() {
  char own[kHostBytes] = {};
  std::memcpy(own, host_.data(), host_.size());
  std::vector<char> all(world_rank_ == 0 ? static_cast<size_t>(world_size_) * kHostBytes : 0);
  PMPI_Gather(own, kHostBytes, MPI_CHAR, all.data(), kHostBytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (world_rank_ == 0) {
    std::vector<const char*> endpoints(world_size_);
    int nameless = 0;
    for (int rank = 0; rank < world_size_; ++rank) {
      endpoints[rank] = &all[static_cast<size_t>(rank) * kHostBytes];
      if (*endpoints[rank] == '\0') ++nameless;
    }
    const std::string name = Application();
    coppice_job_request request = {};
    request.size = sizeof(request);
    request.display_name = name.c_str();
    request.endpoints = endpoints.data();
    request.endpoint_count = static_cast<uint32_t>(world_size_);
    request.hold = 1;
    if (nameless > 0) {
      Say(std::to_string(nameless) + " of " + std::to_string(world_size_) +
          " ranks have no agent; start coppice-agent there, or set COPPICE_HOST. " + LastError());
    } else {
      const Answer answer = Ask(
          [&](coppice_client* client) { return coppice_job_register(client, &request, &job_); });
      if (answer.status != COPPICE_OK) job_ = 0;
      Say(job_ == 0 ? "the program is no job: " + answer.why_not
                    : "the program is job " + std::to_string(job_));
    }
  }
  PMPI_Bcast(&job_, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (job_ != 0) NumberHosts(all);
}

void Session::NumberHosts(const std::vector<char>& names) {
  std::vector<int> numbers(world_rank_ == 0 ? world_size_ : 0);
  if (world_rank_ == 0) {
    std::unordered_map<std::string_view, int> known;
    for (int rank = 0; rank < world_size_; ++rank) {
      const std::string_view name(&names[static_cast<size_t>(rank) * kHostBytes]);
      numbers[rank] = known.try_emplace(name, static_cast<int>(known.size())).first->second;
    }
    hosts_ = static_cast<int>(known.size());
  }
  PMPI_Scatter(numbers.data(), 1, MPI_INT, &host_number_, 1, MPI_INT, 0, MPI_COMM_WORLD);
  PMPI_Bcast(&hosts_, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

void Session::End() {
  if (!is_up_) return;
  is_up_ = false;
  if (world_rank_ == 0 && job_ != 0) {
    Ask([&](coppice_client* client) { return coppice_job_end(client, job_); });
  }
  job_ = 0;
  // Whoever is here was told by all others, or told them, since they found that all are present.
  if (settings_.AskForAnything()) TakeBackPresence();
  if (client_ != nullptr) coppice_close(client_);
  client_ = nullptr;
  SayCounts();
  EndCommunicatorRanks();
}

}  // namespace coppice::mpi
