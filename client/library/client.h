// What is behind the handles of coppice.h, and what every function of it does first and last.
#ifndef COPPICE_CLIENT_LIBRARY_CLIENT_H_
#define COPPICE_CLIENT_LIBRARY_CLIENT_H_

#include <pthread.h>
#include <sys/types.h>

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "client/library/agent_calls.h"
#include "client/library/messages.h"
#include "client/library/tree_watches.h"

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

Outcome Later(const char* name);  // UNIMPLEMENTED: it sets fields of a later libcoppice

// The caller's structure in the shape that this library knows: what the caller's header did not
// have is 0. INVALID_ARGUMENT: its size is none; UNIMPLEMENTED: it asks for what only a later
// library has.
template <class Request>
Outcome Take(const Request* given, const char* name, Request& taken) {
  if (given == nullptr) return Wrong(std::string(name) + ": a null pointer was given");
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
