// What the preloaded library, or Open MPI's component, knows of its process for as long as MPI is
// up: settings, its place in the world, the agent, and the job that its program is. A program never
// fails because Coppice is away: whoever finds no client or no job leaves the call to the MPI
// library.
//
// All ranks of the world agree on Job() and on what is on. Each one's environment says whether
// anything is asked for at all, and if not, no message is sent. If all ranks say so, rank 0's
// decides what, and rank 0 asks its agent in MPI_Init; the others are told. If only some do,
// nothing is on.
#ifndef COPPICE_AGENTS_MPI_CORE_SESSION_H_
#define COPPICE_AGENTS_MPI_CORE_SESSION_H_

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "agents/mpi/core/agent_patience.h"
#include "agents/mpi/core/communicator_ranks.h"
#include "agents/mpi/core/settings.h"
#include "client/library/coppice.h"

namespace coppice::mpi {

// Whether the program waits for an answer: only then it costs its patience.
enum class Waits { kProgram, kMeanwhile };

class Session final {
 public:
  // The process's own. Before MPI_Init and after MPI_Finalize IsUp() is false.
  static Session& Get();

  bool IsUp() const { return is_up_; }
  const Settings& settings() const { return settings_; }
  int world_rank() const { return world_rank_; }
  int world_size() const { return world_size_; }
  // Whether another world's processes started this one, which has their environment then.
  bool is_spawned() const { return is_spawned_; }
  // Whether the program may call MPI from several threads at once.
  bool has_threads() const { return has_threads_; }

  // What became of a question to the agent.
  struct Answer {
    coppice_status status = COPPICE_UNAVAILABLE;
    std::string why_not;  // unless the status is COPPICE_OK
    int wasted_ms = 0;    // that were waited for no answer

    bool IsThere() const {
      return status != COPPICE_UNAVAILABLE && status != COPPICE_DEADLINE_EXCEEDED;
    }
  };
  // Asks the node's agent, by one call of libcoppice whose status `question` returns; not if the
  // program has waited long enough already, or the agent was silent a moment ago
  // (agent_patience.h): it is COPPICE_UNAVAILABLE then. `work`: how long the agent is asked to take
  // for the answer, which is no waiting in vain. Connects at the first call. Thread-safe.
  template <class Question>
  Answer Ask(const Question& question, std::chrono::milliseconds work = {},
             Waits waits = Waits::kProgram) {
    Answer answer;
    coppice_client* const client = PresentClient(&answer, waits);
    if (client == nullptr) return answer;
    const auto due =
        waits == Waits::kProgram ? SteadyClock::now() + work : SteadyClock::time_point::max();
    answer.status = question(client);
    Note(due, &answer);
    return answer;
  }
  // This process waited for another one's question, which nobody answered. Thread-safe.
  void WaitedForOthers(int wasted_ms);
  // 0: the program is no job of Coppice's. The same on all ranks.
  uint64_t Job() const { return job_; }
  // This process's host as the fabric names it; empty: not known, or nobody needs it.
  const std::string& host() const { return host_; }
  // Ranks of a job on one host have the same number here, from 0; and how many hosts it has.
  int host_number() const { return host_number_; }
  int hosts() const { return hosts_; }
  // COPPICE_APPLICATION, or the name of the program's file.
  std::string Application() const;

  // By MPI_Init and MPI_Finalize; collective over the world if anything is asked for at all ranks.
  // Start waits for two answers of agents at most, End for one.
  void Start(const SettingSource& source);
  // Nothing goes along trees. By all ranks of the world, before StartTrees.
  void LeaveTrees() { settings_.trees = TreesWhen::kNever; }
  void End();

  // Says one line on stderr if the user wants to hear: what was done, or why it was not. A line
  // that was said before is only counted, and so is any after the first kMaxLines; how often is
  // said at the end. Thread-safe.
  void Say(const std::string& line);

 private:
  using SteadyClock = std::chrono::steady_clock;

  Session() = default;

  static constexpr size_t kMaxLines = 100;

  coppice_client* PresentClient(Answer* why_not, Waits waits);
  // An answer that came after `due` was waited for since then.
  void Note(SteadyClock::time_point due, Answer* answer);
  AgentPatience& Patience();  // client_mutex_ is held
  bool AreAllPresent() const;
  void AgreeOnSettings();
  void FindHost();
  void RegisterJob();
  // `names`: of each rank's host, kHostBytes each, at rank 0.
  void NumberHosts(const std::vector<char>& names);
  void SayCounts();

  bool is_up_ = false, has_threads_ = false, is_spawned_ = false;
  Settings settings_;
  int world_rank_ = 0;
  int world_size_ = 1;
  std::mutex client_mutex_;  // of the two below
  coppice_client* client_ = nullptr;
  std::optional<AgentPatience> patience_;
  uint64_t job_ = 0;
  std::string host_;
  int host_number_ = 0, hosts_ = 0;
  std::mutex said_mutex_;            // of the two below
  std::map<std::string, int> said_;  // how often
  int unsaid_ = 0;
};

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CORE_SESSION_H_
