#include "agents/node/search_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/node/process_family.h"

namespace coppice {
namespace {

constexpr size_t kKeptWords = 4096;
// The guard tells its search to end, then kills it; longer than that it has no use for.
constexpr std::chrono::milliseconds kMostEnding = 3 * kFamilyPatience;
// What a pipe holds is read after the end; somebody who is not ended may write on.
constexpr size_t kMostReads = 64;
// Before which a descriptor is the process' input, output or stderr.
constexpr int kFirstOther = 3;

std::string Error(int number) { return std::strerror(number); }

absl::Status NoDescriptor() {
  return absl::ResourceExhaustedError(
      absl::StrCat("no pipe can be made: ", Error(errno), "; raise LimitNOFILE"));
}

// Both ends close by themselves in whatever is started, and are none of a process' first three.
absl::Status OpenPipe(OwnedFd& reading, OwnedFd& writing) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return NoDescriptor();
  for (int& end : ends) {
    if (end >= kFirstOther) continue;
    const int moved = fcntl(end, F_DUPFD_CLOEXEC, kFirstOther);
    close(std::exchange(end, moved));
  }
  reading = OwnedFd(ends[0]);
  writing = OwnedFd(ends[1]);
  return reading.get() < 0 || writing.get() < 0 ? NoDescriptor() : absl::OkStatus();
}

// All at once, while nobody reads: the loop waits for nobody.
absl::Status Fill(const OwnedFd& pipe, const std::string& input) {
  fcntl(pipe.get(), F_SETPIPE_SZ, static_cast<int>(input.size()));
  fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
  const ssize_t count = write(pipe.get(), input.data(), input.size());
  if (count >= 0 && static_cast<size_t>(count) == input.size()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the job's hosts take ", input.size(),
                   " bytes, more than a pipe holds (/proc/sys/fs/pipe-max-size); leave {hostfile} "
                   "out of search.command"));
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Its own session, so that it has no terminal and no signals of ours; no signal is blocked in it,
// none ignored.
class Attributes final {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// Standard input and stderr are given, the output is nobody's, the folder the root; nothing else is
// open.
class Actions final {
 public:
  Actions(const OwnedFd& input, const OwnedFd& errors) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input.get(), STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, errors.get(), STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, kFirstOther);
    posix_spawn_file_actions_addchdir_np(&actions_, "/");
  }
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SearchProcess>> SearchProcess::Start(EventLoop* loop,
                                                                    const Command& command,
                                                                    OnExit on_exit) {
  std::unique_ptr<SearchProcess> process(new SearchProcess(loop, std::move(on_exit)));
  if (absl::Status status = process->Spawn(command); !status.ok()) return status;
  process->Watch();
  return process;
}

absl::Status SearchProcess::Spawn(const Command& command) {
  OwnedFd its_input, its_errors;
  if (absl::Status status = OpenPipe(its_input, input_); !status.ok()) return status;
  if (absl::Status status = OpenPipe(errors_, its_errors); !status.ok()) return status;
  if (absl::Status status = Fill(input_, command.input); !status.ok()) return status;
  const Attributes attributes;
  const Actions actions(its_input, its_errors);
  const std::vector<char*> words = Pointers(command.words);
  const std::vector<char*> environment = Pointers(command.environment);
  const int error = posix_spawnp(&process_, words[0], actions.get(), attributes.get(), words.data(),
                                 environment.data());
  if (error != 0) {
    process_ = 0;
    return absl::FailedPreconditionError(
        absl::StrCat(command.words[0], " cannot be started: ", Error(error)));
  }
  // So there is room for one more: a process that nobody can wait for would be left behind.
  its_input.Close();
  its_errors.Close();
  end_ = OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, process_, 0)));
  return end_.get() < 0 ? NoDescriptor() : absl::OkStatus();
}

void SearchProcess::Watch() {
  fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
  loop_->Watch(end_.get(), EPOLLIN, [this](uint32_t) { OnEnd(); });
  loop_->Watch(errors_.get(), EPOLLIN, [this](uint32_t) { ReadErrors(); });
}

SearchProcess::~SearchProcess() {
  if (is_ending_) loop_->Cancel(kill_);
  if (end_.get() >= 0) loop_->Forget(end_.get());
  if (errors_.get() >= 0) loop_->Forget(errors_.get());
}

bool SearchProcess::ReadErrors() {
  char bytes[kKeptWords];
  const ssize_t count = errors_.get() < 0 ? -1 : read(errors_.get(), bytes, sizeof bytes);
  if (count == 0) {
    loop_->Forget(errors_.get());
    errors_.Close();
  }
  if (count <= 0) return false;
  words_.append(bytes, static_cast<size_t>(count));
  if (words_.size() > kKeptWords) words_.erase(0, words_.size() - kKeptWords);
  return true;
}

void SearchProcess::OnEnd() {
  int wait_status = 0;
  if (waitpid(process_, &wait_status, WNOHANG) != process_) return;
  process_ = 0;
  for (size_t i = 0; i < kMostReads && ReadErrors(); ++i) {
  }
  const OnExit on_exit = std::move(on_exit_);
  const std::string words = std::move(words_);
  loop_->Forget(end_.get());
  end_.Close();
  on_exit(wait_status, words);  // may have destroyed this
}

void SearchProcess::End() {
  if (std::exchange(is_ending_, true)) return;
  input_.Close();
  kill_ = loop_->After(kMostEnding, [this] {
    if (process_ <= 0 || kill(-process_, SIGKILL) == 0) return;
    spdlog::warn("search: process {} does not end, and cannot be killed: {}; kill it by hand",
                 process_, std::strerror(errno));
  });
}

}  // namespace coppice
