// Held jobs: renewed while a process lives, ended when none does, through restarts.
#include "agents/node/job_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "tests/unit/agents/node/local_peer.h"
#include "tests/unit/agents/node/standing_daemon.h"

namespace coppice::job_keeper_test {
namespace {

using ::testing::HasSubstr;

constexpr char kHoldJob[] = "/coppice.v1.Local/HoldJob";

// A process that lives until it is killed.
class Rank final {
 public:
  Rank() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~Rank() { Kill(); }

  int32_t pid() const { return pid_; }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

v1::LocalEnd Hold(const StandingAgent& agent, const std::string& job, std::vector<int32_t> pids,
                  bool end_job) {
  v1::HoldJobRequest request;
  request.set_job_id(job);
  request.mutable_processes()->Add(pids.begin(), pids.end());
  request.set_end_job(end_job);
  LocalPeer peer(agent.socket());
  peer.Call(1, kHoldJob, request.SerializeAsString());
  return peer.ReadEnd();
}

class JobKeeperTest : public ::testing::Test {
 protected:
  // Renewed so often more.
  void ExpectRenewals(const std::string& job, int more) {
    const int before = daemon_.Locked([&] { return daemon_.renewals[job]; });
    EXPECT_TRUE(daemon_.Await([&] { return daemon_.renewals[job] >= before + more; })) << job;
  }
  bool AwaitEnd(const std::string& job) {
    return daemon_.Await([&] { return daemon_.ended.count(job) > 0; });
  }

