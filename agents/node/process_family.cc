#include "agents/node/process_family.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agents/node/owned_fd.h"

namespace coppice {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSignalled = 128;
constexpr std::chrono::milliseconds kLookEvery{20};  // while the last processes end

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, number);
  return signals;
}

// In a process group of its own.
absl::StatusOr<pid_t> StartCommand(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, pipes;
  sigemptyset(&none);
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &pipes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t command = 0;
  const int error =
      posix_spawnp(&command, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return command;
  return absl::FailedPreconditionError(
      absl::StrCat(words[0], " cannot be started: ", std::strerror(error)));
}

int ExitStatusOf(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : kSignalled + WTERMSIG(wait_status);
}

// The command's processes, from its start to the end of the last.
class Family final {
 public:
  Family(pid_t command, int signals) : command_(command), signals_(signals) {}

  // The command's exit status, once nothing is left of it.
  int Run() {
    std::optional<Clock::time_point> kill_at;
    while (!status_ || (kill_at && Clock::now() < *kill_at && HasChildren())) {
      const bool is_told = Wait(kill_at.has_value());
      Reap();
      if (is_told && !kill_at) {
        kill_at = Clock::now() + kFamilyPatience;
        if (!status_) kill(-command_, SIGTERM);
      }
      if (kill_at && Clock::now() >= *kill_at) break;
    }
    KillAll();
    return status_.value_or(kSignalled + SIGKILL);
  }

 private:
  // For something to happen. True: somebody wants an end.
  bool Wait(bool is_ending) {
    pollfd events[] = {{signals_, POLLIN, 0}, {STDIN_FILENO, 0, 0}};
    poll(events, is_ending ? 1 : 2, is_ending ? static_cast<int>(kLookEvery.count()) : -1);
    bool is_told = !is_ending && (events[1].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
    is_told |= TakeSignals();
    return is_told;
  }

  // Whether there was another than the end of a child.
  bool TakeSignals() {
    bool is_told = false;
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      is_told |= info.ssi_signo != SIGCHLD;
    }
    return is_told;
  }

  void Reap() {
    int wait_status = 0;
    pid_t process = 0;
    while ((process = waitpid(-1, &wait_status, WNOHANG)) > 0) {
      if (process == command_) status_ = ExitStatusOf(wait_status);
    }
  }

  static bool HasChildren() {
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  }

  // Children of what is killed become children of this process, and are killed in turn. The group
  // has its number for itself only until the command is waited for.
  void KillAll() {
    const Clock::time_point most = Clock::now() + kFamilyPatience;
    for (Reap(); HasChildren() && Clock::now() < most; Reap()) {
      if (!status_) kill(-command_, SIGKILL);
      std::ifstream children(absl::StrCat("/proc/self/task/", gettid(), "/children"));
      for (pid_t child = 0; children >> child;) kill(child, SIGKILL);
      pollfd event{signals_, POLLIN, 0};
      poll(&event, 1, static_cast<int>(kLookEvery.count()));
      TakeSignals();
    }
  }

  const pid_t command_;
  const int signals_;
  std::optional<int> status_;
};

}  // namespace

absl::StatusOr<int> RunFamily(const std::vector<std::string>& words) {
  const sigset_t signals = Signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const OwnedFd events(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || events.get() < 0) {
    return absl::InternalError(std::strerror(errno));
  }
  const absl::StatusOr<pid_t> command = StartCommand(words);
  if (!command.ok()) return command.status();
  return Family(*command, events.get()).Run();
}

}  // namespace coppice
