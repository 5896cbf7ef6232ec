// What is behind the handles of coppice.h, and what every function of it does first and last.
#ifndef COPPICE_CLIENT_LIBRARY_CLIENT_H_
#define COPPICE_CLIENT_LIBRARY_CLIENT_H_

#include <pthread.h>
#include <sys/types.h>

#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "client/library/agent_socket.h"
#include "client/library/messages.h"

namespace coppice {

class JobTreesWatch;

// The watches of one client. Those that are over give their thread and descriptor back when another
// begins, so that a program may watch one job after the other for as long as it likes.
//
// Their functions may begin further watches at any time, also while all of them are ended: nothing
// here holds its lock while it waits for one of them.
//
// Thread-safe, but for the destructor.
class TreeWatches final {
 public:
  TreeWatches();
  ~TreeWatches();

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

struct coppice_client {
  coppice_client(std::string agent, uint32_t timeout);

  const std::string path;
  const uint32_t timeout_ms;
  const pid_t process;  // that opened it; a child of fork() shares the socket but not the threads
  coppice::AgentCalls calls;
  coppice::TreeWatches watches;
};

struct coppice_tree {
  coppice::TreeAnswer answer;
};

struct coppice_order {
  coppice::OrderAnswer answer;
};

namespace coppice {

// Notes the outcome as the thread's last error.
coppice_status Tell(const Outcome& outcome) noexcept;

// While it lives, pthread_cancel() of the thread waits: it would unwind through what throws
// nothing.
class NotCancelled final {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// Runs what a function of coppice.h does; an exception becomes a status.
template <class Work>
coppice_status Run(const Work& work) noexcept {
  const NotCancelled whole;
  try {
    return Tell(work());
  } catch (const std::bad_alloc&) {
    return Tell({COPPICE_RESOURCE_EXHAUSTED, {}});  // "out of memory"
  } catch (const std::exception& error) {
    try {
      return Tell({COPPICE_INTERNAL, error.what()});
    } catch (...) {
      return Tell({COPPICE_INTERNAL, {}});
    }
  }
}

Outcome Wrong(std::string what);  // INVALID_ARGUMENT
// No client, or one of the parent process.
Outcome Check(const coppice_client* client);
Outcome NotNull(const void* pointer, const char* name);

// Runs what is asked of a client.
template <class Work>
coppice_status RunOn(coppice_client* client, const Work& work) noexcept {
  return Run([&] {
    Outcome outcome = Check(client);
    return outcome.ok() ? work(*client) : outcome;
  });
}

Outcome Later(const char* name);  // UNIMPLEMENTED: it sets fields of a later libcoppice

// The caller's structure in the shape that this library knows: what the caller's header did not
// have is 0. INVALID_ARGUMENT: its size is none; UNIMPLEMENTED: it asks for what only a later
// library has.
template <class Request>
Outcome Take(const Request* given, const char* name, Request& taken) {
  if (Outcome outcome = NotNull(given, name); !outcome.ok()) return outcome;
  const size_t size = given->size;
  if (size < sizeof given->size || size > 64 * sizeof(Request)) {
    return Wrong(std::string(name) + ".size: is none; begin with " + name +
                 " request = COPPICE_INIT(request)");
  }
  std::memset(static_cast<void*>(&taken), 0, sizeof taken);
  std::memcpy(static_cast<void*>(&taken), given, size < sizeof taken ? size : sizeof taken);
  const char* const bytes = reinterpret_cast<const char*>(given);
  bool is_later = false;
  for (size_t i = sizeof taken; i < size; ++i) is_later |= bytes[i] != 0;
  if constexpr (requires { taken.reserved; }) is_later |= taken.reserved != 0;
  return is_later ? Later(name) : Outcome{};
}

// The end of what begins now.
inline SteadyTime DeadlineOf(const coppice_client& client) { return After(client.timeout_ms); }

Outcome Ask(coppice_client& client, SteadyTime deadline, std::string_view method,
            const std::string& request, bool may_repeat, std::string& answer);
// One call with the client's deadline; `extra_ms` is added to it.
Outcome Ask(coppice_client& client, std::string_view method, const std::string& request,
            bool may_repeat, std::string& answer, uint32_t extra_ms = 0);
Outcome Misunderstood(std::string_view method);  // INTERNAL: the answer is no such message

// Names a request that was not given a name, so that it can be sent again after a restart of the
// agent and is carried out once.
std::string RequestId(const char* given);

}  // namespace coppice

#endif  // COPPICE_CLIENT_LIBRARY_CLIENT_H_