  // First, so that children of fork() have no threads around.
  Rank first_, second_;
  StandingDaemon daemon_;
  StandingAgent agent_{daemon_.address()};
};

TEST_F(JobKeeperTest, RenewsWhileAnyOfTheProcessesLives) {
  EXPECT_EQ(Hold(agent_, "7", {first_.pid(), second_.pid()}, true).code(), 0u);
  ExpectRenewals("7", 3);
  first_.Kill();
  ExpectRenewals("7", 6);
  EXPECT_EQ(daemon_.Locked([&] { return daemon_.ended.count("7"); }), 0u);
  second_.Kill();
  ASSERT_TRUE(AwaitEnd("7"));
  EXPECT_NE(daemon_.Locked([&] { return daemon_.ended["7"]; }), "");  // in the user's name
  EXPECT_EQ(daemon_.Locked([&] { return daemon_.last_user; }),
            daemon_.Locked([&] { return daemon_.ended["7"]; }));
}

TEST_F(JobKeeperTest, WithoutAnEndTheLeaseRunsOut) {
  EXPECT_EQ(Hold(agent_, "7", {first_.pid()}, false).code(), 0u);
  EXPECT_EQ(Hold(agent_, "8", {second_.pid()}, true).code(), 0u);
  first_.Kill();
  second_.Kill();
  ASSERT_TRUE(AwaitEnd("8"));
  EXPECT_EQ(daemon_.Locked([&] { return daemon_.ended.size(); }), 1u);
}

TEST_F(JobKeeperTest, GoesOnAfterItsOwnRestart) {
  EXPECT_EQ(Hold(agent_, "7", {first_.pid()}, true).code(), 0u);
  EXPECT_EQ(Hold(agent_, "8", {second_.pid()}, true).code(), 0u);
  agent_.Restart();
  ExpectRenewals("7", 2);
  ExpectRenewals("8", 2);
  second_.Kill();
  ASSERT_TRUE(AwaitEnd("8"));
  agent_.Restart();
  ExpectRenewals("7", 2);
  EXPECT_EQ(daemon_.Locked([&] { return daemon_.ended.count("7"); }), 0u);
}

TEST_F(JobKeeperTest, AProcessThatWentWhileTheAgentWasAwayIsNoticed) {
  EXPECT_EQ(Hold(agent_, "7", {first_.pid()}, true).code(), 0u);
  const std::string file = agent_.state_dir() + "/held_jobs.json";
  const HoldFile holds(file);
  // As if another process had the number now.
  auto jobs = *holds.Load();
  ASSERT_EQ(jobs.size(), 1u);
  --jobs[0].processes[0].start_time;
  ASSERT_TRUE(holds.Save(jobs).ok());
  agent_.Restart();
  EXPECT_TRUE(AwaitEnd("7"));
}

TEST_F(JobKeeperTest, GoesOnWhenTheDaemonIsBack) {
  EXPECT_EQ(Hold(agent_, "7", {first_.pid()}, true).code(), 0u);
  EXPECT_EQ(Hold(agent_, "8", {second_.pid()}, true).code(), 0u);
  daemon_.Stop();
  second_.Kill();  // ended once there is somebody to tell
  daemon_.Start();
  ExpectRenewals("7", 2);
  EXPECT_TRUE(AwaitEnd("8"));
}

TEST_F(JobKeeperTest, AnEndThatFailsIsTriedAgain) {
  EXPECT_EQ(Hold(agent_, "7", {first_.pid()}, true).code(), 0u);
  daemon_.Locked([&] {
    daemon_.end_status = {grpc::StatusCode::UNAVAILABLE, "the database cannot be written"};
    return 0;
  });
  first_.Kill();
  ASSERT_TRUE(AwaitEnd("7"));
  daemon_.Locked([&] {
    daemon_.ended.clear();
    daemon_.end_status = grpc::Status::OK;
    return 0;
  });
  EXPECT_TRUE(AwaitEnd("7"));
}

TEST_F(JobKeeperTest, AJobThatIsOverOrAnothersIsNotHeld) {
  daemon_.Locked([&] {
    daemon_.state = v1::JOB_STATE_EXPIRED;
    return 0;
  });
  v1::LocalEnd end = Hold(agent_, "7", {first_.pid()}, true);
  EXPECT_EQ(end.code(), static_cast<uint32_t>(grpc::StatusCode::FAILED_PRECONDITION));
  EXPECT_THAT(end.message(), HasSubstr("job 7"));
  daemon_.Locked([&] {
    daemon_.renewal_status = {grpc::StatusCode::PERMISSION_DENIED, "job 7 is bob's"};
    return 0;
  });
  end = Hold(agent_, "7", {first_.pid()}, true);
  EXPECT_EQ(end.code(), static_cast<uint32_t>(grpc::StatusCode::PERMISSION_DENIED));
  EXPECT_EQ(end.message(), "job 7 is bob's");
  first_.Kill();
  EXPECT_EQ(daemon_.Locked([&] { return daemon_.ended.size(); }), 0u);
}

TEST_F(JobKeeperTest, OneThatEndsElsewhereIsLetGo) {
  EXPECT_EQ(Hold(agent_, "7", {first_.pid()}, true).code(), 0u);
  daemon_.Locked([&] {
    daemon_.state = v1::JOB_STATE_ENDED;
    return 0;
  });
  ExpectRenewals("7", 1);
  const HoldFile holds(agent_.state_dir() + "/held_jobs.json");
  while (!holds.Load()->empty()) std::this_thread::yield();
}

TEST_F(JobKeeperTest, WhatCannotBeHeldIsNamed) {
  v1::LocalEnd end = Hold(agent_, "", {}, true);
  EXPECT_THAT(end.message(), HasSubstr("job_id"));
  end = Hold(agent_, "7", {999'999'999}, true);
  EXPECT_EQ(end.code(), static_cast<uint32_t>(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_THAT(end.message(), HasSubstr("process 999999999"));
  LocalPeer peer(agent_.socket());
  peer.Call(1, kHoldJob, "\x0a\x7f");
  EXPECT_EQ(peer.ReadEnd().code(), static_cast<uint32_t>(grpc::StatusCode::INVALID_ARGUMENT));
}

TEST_F(JobKeeperTest, WithoutAProcessNamedItIsTheCallers) {
  EXPECT_EQ(Hold(agent_, "7", {}, true).code(), 0u);
  const auto jobs = HoldFile(agent_.state_dir() + "/held_jobs.json").Load();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().processes, std::vector<ProcessIdentity>{*FindProcess(getpid())});
  EXPECT_TRUE(jobs->front().end_job);
}

TEST_F(JobKeeperTest, ADenialThatPassesCostsNoHold) {
  EXPECT_EQ(Hold(agent_, "7", {first_.pid()}, true).code(), 0u);
  daemon_.Locked([&] {
    daemon_.renewal_status = {grpc::StatusCode::PERMISSION_DENIED, "coppice-user: not from you"};
    return 0;
  });
  ExpectRenewals("7", 3);
  daemon_.Locked([&] {
    daemon_.renewal_status = grpc::Status::OK;
    return 0;
  });
  ExpectRenewals("7", 3);
  EXPECT_EQ(HoldFile(agent_.state_dir() + "/held_jobs.json").Load()->size(), 1u);
}

TEST_F(JobKeeperTest, AJobHasOneName) {
  EXPECT_EQ(Hold(agent_, "7", {first_.pid()}, true).code(), 0u);
  for (const std::string& id :
       {std::string("07"), std::string("+7"), std::string(" 7"), std::string("-7"),
        std::string("0"), std::string("7x"), std::string(1 << 20, '0') + "7",
        std::string("9223372036854775808")}) {
    const v1::LocalEnd end = Hold(agent_, id, {first_.pid()}, true);
    EXPECT_EQ(end.code(), static_cast<uint32_t>(grpc::StatusCode::INVALID_ARGUMENT));
    EXPECT_LT(end.message().size(), 200u);
  }
  EXPECT_EQ(HoldFile(agent_.state_dir() + "/held_jobs.json").Load()->size(), 1u);
}

// Nobody looks at the processes of a job that is another's; each counts once, and the dead not.
TEST_F(JobKeeperTest, ProcessesAreCounted) {
  std::vector<int32_t> many(4097, first_.pid());
  v1::LocalEnd end = Hold(agent_, "7", many, true);
  EXPECT_EQ(end.code(), static_cast<uint32_t>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_THAT(end.message(), HasSubstr("4096"));
  many.pop_back();
  EXPECT_EQ(Hold(agent_, "7", many, true).code(), 0u);
  EXPECT_EQ(Hold(agent_, "7", {first_.pid(), second_.pid()}, true).code(), 0u);
  const HoldFile holds(agent_.state_dir() + "/held_jobs.json");
  EXPECT_EQ(holds.Load()->front().processes.size(), 2u);
  daemon_.Locked([&] {
    daemon_.renewal_status = {grpc::StatusCode::PERMISSION_DENIED, "job 8 is bob's"};
    return 0;
  });
  EXPECT_EQ(Hold(agent_, "8", {999'999'999}, true).message(), "job 8 is bob's");
}

TEST_F(JobKeeperTest, AUserHoldsSoManyJobs) {
  LocalPeer peer(agent_.socket());
  uint64_t call = 0;
  const auto hold = [&](int job) {
    v1::HoldJobRequest request;
    request.set_job_id(std::to_string(job));
    peer.Call(++call, kHoldJob, request.SerializeAsString());
  };
  for (int job = 1; job <= 1024; job += 256) {
    for (int i = 0; i < 256; ++i) hold(job + i);
    for (int i = 0; i < 256; ++i) EXPECT_EQ(peer.ReadEnd().code(), 0u);
  }
  hold(1025);
  EXPECT_EQ(peer.ReadEnd().code(), static_cast<uint32_t>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  hold(1024);  // one of them once more
  EXPECT_EQ(peer.ReadEnd().code(), 0u);
}

// Over all of the user's jobs: each look at them, and the file, costs as much as there are.
TEST(HeldProcessesTest, AUserHoldsSoMany) {
  std::vector<std::unique_ptr<Rank>> ranks;  // first, as above
  for (int i = 0; i < 64; ++i) ranks.push_back(std::make_unique<Rank>());
  std::vector<int32_t> pids;
  for (const auto& rank : ranks) pids.push_back(rank->pid());
  StandingDaemon daemon;
  daemon.lease_ms = 600'000;
  StandingAgent agent(daemon.address());
  for (int job = 1; job <= 8192 / 64; ++job) {
    ASSERT_EQ(Hold(agent, std::to_string(job), pids, false).code(), 0u) << job;
  }
  const v1::LocalEnd end = Hold(agent, "1000", {pids[0]}, false);
  EXPECT_EQ(end.code(), static_cast<uint32_t>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_THAT(end.message(), HasSubstr("8192"));
  EXPECT_EQ(Hold(agent, "1", pids, false).code(), 0u);  // no more than before
  // One that has ended counts no longer once it has been looked at.
  ranks.back()->Kill();
  while (Hold(agent, "1000", {pids[0]}, false).code() != 0u) std::this_thread::yield();
}

// Each is on disk before it is answered, though not each by a file of its own.
TEST_F(JobKeeperTest, ManyHoldsShareAWrite) {
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  ASSERT_GE(inotify_add_watch(watch, agent_.state_dir().c_str(), IN_MOVED_TO), 0);
  LocalPeer peer(agent_.socket());
  for (uint64_t job = 1; job <= 256; ++job) {
    v1::HoldJobRequest request;
    request.set_job_id(std::to_string(job));
    peer.Call(job, kHoldJob, request.SerializeAsString());
  }
  for (int i = 0; i < 256; ++i) EXPECT_EQ(peer.ReadEnd().code(), 0u);
  EXPECT_EQ(HoldFile(agent_.state_dir() + "/held_jobs.json").Load()->size(), 256u);
  alignas(inotify_event) char events[1 << 16];
  const ssize_t bytes = read(watch, events, sizeof events);
  ssize_t writes = 0;
  for (ssize_t at = 0; at < bytes; ++writes) {
    at += static_cast<ssize_t>(sizeof(inotify_event) +
                               reinterpret_cast<const inotify_event*>(events + at)->len);
  }
  close(watch);
  EXPECT_GT(writes, 0);
  EXPECT_LT(writes, 200);
}

TEST(RenewalTimesTest, TwoTriesMayFailWithinALease) {
  for (int64_t lease_ms = 1'000; lease_ms <= 86'400'000; lease_ms = lease_ms * 5 / 4) {
    const LeaseTime lease(lease_ms);
    EXPECT_LE(RenewalWait(lease) + 2 * (MaxTry(lease) + MaxPause(lease)), lease) << lease_ms;
    EXPECT_LE(MaxTry(lease), kMaxTry);
  }
  EXPECT_GT(MaxTry(LeaseTime(0)).count(), 0);
  EXPECT_GE(MaxPause(LeaseTime(1)), kMinRenewalTime);
}

}  // namespace
}  // namespace coppice::job_keeper_test
