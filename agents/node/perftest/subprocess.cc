#include "agents/node/perftest/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

struct Pipe {
  OwnedFd mine, theirs;  // read without blocking; written by the program

  // False: errno.
  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    mine = OwnedFd(ends[0]);
    theirs = OwnedFd(ends[1]);
    return fcntl(mine.get(), F_SETFL, O_NONBLOCK) == 0;
  }
};

// Frees what posix_spawn(3) is told.
class SpawnWishes final {
 public:
  // The agent blocks the signals that it waits for, and heeds no broken pipe.
  SpawnWishes(int output, int errors) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t none, ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &ignored);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnWishes() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnWishes(const SpawnWishes&) = delete;

  // 0, or an error.
  int Spawn(char* const* arguments, pid_t& pid) const {
    return posix_spawnp(&pid, arguments[0], &actions_, &attributes_, arguments, environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void KillAndWait(pid_t pid) {
  kill(pid, SIGKILL);
  WaitFor(pid);
}

absl::Status CannotStart(const std::string& program, int error) {
  const std::string why = absl::StrCat(program, ": cannot be started: ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(why) : absl::UnavailableError(why);
}

}  // namespace

absl::StatusOr<Subprocess> Subprocess::Start(const std::vector<std::string>& arguments,
                                             std::chrono::seconds cpu_limit) {
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  Pipe output, errors;
  if (!output.Open() || !errors.Open()) return CannotStart(arguments[0], errno);
  pid_t pid = 0;
  const SpawnWishes wishes(output.theirs.get(), errors.theirs.get());
  if (const int error = wishes.Spawn(words.data(), pid); error != 0) {
    return CannotStart(arguments[0], error);
  }
  // Not pidfd_open(3), which glibc 2.36 declares for C alone.
  OwnedFd end(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (end.get() < 0) {
    const int error = errno;
    KillAndWait(pid);
    return CannotStart(arguments[0], error);
  }
  const auto seconds = static_cast<rlim_t>(cpu_limit.count());
  const rlimit limit{seconds, seconds};
  (void)prlimit(pid, RLIMIT_CPU, &limit, nullptr);  // a second line of defence
  return Subprocess(pid, std::move(end), std::move(output.mine), std::move(errors.mine));
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      end_fd_(std::move(other.end_fd_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)) {}

Subprocess::~Subprocess() {
  if (pid_ != 0) KillAndWait(pid_);
}

absl::Status Subprocess::Listen() {
  char bytes[4096];
  for (Stream* stream : {&output_, &errors_}) {
    while (stream->fd.get() >= 0) {
      const ssize_t count = read(stream->fd.get(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) break;
      if (count == 0) stream->fd.Close();
      stream->text.append(bytes, static_cast<size_t>(count));
      if (stream->text.size() > kMaxOutput) {
        return absl::ResourceExhaustedError(absl::StrCat("says more than ", kMaxOutput, " bytes"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Subprocess::End() {
  const int status = WaitFor(std::exchange(pid_, 0));
  if (absl::Status listened = Listen(); !listened.ok()) return listened;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      WIFSIGNALED(status) ? absl::StrCat("was ended by signal ", WTERMSIG(status))
                          : absl::StrCat("ended with status ", WEXITSTATUS(status)));
}

}  // namespace coppice
