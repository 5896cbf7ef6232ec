#include "agents/mpi/core/session.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "agents/mpi/core/returned_errors.h"

namespace coppice::mpi {
namespace {

constexpr int kHostBytes = sizeof(coppice_capabilities::host);

std::string LastError() {
  const char* text = coppice_last_error();
  return text == nullptr || *text == '\0' ? "no reason given" : text;
}

using Clock = std::chrono::steady_clock;

// ---- presence ----------------------------------------------------------------------------------

// Whether all ranks of the world have this library and want something of it, found out without a
// message that a rank without the library would have to answer, or could take for one of its
// program's: by names that are published at the launcher (MPI_Publish_name), which anybody can look
// up and nobody waits for.
//
//   each rank    waits until the names of its children in a tree are there, and publishes its own
//   rank 0       then publishes "complete", and unless it finds "given up" the verdict yes;
//                the verdict no, if it has waited for too long
//   the others   take the verdict; whoever has waited for too long publishes "given up", and unless
//                it finds "complete" then, takes it for a no
//
// Whoever goes without the verdict has said so before rank 0 looked, or rank 0 would have said
// before that it is complete: so nobody goes one way while others go the other. Of a name that is
// published several times it does not matter which one is found. O(log ranks) steps of a few
// lookups each.
enum class Presence {
  kAll,
  kSome,      // some ranks did not say so in time
  kTimedOut,  // the same, and nobody knew before this rank
  kUnknown,   // the launcher publishes nothing, as it tells every rank alike
};

// What tells this run of a program from others at the launcher, or at a name server that several
// launchers share: the same for all processes that one launcher started.

constexpr int kMaxAncestors = 32;  // shells and wrappers between the proxy and this process

std::vector<std::string> CommandLine(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

int ParentOf(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  const std::string key = "PPid:";
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) == 0) return std::atoi(line.c_str() + key.size());
  }
  return 0;
}

// HOST:PORT of the launcher if these are the words of its proxy; else nothing.
std::string LauncherOf(const std::vector<std::string>& words) {
  if (words.empty() || words[0].substr(words[0].rfind('/') + 1) != "hydra_pmi_proxy") return "";
  const auto option = std::find(words.begin(), words.end(), "--control-port");
  if (option == words.end() || std::next(option) == words.end()) return "";
  std::string name = *std::next(option);
  std::replace(name.begin(), name.end(), ':', '-');
  return name;
}

// PMIX_NAMESPACE of Open MPI; else where MPICH's launcher (Hydra) is reached, as the command line
// of its proxy on this node says, one of this process's ancestors; else "world".
std::string RunName() {
  const char* const job = std::getenv("PMIX_NAMESPACE");
  if (job != nullptr) return job;
  int process = getppid();
  for (int i = 0; i < kMaxAncestors && process > 1; ++i) {
    const std::string launcher = LauncherOf(CommandLine(process));
    if (!launcher.empty()) return launcher;
    process = ParentOf(process);
  }
  return "world";
}

constexpr int kChildren = 16;
constexpr long kFirstPauseNs = 200'000, kMaxPauseNs = 20'000'000;

const char* who_reads = "";  // SettingSource's

// Names are of a world: what was spawned asks the same launcher. A process may have the library and
// the component.
std::string NameOf(const std::string& what) {
  static const std::string run = RunName();
  return "coppice-" + std::string(who_reads) + "-" + run + "-" + what;
}

// Names and values, which outlive every static object of the program.
auto& PublishedHere() {
  static auto* const published = new std::vector<std::pair<std::string, const char*>>;
  return *published;
}

bool Publish(const std::string& name, const char* value) {
  if (PMPI_Publish_name(name.c_str(), MPI_INFO_NULL, value) != MPI_SUCCESS) return false;
#ifndef OPEN_MPI
  // Open MPI's names hold the run's own and end with its launcher. Taking all back at once kept it
  // from the farewells of 512 ranks, or so it seems: that run has not been seen again since.
  PublishedHere().emplace_back(name, value);
#endif
  return true;
}

