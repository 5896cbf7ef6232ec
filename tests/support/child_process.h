// Programs that a test starts: with their own environment and directory, their output in files, and
// no way to outlive the test. Waiting is done by looking again and again, up to a limit.
#ifndef COPPICE_TESTS_SUPPORT_CHILD_PROCESS_H_
#define COPPICE_TESTS_SUPPORT_CHILD_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace coppice {

struct Command {
  std::vector<std::string> arguments;  // the program first; looked up in PATH
  // Added to this process's environment; an empty value removes the variable.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;  // to run in; must exist
  std::string output;     // file for standard output
  std::string errors;     // file for standard error; empty: with the output
};

// A running program. Destroying it kills it and waits for it.
class ChildProcess {
 public:
  // INTERNAL: it could not be started.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Command& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool IsRunning();
  void Signal(int signal);
  // Writes to its standard input, a pipe that stays open. INTERNAL: it does not read.
  absl::Status Write(const std::string& text);
  // OK if it ends with status 0 within `limit`; INTERNAL with its status else; DEADLINE_EXCEEDED,
  // and it runs on.
  absl::Status Wait(absl::Duration limit);

 private:
  ChildProcess(pid_t pid, int input, std::string name)
      : pid_(pid), input_(input), name_(std::move(name)) {}

  pid_t pid_;
  int input_;
  std::string name_;
  bool reaped_ = false;
  int wait_status_ = 0;
};

// Runs a program to its end and returns its output. Errors as Start and Wait; one that is late is
// killed.
absl::StatusOr<std::string> RunToEnd(const Command& command, absl::Duration limit);

// Looks until `condition` holds; false if it does not within `limit`.
bool WaitUntil(const std::function<bool()>& condition, absl::Duration limit);

// The whole file; empty if it is missing.
std::string ReadWholeFile(const std::string& path);

// A new directory under `parent`, else under TMPDIR or /tmp, removed with all that is in it.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::string& parent = "");
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_CHILD_PROCESS_H_
