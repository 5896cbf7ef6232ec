#include "agents/mpi/core/presence.h"

#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "agents/mpi/core/returned_errors.h"

namespace coppice::mpi {
namespace {

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

using Clock = std::chrono::steady_clock;

constexpr int kChildren = 16;
constexpr long kFirstPauseNs = 200'000, kLongestPauseNs = 20'000'000;

// Names are of a world: what was spawned asks the same launcher.
std::string NameOf(const std::string& what) {
  static const std::string run = RunName();
  return "coppice-" + run + "-" + what;
}

struct Published {
  std::string name, value;
};
std::vector<Published>& PublishedHere() {
  static auto* const published = new std::vector<Published>;
  return *published;
}

bool Publish(const std::string& name, const char* value) {
  if (PMPI_Publish_name(name.c_str(), MPI_INFO_NULL, value) != MPI_SUCCESS) return false;
#ifndef OPEN_MPI
  // Open MPI's names hold the run's own and end with its launcher. Taking all back at once kept it
  // from the farewells of 512 ranks, or so it seems: that run has not been seen again since.
  PublishedHere().push_back({name, value});
#endif
  return true;
}

// What was published; nothing if nothing was.
std::string LookUp(const std::string& name) {
  char value[MPI_MAX_PORT_NAME + 1] = {};
  return PMPI_Lookup_name(name.c_str(), MPI_INFO_NULL, value) == MPI_SUCCESS ? value : "";
}

// Looks every now and then until a name is there or the time is over.
class Watch final {
 public:
  explicit Watch(Clock::time_point deadline) : deadline_(deadline) {}

  // What is published by one of the names; nothing if none of them was in time.
  std::string For(const std::vector<std::string>& names) {
    long pause_ns = kFirstPauseNs;
    for (;;) {
      for (const std::string& name : names) {
        const std::string value = LookUp(name);
        if (!value.empty()) return value;
      }
      if (Clock::now() >= deadline_) return "";
      const timespec pause = {0, pause_ns};
      nanosleep(&pause, nullptr);
      pause_ns = std::min(2 * pause_ns, kLongestPauseNs);
    }
  }

 private:
  const Clock::time_point deadline_;
};

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
bool AreChildrenHere(int rank, int size, Watch& watch, const std::vector<std::string>& instead,
                     std::string* told) {
  const int last = std::min(kChildren * rank + kChildren, size - 1);
  for (int child = kChildren * rank + 1; child <= last; ++child) {
    std::vector<std::string> names = {NameOf(std::to_string(child))};
    names.insert(names.end(), instead.begin(), instead.end());
    *told = watch.For(names);
    if (*told != kHere) return false;
  }
  told->clear();
  return true;
}

Presence Lead(int size, const Names& names, std::chrono::milliseconds patience) {
  Watch watch(Clock::now() + patience);
  std::string told;
  const bool are_here = AreChildrenHere(0, size, watch, {names.given_up}, &told);
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
  Watch watch(Clock::now() + patience + patience / 4 + stagger);
  const std::vector<std::string> ends = {names.verdict, names.given_up};
  std::string told;
  if (AreChildrenHere(rank, size, watch, ends, &told)) {
    Publish(NameOf(std::to_string(rank)), kHere);
    told = watch.For(ends);
  }
  const bool is_first = told.empty();
  if (is_first) Publish(names.given_up, kGivenUp);
  if (told != kYes && told != kNo && !LookUp(names.complete).empty()) {
    told = Watch(Clock::now() + patience).For({names.verdict});
  }
  if (told == kYes) return Presence::kAll;
  return is_first ? Presence::kTimedOut : Presence::kSome;
}

}  // namespace

Presence FindPresence(std::chrono::milliseconds patience) {
  const ErrorsOfNames returned;
  int rank = 0, size = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return Presence::kAll;
  // Whether anything is published at all is seen at once, and by all alike.
  const std::string tried = NameOf("tried-" + std::to_string(rank));
  if (!Publish(tried, kHere) || LookUp(tried) != kHere) return Presence::kUnknown;
  return rank == 0 ? Lead(size, Names(), patience) : Follow(rank, size, Names(), patience);
}

void TakeBackPresence() {
  if (PublishedHere().empty()) return;
  const ErrorsOfNames returned;
  for (const Published& one : PublishedHere()) {
    PMPI_Unpublish_name(one.name.c_str(), MPI_INFO_NULL, one.value.c_str());
  }
  PublishedHere().clear();
}

}  // namespace coppice::mpi