// What was published; nothing if nothing was.
std::string LookUp(const std::string& name) {
  char value[MPI_MAX_PORT_NAME + 1] = {};
  return PMPI_Lookup_name(name.c_str(), MPI_INFO_NULL, value) == MPI_SUCCESS ? value : "";
}

// What is published by one of the names; nothing if none of them was in time. Looks every now and
// then.
std::string WaitFor(const std::vector<std::string>& names, Clock::time_point deadline) {
  timespec pause = {0, kFirstPauseNs};
  for (;;) {
    for (const std::string& name : names) {
      const std::string value = LookUp(name);
      if (!value.empty()) return value;
    }
    if (Clock::now() >= deadline) return "";
    nanosleep(&pause, nullptr);
    pause.tv_nsec = std::min(2 * pause.tv_nsec, kMaxPauseNs);
  }
}

// MPICH hands errors of names to the world, Open MPI from version 5 on to this process alone.
struct ErrorsOfNames {
  const ReturnedErrors of_world;
#ifdef OPEN_MPI
  const ReturnedErrors of_self{MPI_COMM_SELF};
#endif
};

constexpr char kHere[] = "here", kYes[] = "yes", kNo[] = "no", kGivenUp[] = "away";

struct Names {
  std::string complete = NameOf("complete"), verdict = NameOf("verdict"),
              given_up = NameOf("given-up");
};

// True when the whole subtree of `rank`, but itself, is there; else *told is what was there of
// `instead`, if anything was.
bool AreChildrenHere(int rank, int size, Clock::time_point deadline,
                     const std::vector<std::string>& instead, std::string* told) {
  const int last = std::min(kChildren * rank + kChildren, size - 1);
  for (int child = kChildren * rank + 1; child <= last; ++child) {
    std::vector<std::string> names = {NameOf(std::to_string(child))};
    names.insert(names.end(), instead.begin(), instead.end());
    *told = WaitFor(names, deadline);
    if (*told != kHere) return false;
  }
  told->clear();
  return true;
}

Presence Lead(int size, const Names& names, std::chrono::milliseconds patience) {
  std::string told;
  const bool are_here = AreChildrenHere(0, size, Clock::now() + patience, {names.given_up}, &told);
  if (are_here) Publish(names.complete, kHere);
  if (!are_here || !LookUp(names.given_up).empty()) {
    Publish(names.verdict, kNo);
    return are_here || !told.empty() ? Presence::kSome : Presence::kTimedOut;
  }
  Publish(names.verdict, kYes);
  return Presence::kAll;
}

Presence Follow(int rank, int size, const Names& names, std::chrono::milliseconds patience) {
  // Rank 0 is the first to lose it, and of the others one before the next.
  const auto stagger = patience / 64 * std::min(rank, 32);
  const auto deadline = Clock::now() + patience + patience / 4 + stagger;
  const std::vector<std::string> ends = {names.verdict, names.given_up};
  std::string told;
  if (AreChildrenHere(rank, size, deadline, ends, &told)) {
    Publish(NameOf(std::to_string(rank)), kHere);
    told = WaitFor(ends, deadline);
  }
  const bool is_first = told.empty();
  if (is_first) Publish(names.given_up, kGivenUp);
  if (told != kYes && told != kNo && !LookUp(names.complete).empty()) {
    told = WaitFor({names.verdict}, Clock::now() + patience);
  }
  if (told == kYes) return Presence::kAll;
  return is_first ? Presence::kTimedOut : Presence::kSome;
}

// The same on all ranks of the world that ask: kAll, or one of the others. Takes little longer than
// twice `patience` at most, at rank 0 little longer than once.
Presence FindPresence(int rank, int size, std::chrono::milliseconds patience) {
  const ErrorsOfNames returned;
  if (size == 1) return Presence::kAll;
  // Whether anything is published at all is seen at once, and by all alike.
  const std::string tried = NameOf("tried-" + std::to_string(rank));
  if (!Publish(tried, kHere) || LookUp(tried) != kHere) return Presence::kUnknown;
  return rank == 0 ? Lead(size, Names(), patience) : Follow(rank, size, Names(), patience);
}

