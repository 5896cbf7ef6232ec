// The agent's Unix socket and the processes connected to it.
#ifndef COPPICE_AGENTS_NODE_LOCAL_SERVER_H_
#define COPPICE_AGENTS_NODE_LOCAL_SERVER_H_

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agents/node/local_connection.h"
#include "agents/node/local_limits.h"

namespace coppice {

// Belongs to the loop.
class LocalServer final {
 public:
  // Whether one could listen at `path`; changes nothing there. Errors as Listen.
  static absl::Status Check(const std::string& path);
  // Listens at `path`, whose file gets `mode`; a file that an agent left there is replaced. So
  // would be that of an agent that is about to listen: who calls holds what keeps others out
  // (StateLock). FAILED_PRECONDITION: another agent listens there. INVALID_ARGUMENT: no path of a
  // socket. UNAVAILABLE: it cannot be made. `parts` outlives the server.
  static absl::StatusOr<std::unique_ptr<LocalServer>> Listen(const std::string& path, mode_t mode,
                                                             const LocalParts* parts);
  ~LocalServer();

  size_t connections() const { return connections_.size(); }

 private:
  LocalServer(int fd, std::string path, const LocalParts* parts);

  void Accept();
  void Take(int fd);
  void Refuse(int fd, const LocalCaller& caller);
  void Say(const std::string& trouble);

  const int fd_;
  const std::string path_;
  const LocalParts* const parts_;
  std::optional<std::chrono::steady_clock::time_point> said_;
  uint64_t last_connection_ = 0;
  std::map<uint64_t, std::unique_ptr<LocalConnection>> connections_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_LOCAL_SERVER_H_
