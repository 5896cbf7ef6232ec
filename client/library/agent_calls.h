// Calls of a process to its agent over one connection, from any number of threads and without a
// thread of its own: whoever waits for an answer reads for all.
//
//   thread 1   send ---- polls the socket ---- has its answer, hands the polling on
//   thread 2      send -- sleeps ------------------------------- polls ---- has its answer
//
// A thread that begins a call also takes what has arrived, perhaps the answer of the one that
// polls. poll(2) does not return for what somebody else has read, so such a thread rings the bell.
//
// Exceptions (memory that is out) leave the object whole: flags fall and slots go with the call.
// Where bytes of the stream are lost by one, so is the connection.
//
// The connection is made by the first call and made again by the next one after it broke. A call
// that was under way when it broke is sent once more if that does no harm.
#ifndef COPPICE_CLIENT_LIBRARY_AGENT_CALLS_H_
#define COPPICE_CLIENT_LIBRARY_AGENT_CALLS_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "client/library/agent_socket.h"
#include "client/library/messages.h"

namespace coppice {

class AgentCalls final {
 public:
  struct Call {
    std::string_view method;
    std::string_view request;
    bool may_repeat = true;  // carried out twice it does what it does once
    SteadyTime deadline;
  };

  // `path` of the agent's socket. Connects at the first call.
  explicit AgentCalls(std::string path) : path_(std::move(path)) {}

  // The last message of the answer. Thread-safe.
  Outcome Make(const Call& call, std::string& answer);

 private:
  struct Slot {
    bool has_ended = false;
    bool is_lost = false;  // the connection broke first
    Outcome end;
    std::string message;
  };
  using Lock = std::unique_lock<std::mutex>;

  Outcome MakeOnce(const Call& call, std::string& answer, bool& is_lost);
  Outcome Exchange(Lock& lock, const Call& call, Slot& slot);
  // The functions below hold the lock and give it up while they wait.
  Outcome Connect(Lock& lock, SteadyTime deadline);
  Outcome Send(Lock& lock, std::string_view frame, SteadyTime deadline);
  Outcome SendAlone(Lock& lock, std::string_view frame, SteadyTime deadline);
  Outcome Await(Lock& lock, const Slot& slot, SteadyTime deadline);
  // Hands out what has arrived.
  void Receive();
  void ReceiveAll();
  void Ring();
  bool Dispatch(std::string_view reply);
  void Drop();
  Outcome TooLate() const;
  Outcome Lost() const;

  const std::string path_;
  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_. Exactly one thread does what a flag says.
  bool is_connecting_ = false, is_sending_ = false, is_polling_ = false;
  std::shared_ptr<AgentSocket> socket_;  // null: not connected
  OwnDescriptor bell_;                   // wakes the thread that polls
  uint64_t last_call_ = 0;
  std::map<uint64_t, Slot*> slots_;  // calls under way
};

}  // namespace coppice

#endif  // COPPICE_CLIENT_LIBRARY_AGENT_CALLS_H_
