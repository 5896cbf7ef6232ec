#include "tests/support/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/status_macros.h"

extern char** environ;

namespace coppice {
namespace {

constexpr absl::Duration kLookAgain = absl::Milliseconds(2);

std::vector<std::string> EnvironmentOf(const Command& command) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(command.environment.begin(), command.environment.end(),
                                      [&](const auto& variable) { return variable.first == name; });
    if (!replaced) result.push_back(text);
  }
  for (const auto& [name, value] : command.environment) {
    if (!value.empty()) result.push_back(absl::StrCat(name, "=", value));
  }
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void Become(const char* directory, int input, int output, int errors, char** arguments,
                         char** environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (chdir(directory) == 0 && dup2(input, 0) >= 0 && dup2(output, 1) >= 0 &&
      dup2(errors, 2) >= 0) {
    execvpe(arguments[0], arguments, environment);
  }
  _exit(127);
}

int OpenForWriting(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const Command& command) {
  int input[2];
  if (pipe2(input, O_CLOEXEC) != 0) return absl::InternalError("pipe2 failed");
  const int output = OpenForWriting(command.output);
  const int errors = command.errors.empty() ? output : OpenForWriting(command.errors);
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = EnvironmentOf(command);
  std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);
  const pid_t pid = fork();
  if (pid == 0) {
    Become(command.directory.c_str(), input[0], output, errors, argv.data(), envp.data());
  }
  close(input[0]);
  if (output >= 0) close(output);
  if (errors >= 0 && errors != output) close(errors);
  if (pid < 0) {
    close(input[1]);
    return absl::InternalError(absl::StrCat("cannot fork for ", command.arguments[0]));
  }
  return absl::WrapUnique(new ChildProcess(pid, input[1], command.arguments[0]));
}

ChildProcess::~ChildProcess() {
  if (IsRunning()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, &wait_status_, 0);
  }
  close(input_);
}

bool ChildProcess::IsRunning() {
  if (!reaped_ && waitpid(pid_, &wait_status_, WNOHANG) == pid_) reaped_ = true;
  return !reaped_;
}

void ChildProcess::Signal(int signal) {
  if (IsRunning()) kill(pid_, signal);
}

absl::Status ChildProcess::Write(const std::string& text) {
  if (!IsRunning()) return absl::InternalError(absl::StrCat(name_, " has ended"));
  const ssize_t written = write(input_, text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write to ", name_, ": ", std::strerror(errno)));
}

absl::Status ChildProcess::Wait(absl::Duration limit) {
  if (!WaitUntil([this] { return !IsRunning(); }, limit)) {
    return absl::DeadlineExceededError(
        absl::StrCat(name_, " still runs after ", absl::FormatDuration(limit)));
  }
  if (WIFEXITED(wait_status_) && WEXITSTATUS(wait_status_) == 0) return absl::OkStatus();
  return absl::InternalError(
      WIFEXITED(wait_status_)
          ? absl::StrCat(name_, " ended with status ", WEXITSTATUS(wait_status_))
          : absl::StrCat(name_, " was ended by signal ", WTERMSIG(wait_status_)));
}

absl::StatusOr<std::string> RunToEnd(const Command& command, absl::Duration limit) {
  ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> process, ChildProcess::Start(command));
  const absl::Status status = process->Wait(limit);
  process.reset();
  std::string output = ReadWholeFile(command.output);
  if (status.ok()) return output;
  const std::string said = command.errors.empty() ? output : ReadWholeFile(command.errors);
  return absl::Status(status.code(), absl::StrCat(status.message(), ": ", said.substr(0, 2000)));
}

bool WaitUntil(const std::function<bool()>& condition, absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  while (!condition()) {
    if (absl::Now() >= end) return false;
    absl::SleepFor(kLookAgain);
  }
  return true;
}

std::string ReadWholeFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

ScratchDirectory::ScratchDirectory(const std::string& parent) {
  const std::filesystem::path above =
      parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(parent);
  path_ = (above / "coppice.XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) path_ = "/nonexistent";
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace coppice
