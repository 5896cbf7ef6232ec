// A process that does more than call: threads that read each other's answers, timers that interrupt
// what they wait for, children, and threads that are cancelled.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/library/coppice.h"
#include "coppice/v1/trees.pb.h"
#include "tests/unit/client/library/scripted_agent.h"

namespace coppice::process_test {
namespace {

constexpr std::chrono::seconds kPatience{30};

struct CloseClient {
  void operator()(coppice_client* client) const { coppice_close(client); }
};
using Client = std::unique_ptr<coppice_client, CloseClient>;

Client Open(const std::string& path, uint32_t timeout_ms = 30'000) {
  coppice_client* client = nullptr;
  EXPECT_EQ(coppice_open(path.c_str(), timeout_ms, &client), COPPICE_OK);
  return Client(client);
}

std::atomic<bool> is_held{false}, may_go_on{false};
void HoldThread(int) {
  is_held = true;
  while (!may_go_on) {
  }
}

// As /proc has it: it sleeps in a system call.
bool IsAsleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.find(") S ") != std::string::npos;
}

// One thread polls for its answer and is held there, by a signal, while the answer arrives and
// another thread reads it; once it goes on there is nothing left to poll for.
TEST(ProcessTest, AnAnswerThatAnotherThreadReadsReachesTheOneThatWaits) {
  is_held = may_go_on = false;
  std::promise<void> has_asked, may_answer, is_back;
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    const auto first = connection.Read();
    has_asked.set_value();
    may_answer.get_future().wait_for(kPatience);
    if (first) connection.End(first->call());
    is_held = false;
    const auto second = connection.Read();
    may_go_on = true;
    is_back.get_future().wait_for(kPatience);
    if (second) connection.End(second->call());
    connection.Read();
  });
  struct sigaction action {
  }, before{};
  action.sa_handler = HoldThread;
  sigaction(SIGUSR1, &action, &before);
  const Client client = Open(agent.path(), 5000);
  std::atomic<pid_t> polling{0};
  std::thread first([&] {
    polling = gettid();
    EXPECT_EQ(coppice_job_end(client.get(), 1), COPPICE_OK) << coppice_last_error();
    is_back.set_value();
  });
  has_asked.get_future().wait();
  while (!IsAsleep(polling)) std::this_thread::yield();
  pthread_kill(first.native_handle(), SIGUSR1);
  while (!is_held) std::this_thread::yield();
  may_answer.set_value();
  while (is_held) std::this_thread::yield();  // until the answer is there
  EXPECT_EQ(coppice_job_end(client.get(), 2), COPPICE_OK) << coppice_last_error();
  first.join();
  sigaction(SIGUSR1, &before, nullptr);
}

// ---- timers ------------------------------------------------------------------------------------

std::atomic<int> ticks{0};
std::atomic<int> crowded{-1};
void Tick(int) {
  // Without a bound of its own the call would be refused now, and fail otherwise than it should.
  if (++ticks == 1000) shutdown(crowded, SHUT_RDWR);
}

// Interrupts the process every 10 ms.
class Timer final {
 public:
  Timer() {
    struct sigaction action {};
    action.sa_handler = Tick;
    sigaction(SIGALRM, &action, &before_);
    Set(10'000);
  }
  ~Timer() {
    Set(0);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  static void Set(int microseconds) {
    itimerval timer{};
    timer.it_interval.tv_usec = timer.it_value.tv_usec = microseconds;
    setitimer(ITIMER_REAL, &timer, nullptr);
  }

  struct sigaction before_ {};
};

// A listener whose queue is full.
class CrowdedAgent final {
 public:
  CrowdedAgent() {
    char folder[] = "/tmp/coppice-crowded-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/agent.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    const auto* const to = reinterpret_cast<const sockaddr*>(&address);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener_, to, sizeof address) != 0 || listen(listener_, 0) != 0) abort();
    do {
      waiting_.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    } while (connect(waiting_.back(), to, sizeof address) == 0);
    crowded = listener_;
  }
  ~CrowdedAgent() {
    for (const int fd : waiting_) close(fd);
    close(listener_);
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
  int listener_ = -1;
  std::vector<int> waiting_;
};

TEST(ProcessTest, ATimerDoesNotPutTheDeadlineOff) {
  const CrowdedAgent agent;
  const Client client = Open(agent.path(), 200);
  const Timer timer;
  EXPECT_EQ(coppice_job_end(client.get(), 1), COPPICE_DEADLINE_EXCEEDED) << coppice_last_error();
}

// ---- children ----------------------------------------------------------------------------------

void Ignore(void*, coppice_change, uint64_t, uint32_t, const char*) {}

// Calls and watches are over at the agent when the process closes them, whatever children it has.
TEST(ProcessTest, AChildHoldsNoConnectionOpen) {
  std::mutex mu;
  std::condition_variable changed;
  int over = 0;
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    while (const auto request = connection.Read()) {
      v1::TreeChange synced;
      synced.set_kind(v1::TREE_CHANGE_KIND_SYNCED);
      if (request->method() == "/coppice.v1.Trees/WatchTrees") {
        connection.Message(request->call(), synced.SerializeAsString());
      } else {
        connection.End(request->call());
      }
    }
    const std::lock_guard<std::mutex> lock(mu);
    ++over;
    changed.notify_all();
  });
  Client client = Open(agent.path());
  ASSERT_EQ(coppice_job_end(client.get(), 1), COPPICE_OK) << coppice_last_error();
  ASSERT_EQ(coppice_watch_trees(client.get(), 1, Ignore, nullptr), COPPICE_OK);
  int release[2];
  ASSERT_EQ(pipe2(release, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(release[1]);
    char byte = 0;
    const ssize_t count = read(release[0], &byte, 1);  // until the parent closes it
    const coppice_status status = coppice_job_end(client.get(), 2);
    coppice_close(client.release());
    _exit(count == 0 && status == COPPICE_FAILED_PRECONDITION ? 0 : 1);
  }
  EXPECT_EQ(coppice_job_end(client.get(), 3), COPPICE_OK) << coppice_last_error();
  client.reset();
  {
    std::unique_lock<std::mutex> lock(mu);
    EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return over == 2; }));
  }
  close(release[1]);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(release[0]);
}

// ---- cancellation ------------------------------------------------------------------------------

TEST(ProcessTest, ACallIsNotCancelledInTheMiddle) {
  std::promise<void> has_asked, is_cancelled;
  ScriptedAgent agent([&](ScriptedConnection& connection, int) {
    const auto request = connection.Read();
    if (!request) return;
    has_asked.set_value();
    is_cancelled.get_future().wait_for(kPatience);
    connection.End(request->call());
    connection.Read();
  });
  const Client client = Open(agent.path());
  struct Caller {
    coppice_client* client;
    coppice_status status;
    static void* Run(void* context) {
      auto* const caller = static_cast<Caller*>(context);
      caller->status = coppice_job_end(caller->client, 1);
      pthread_testcancel();
      caller->status = COPPICE_UNKNOWN;
      return nullptr;
    }
  } caller{client.get(), COPPICE_UNKNOWN};
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, Caller::Run, &caller), 0);
  has_asked.get_future().wait();
  pthread_cancel(thread);
  is_cancelled.set_value();
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(caller.status, COPPICE_OK);
}

}  // namespace
}  // namespace coppice::process_test