// Takes back what this rank has published, on MPICH. Not before all ranks have found their
// presence.
void TakeBackPresence() {
  if (PublishedHere().empty()) return;
  const ErrorsOfNames returned;
  for (const auto& [name, value] : PublishedHere()) {
    PMPI_Unpublish_name(name.c_str(), MPI_INFO_NULL, value);
  }
  PublishedHere().clear();
}

}  // namespace

// ---- the session -------------------------------------------------------------------------------

Session& Session::Get() {
  static Session* const session = new Session;  // outlives every static object of the program
  return *session;
}

void Session::Say(const std::string& line) {
  if (!settings_.verbose) return;
  {
    const std::lock_guard lock(said_mutex_);
    if (said_.size() >= kMaxLines && !said_.contains(line)) {
      ++unsaid_;
      return;
    }
    if (++said_[line] > 1) return;
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
    patience_.emplace(std::chrono::milliseconds(settings_.timeout_ms), Clock::now());
  }
  return *patience_;
}

coppice_client* Session::PresentClient(Answer* why_not, Waits waits) {
  const std::lock_guard lock(client_mutex_);
  const AgentPatience& patience = Patience();  // which begins with the first question
  const Clock::time_point now = Clock::now();
  if (waits == Waits::kProgram ? !patience.MayAsk(now) : patience.IsLeftAlone(now)) {
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

void Session::Note(std::chrono::steady_clock::time_point due, Answer* answer) {
  if (answer->status != COPPICE_OK) answer->why_not = LastError();
  const Clock::time_point now = Clock::now();
  const Clock::duration waited = std::max(now - due, Clock::duration::zero());
  const bool is_answered = answer->IsThere();
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
  Patience().WaitedForOthers(std::chrono::milliseconds(wasted_ms), Clock::now());
}

void Session::Start(const SettingSource& source) {
  who_reads = source.reader;
  world_rank_ = RankIn(MPI_COMM_WORLD);
  world_size_ = SizeOf(MPI_COMM_WORLD);
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);  // null again after the program let go of it
  is_spawned_ = parent != MPI_COMM_NULL;
  int threads = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&threads);
  has_threads_ = threads == MPI_THREAD_MULTIPLE;
  std::string problems;
  settings_ = ReadSettings(source, &problems);
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
  const Presence presence =
      FindPresence(world_rank_, world_size_, std::chrono::milliseconds(settings_.start_timeout_ms));
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

// At most so many bytes, as the daemon takes it: letters, digits and a few signs, and parts between
// slashes that no shell or path could take for something else.
std::string PlainName(std::string_view name, size_t most) {
  std::string plain;
  for (const char c : name) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                          (c >= 'a' && c <= 'z') ||
                          std::string_view("._-+/@").find(c) != std::string_view::npos;
    const bool begins_part = plain.empty() || plain.back() == '/';
    if (begins_part && c == '/') continue;
    plain += !is_plain || (begins_part && (c == '-' || c == '.')) ? '_' : c;
  }
  plain.resize(std::min(plain.size(), most));
  while (!plain.empty() && plain.back() == '/') plain.pop_back();
  return plain;
}

void Session::AgreeOnSettings() {
  static_assert(std::is_trivially_copyable_v<AgreedSettings>);
  constexpr size_t kMost = sizeof(settings_.agreed_application) - 1;
  PlainName(Application(), kMost).copy(settings_.agreed_application, kMost);
  PMPI_Bcast(static_cast<AgreedSettings*>(&settings_), sizeof(AgreedSettings), MPI_BYTE, 0,
             MPI_COMM_WORLD);
  if (world_rank_ != 0) settings_.verbose = false;
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
    request.partition = settings_.partition;
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
