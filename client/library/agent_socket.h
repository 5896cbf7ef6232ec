// One connection to the node's agent: bytes out, frames in. Never blocks but in Connect and Wait,
// which have a deadline; raises no signals. Not thread-safe, except that several threads may Wait.
#ifndef COPPICE_CLIENT_LIBRARY_AGENT_SOCKET_H_
#define COPPICE_CLIENT_LIBRARY_AGENT_SOCKET_H_

#include <memory>
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

}  // namespace coppice

#endif  // COPPICE_CLIENT_LIBRARY_AGENT_SOCKET_H_
