// One search as a process of the agent's: started without a shell, with no descriptor and no signal
// setting of the agent's, and watched by the event loop. What it starts is a guard
// (search_guard.h), which ends all of the search when the agent lets go of its standard input, in
// whatever way: so an agent that is killed leaves none behind, and one that may not signal another
// user's processes ends them all the same.
//
//   agent --- pipe ---> guard's stdin: the hosts, then nothing until it closes
//         <-- pipe ---- stderr of guard and search: its last words are kept
//         <-- pidfd --- the end
#ifndef COPPICE_AGENTS_NODE_SEARCH_PROCESS_H_
#define COPPICE_AGENTS_NODE_SEARCH_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/node/event_loop.h"
#include "agents/node/owned_fd.h"

namespace coppice {

// Belongs to the loop, which outlives it.
class SearchProcess final {
 public:
  struct Command {
    std::vector<std::string> words;  // the guard's, perhaps behind others
    std::vector<std::string> environment;
    std::string input;  // what the guard reads first
  };
  // `wait_status` as of waitpid(2); `words`: the end of what was said on stderr.
  using OnExit = std::function<void(int wait_status, const std::string& words)>;

  // `on_exit` is called once, on the loop; the process may be destroyed in the call.
  // FAILED_PRECONDITION: there is no such program, or it cannot be run. RESOURCE_EXHAUSTED: no
  // descriptor is left, or the input is more than a pipe holds.
  static absl::StatusOr<std::unique_ptr<SearchProcess>> Start(EventLoop* loop,
                                                              const Command& command,
                                                              OnExit on_exit);
  // Ends the search and waits for nothing.
  ~SearchProcess();
  SearchProcess(const SearchProcess&) = delete;
  SearchProcess& operator=(const SearchProcess&) = delete;

  // Ends the search; its exit is told as ever. A guard that does not do what it is there for is
  // killed after a while, where the agent may: not one of another user, which counts as a search
  // until it ends.
  void End();

 private:
  SearchProcess(EventLoop* loop, OnExit on_exit) : loop_(loop), on_exit_(std::move(on_exit)) {}

  absl::Status Spawn(const Command& command);
  void Watch();
  bool ReadErrors();  // false: nothing is there now
  void OnEnd();

  EventLoop* const loop_;
  OnExit on_exit_;
  pid_t process_ = 0;
  OwnedFd end_;     // pidfd of the process
  OwnedFd input_;   // our end of its standard input
  OwnedFd errors_;  // and of its stderr; closed when nobody has the other one any more
  std::string words_;
  bool is_ending_ = false;
  EventLoop::Timer kill_;  // if is_ending_
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_SEARCH_PROCESS_H_
