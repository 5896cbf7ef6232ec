// A sign of life for whoever waits: once a command takes longer than a second, a line on stderr.
#ifndef COPPICE_CLIENT_CLI_WAITING_H_
#define COPPICE_CLIENT_CLI_WAITING_H_

#include <condition_variable>
#include <iosfwd>
#include <mutex>
#include <string>
#include <thread>

namespace coppice {

// Lives as long as the command. Its thread writes to `out` between Begin and End only, so the
// command may write to it outside. On a terminal the line is renewed every second and wiped at the
// end; elsewhere it is written once.
class Waiting {
 public:
  Waiting(std::ostream& out, bool is_terminal, std::string what);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void Begin();
  void End();

 private:
  void Run();

  std::ostream& out_;
  const bool is_terminal_;
  const std::string what_;

  std::mutex mutex_;
  std::condition_variable over_cv_;
  bool over_ = false;   // the command is done
  bool waits_ = false;  // between Begin and End
  bool shown_ = false;  // a line is on the terminal, or was written elsewhere
  std::thread thread_;  // last: it uses the rest
};

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_WAITING_H_
