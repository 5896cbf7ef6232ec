// An agent that does what a test says: listens at a socket of its own and has each connection
// served by a function, on a thread of its own. Messages are the generated ones, so that
// libcoppice's own encoding is held to them.
#ifndef COPPICE_TESTS_UNIT_CLIENT_LIBRARY_SCRIPTED_AGENT_H_
#define COPPICE_TESTS_UNIT_CLIENT_LIBRARY_SCRIPTED_AGENT_H_

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/library/messages.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

// One connection, on the agent's side.
class ScriptedConnection final {
 public:
  explicit ScriptedConnection(int fd) : fd_(fd) {}

  // Nullopt: the process is gone, or the agent stops.
  std::optional<v1::LocalRequest> Read();
  // False: as Read().
  bool SendBytes(const std::string& bytes);
  bool Message(uint64_t call, const std::string& message);
  void End(uint64_t call, uint32_t code = 0, const std::string& message = "");
  // Both.
  void Answer(uint64_t call, const std::string& message);

 private:
  const int fd_;
  FrameReader frames_;
};

class ScriptedAgent final {
 public:
  // `index`: number of the connection since the agent was made.
  using Script = std::function<void(ScriptedConnection&, int index)>;

  explicit ScriptedAgent(Script script);
  ~ScriptedAgent();

  const std::string& path() const { return path_; }
  int connections();
  // As one that is killed: connections break, nobody listens.
  void Stop();
  void Start();

 private:
  void Accept(int listener);

  const Script script_;
  std::string folder_, path_;
  int listener_ = -1;
  std::thread acceptor_;
  std::mutex mu_;
  int connections_ = 0;  // guarded by mu_, as those below
  std::vector<int> fds_;
  std::vector<std::thread> threads_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_CLIENT_LIBRARY_SCRIPTED_AGENT_H_
