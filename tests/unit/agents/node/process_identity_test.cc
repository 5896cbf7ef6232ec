// Processes are told apart by when they began.
#include "agents/node/process_identity.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace coppice::process_identity_test {
namespace {

std::string Stat(const std::string& name, const std::string& state, const std::string& start,
                 const std::string& threads = "1") {
  return "12 (" + name + ") " + state + " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 " + threads +
         " 18 " + start + " 99 98\n";
}

TEST(ProcessIdentityTest, StartTimeIsTheTwentySecondField) {
  EXPECT_EQ(*ParseStartTime(Stat("bash", "S", "777")), 777u);
  EXPECT_EQ(*ParseStartTime(Stat(") Z 1 (", "R", "777")), 777u);
  EXPECT_EQ(*ParseStartTime(Stat("bash", "Z", "777", "2")), 777u);  // another thread lives
  for (const std::string& ended : {Stat("bash", "Z", "777"), Stat("bash", "X", "777", "2")}) {
    EXPECT_EQ(ParseStartTime(ended).status().code(), absl::StatusCode::kNotFound) << ended;
  }
  for (const std::string& none :
       {Stat("bash", "S", "x"), Stat("bash", "Z", "1", "x"), std::string(),
        std::string("12 (bash) S 1 2"), std::string("12 bash S")}) {
    EXPECT_EQ(ParseStartTime(none).status().code(), absl::StatusCode::kUnavailable) << none;
  }
}

TEST(ProcessIdentityTest, FindsWhatRunsAndNothingElse) {
  const auto self = FindProcess(getpid());
  ASSERT_TRUE(self.ok()) << self.status();
  EXPECT_FALSE(IsGone(*self));
  EXPECT_TRUE(IsGone({self->pid, self->start_time + 1}));  // its number was used again
  EXPECT_EQ(*OwnerOfProcess(getpid()), getuid());
  for (const int64_t nobody : {int64_t{0}, int64_t{-1}, int64_t{1} << 40, int64_t{999'999'999}}) {
    EXPECT_EQ(FindProcess(nobody).status().code(), absl::StatusCode::kNotFound) << nobody;
    EXPECT_EQ(OwnerOfProcess(nobody).status().code(), absl::StatusCode::kNotFound) << nobody;
    EXPECT_TRUE(IsGone({nobody, 1}));
  }
  EXPECT_FALSE(BootId().empty());
  EXPECT_EQ(BootId(), BootId());
}

TEST(ProcessIdentityTest, OneThatHasEndedIsGoneBeforeAnybodyHasWaitedForIt) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto process = FindProcess(child);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_FALSE(IsGone(*process));
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(IsGone(*process));
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(IsGone(*process));
}

// A child that runs `body`, which says over a pipe when it stands and then never returns.
class Child final {
 public:
  explicit Child(void (*body)(int said)) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) body(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

void Say(int said) {
  (void)!write(said, "!", 1);
  for (;;) pause();
}

// The first thread is a zombie once the second one sees it so.
void EndFirstThread(int said) {
  static int fd;
  fd = said;
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        const std::string path = "/proc/" + std::to_string(getpid()) + "/stat";
        for (;;) {
          char text[512] = {};
          FILE* const file = fopen(path.c_str(), "r");
          const size_t count = fread(text, 1, sizeof text - 1, file);
          fclose(file);
          if (std::string(text, count).find(") Z ") != std::string::npos) break;
        }
        Say(fd);
        return nullptr;
      },
      nullptr);
  syscall(SYS_exit, 0);  // of this thread alone; pthread_exit() would unwind into the test
  _exit(1);
}

TEST(ProcessIdentityTest, OneWhoseFirstThreadHasEndedLives) {
  const Child child(EndFirstThread);
  const auto process = FindProcess(child.pid());
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_FALSE(IsGone(*process));
}

TEST(ProcessIdentityTest, OneThatMayNotBeTracedIsItsOwners) {
  const Child child([](int said) {
    prctl(PR_SET_DUMPABLE, 0);
    if (getuid() == 0) (void)!setreuid(65534, 65534);
    prctl(PR_SET_DUMPABLE, 0);
    Say(said);
  });
  const auto owner = OwnerOfProcess(child.pid());
  ASSERT_TRUE(owner.ok()) << owner.status();
  EXPECT_EQ(*owner, getuid() == 0 ? 65534u : getuid());
}

// Takes all descriptors that the process may have.
class NoDescriptors final {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(ProcessIdentityTest, WithoutADescriptorNobodyIsTakenForGone) {
  const Child child(Say);
  const auto process = FindProcess(child.pid());
  ASSERT_TRUE(process.ok());
  const ProcessIdentity nobody{999'999'999, 1};
  const NoDescriptors none;
  EXPECT_FALSE(IsGone(*process));
  EXPECT_TRUE(IsGone(nobody));  // this needs none
  EXPECT_EQ(FindProcess(child.pid()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(OwnerOfProcess(child.pid()).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace coppice::process_identity_test
