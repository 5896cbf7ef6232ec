// The watches of one client. Those that are over give their thread and descriptor back when another
// begins, so that a program may watch one job after the other for as long as it likes.
//
// Their functions may begin further watches at any time, also while all of them are ended: nothing
// here holds its lock while it waits for one of them.
#ifndef COPPICE_CLIENT_LIBRARY_TREE_WATCHES_H_
#define COPPICE_CLIENT_LIBRARY_TREE_WATCHES_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/library/agent_socket.h"
#include "client/library/messages.h"
#include "client/library/retry_pause.h"

namespace coppice {

// One watch of a job's trees: a connection and a thread of its own, so that a function that takes
// its time holds up nothing but the watch, and may itself call libcoppice.
//
// The watch outlives restarts of agent and daemon: it connects anew, after a pause that grows, and
// goes on behind the last change that it saw. Where the daemon no longer knows that one, trees are
// listed again and what is told is the difference.

class JobTreesWatch final {
 public:
  struct Listener {
    coppice_watch_function function;
    void* context;
  };

  // Returns once what is there has been told: no later change is missed. The function is called
  // from then on until ~JobTreesWatch, which waits for a call under way. Errors as the first try's.
  static Outcome Start(const std::string& path, uint64_t job, Listener listener,
                       uint32_t timeout_ms, std::unique_ptr<JobTreesWatch>& watch);
  ~JobTreesWatch();

  // Nothing more is told and ~JobTreesWatch does not wait.
  bool is_over() const { return is_over_; }

 private:
  JobTreesWatch(std::string path, uint64_t job, Listener listener);

  void RunUntilStopped();
  void Watch();
  // The watch stands, or the first try has failed: Start may return. Only the first call counts.
  void Begun(const Outcome& outcome);
  bool HasBegun();
  Outcome AwaitBegin(SteadyTime deadline);
  // One stream, from connecting to its end.
  Outcome WatchOnce();
  Outcome Begin();
  // Frames that have arrived; false: the stream is over, with *end.
  bool TakeFrames(Outcome* end);
  bool TakeChange(std::string_view message);
  void TakePresent(const ChangeAnswer& change);
  void TakeSynced();
  void Tell(coppice_change kind, uint64_t tree, uint32_t revision, const std::string& reason);
  // True: stop.
  bool Pause();
  bool IsStopped() const;

  const std::string path_;
  const uint64_t job_;
  const Listener listener_;
  OwnDescriptor wake_;  // an event: written to by the destructor
  std::shared_ptr<AgentSocket> socket_;
  RetryPause pause_;
  std::string resume_token_;
  bool is_listing_ = true;              // changes tell what is there, up to SYNCED
  std::map<uint64_t, uint32_t> trees_;  // revision of each that is there
  std::map<uint64_t, uint32_t> listed_;
  std::mutex mu_;
  std::condition_variable begun_;
  std::optional<Outcome> begin_;      // guarded by mu_
  std::atomic<bool> is_over_{false};  // set by the thread, last
  std::thread thread_;
};

// Thread-safe, but for the destructor.
class TreeWatches final {
 public:
  TreeWatches() = default;
  ~TreeWatches() { End(); }

  // Forgets those that are over. FAILED_PRECONDITION: End() was called.
  Outcome Reap();
  // Keeps it, or ends it: FAILED_PRECONDITION as above.
  Outcome Add(std::unique_ptr<JobTreesWatch> watch);
  // Ends all, waits for functions that are under way, and takes no more.
  void End();

 private:
  using List = std::vector<std::unique_ptr<JobTreesWatch>>;

  Outcome CheckOpen() const;

  std::mutex mu_;
  bool is_ended_ = false;  // guarded by mu_, as the list
  List watches_;
};

}  // namespace coppice

#endif  // COPPICE_CLIENT_LIBRARY_TREE_WATCHES_H_
