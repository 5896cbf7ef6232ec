// One connection to the node's agent: bytes out, frames in. Never blocks but in Connect and Wait,
// which have a deadline; raises no signals. Not thread-safe, except that several threads may Wait.
#ifndef COPPICE_CLIENT_LIBRARY_AGENT_SOCKET_H_
#define COPPICE_CLIENT_LIBRARY_AGENT_SOCKET_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "client/library/messages.h"

namespace coppice {

// A descriptor of this process alone: every child of fork() closes its copy at once. Without that
// the agent would not see that a process is gone, or has closed its client, while a child of it
// lives.
//
// Opening and closing exclude fork() (pthread_atfork), so that a child neither misses one nor
// closes a number that is another's by now.

class OwnDescriptor final {
 public:
  OwnDescriptor() = default;
  ~OwnDescriptor();
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;

  // Once. False: there is none, errno says why.
  bool OpenUnixSocket();
  bool OpenEvent();

  // -1: not open, or this is a child of the process that opened it.
  int get() const { return fd_; }

 private:
  bool Keep(int fd);
  static void Watch();
  static void CloseAll();

  int fd_ = -1;
  OwnDescriptor* before_ = nullptr;  // of all that are open
  OwnDescriptor* after_ = nullptr;
};

class AgentSocket final {
 public:
  enum class Io { kSome, kNotNow, kLost };

  // UNAVAILABLE: nobody listens at `path`. INVALID_ARGUMENT: no path of a socket.
  static Outcome Connect(const std::string& path, SteadyTime deadline,
                         std::shared_ptr<AgentSocket>& socket);
  AgentSocket(const AgentSocket&) = delete;
  AgentSocket& operator=(const AgentSocket&) = delete;

  // Writes what fits now and takes it off the front of `bytes`.
  Io Send(std::string_view& bytes);
  // Reads some of what is there; frames are then taken by Next(), at once.
  Io Receive();
  std::optional<std::string_view> Next() { return frames_.Next(); }
  bool is_broken() const { return frames_.is_broken(); }

  // Until the socket is ready for one of `events` (poll(2)), or `wake`, unless it is -1, can be
  // read, or the deadline. False: the deadline passed.
  bool Wait(short events, SteadyTime deadline, int wake = -1) const;
  // Wakes all who wait; the connection is over.
  void Shut();

 private:
  AgentSocket() = default;

  OwnDescriptor fd_;
  FrameReader frames_;
};

// Milliseconds until the deadline for poll(2), rounded up, at least 0.
int MillisecondsUntil(SteadyTime deadline);

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

#endif  // COPPICE_CLIENT_LIBRARY_AGENT_SOCKET_H_
