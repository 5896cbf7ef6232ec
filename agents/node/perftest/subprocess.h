// A program that the agent runs and listens to: started without a shell, as the agent's own user,
// and killed with its holder.
#ifndef COPPICE_AGENTS_NODE_PERFTEST_SUBPROCESS_H_
#define COPPICE_AGENTS_NODE_PERFTEST_SUBPROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/node/owned_fd.h"

namespace coppice {

// Belongs to one thread.
class Subprocess final {
 public:
  // Of its output and of its errors, each.
  static constexpr size_t kMaxOutput = size_t{64} << 10;

  // `arguments`: the program first, which is looked up in PATH. Its input is empty. `cpu_limit`: of
  // its processor time, after which the kernel ends it, should this process not be there to do so.
  // NOT_FOUND: there is no such program. UNAVAILABLE: it cannot be started, and why.
  static absl::StatusOr<Subprocess> Start(const std::vector<std::string>& arguments,
                                          std::chrono::seconds cpu_limit);
  Subprocess(Subprocess&& other) noexcept;
  ~Subprocess();  // kills it and waits for that

  // For poll(2): readable when it has said something; -1: it will say nothing more. Listen then.
  int output_fd() const { return output_.fd.get(); }
  int errors_fd() const { return errors_.fd.get(); }
  // RESOURCE_EXHAUSTED: it says too much.
  absl::Status Listen();
  // For poll(2): readable when it has ended.
  int end_fd() const { return end_fd_.get(); }
  // Once it has ended: takes the rest of what it said. FAILED_PRECONDITION: "ended with status 1",
  // "was ended by signal 9".
  absl::Status End();

  const std::string& output() const { return output_.text; }
  const std::string& errors() const { return errors_.text; }

 private:
  struct Stream {
    OwnedFd fd;
    std::string text{};
  };
  Subprocess(pid_t pid, OwnedFd end_fd, OwnedFd output_fd, OwnedFd errors_fd)
      : pid_(pid),
        end_fd_(std::move(end_fd)),
        output_{std::move(output_fd)},
        errors_{std::move(errors_fd)} {}

  pid_t pid_;  // 0: it is over
  OwnedFd end_fd_;
  Stream output_, errors_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PERFTEST_SUBPROCESS_H_
