// Jobs belong to the Unix user that registered them, as the kernel names it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "daemon/rpc/listen/listeners.h"
#include "daemon/rpc/listen/unix_users.h"
#include "tests/unit/rpc/loopback.h"
#include "tests/unit/rpc/users.h"

namespace coppice::owners_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using JobsStub = v1::Jobs::Stub;
using TreesStub = v1::Trees::Stub;
using FabricStub = v1::Fabric::Stub;

// The calls of one user, over a connection of its own.
class User {
 public:
  User(Loopback& loopback, uid_t uid)
      : loopback_(loopback),
        channel_(ChannelOf(ConnectAs(uid, loopback.server().addresses()[0]))),
        jobs_(v1::Jobs::NewStub(channel_)),
        trees_(v1::Trees::NewStub(channel_)),
        fabric_(v1::Fabric::NewStub(channel_)) {}

  absl::StatusOr<v1::Job> Register(const std::string& request_id = "") {
    v1::RegisterJobRequest request;
    request.set_all_endpoints(true);
    request.set_request_id(request_id);
    return loopback_.Call(*jobs_, &JobsStub::RegisterJob, request);
  }
  absl::Status Read(const std::string& job) {
    v1::GetJobRequest request;
    request.set_id(job);
    return loopback_.Call(*jobs_, &JobsStub::GetJob, request).status();
  }
  absl::Status End(const std::string& job) {
    v1::EndJobRequest request;
    request.set_id(job);
    return loopback_.Call(*jobs_, &JobsStub::EndJob, request).status();
  }
  absl::Status KeepAlive(const std::string& job) {
    grpc::ClientContext context;
    Loopback::SetDeadline(context);
    const auto stream = jobs_->KeepAlive(&context);
    v1::KeepAliveRequest request;
    request.set_id(job);
    v1::KeepAliveResponse response;
    stream->Write(request);
    stream->Read(&response);
    stream->WritesDone();
    return Loopback::ToAbsl(stream->Finish());
  }
  absl::StatusOr<v1::Tree> Create(const std::string& job, bool advise = false) {
    v1::CreateTreeRequest request;
    request.set_job_id(job);
    request.set_validate_only(advise);
    return loopback_.Call(*trees_, &TreesStub::CreateTree, request);
  }
  absl::Status Batch(const std::string& job) {
    v1::BatchCreateTreesRequest request;
    request.set_job_id(job);
    request.mutable_grid()->add_sizes(4);
    request.mutable_grid()->add_sizes(4);
    grpc::ClientContext context;
    Loopback::SetDeadline(context);
    const auto stream = trees_->BatchCreateTrees(&context, request);
    v1::BatchCreateTreesUpdate update;
    while (stream->Read(&update)) {
    }
    return Loopback::ToAbsl(stream->Finish());
  }
  absl::Status Release(const std::string& tree) {
    v1::ReleaseTreeRequest request;
    request.set_id(tree);
    return loopback_.Call(*trees_, &TreesStub::ReleaseTree, request).status();
  }
  absl::Status Sweep() {
    return loopback_.Call(*fabric_, &FabricStub::Sweep, v1::SweepRequest()).status();
  }
  absl::Status Reset() {
    return loopback_.Call(*fabric_, &FabricStub::ResetCalibration, v1::ResetCalibrationRequest())
        .status();
  }
  absl::Status Calibrate() {
    return loopback_.Call(*fabric_, &FabricStub::Calibrate, v1::CalibrateRequest()).status();
  }

 private:
  Loopback& loopback_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<JobsStub> jobs_;
  const std::unique_ptr<TreesStub> trees_;
  const std::unique_ptr<FabricStub> fabric_;
};

class Owners : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!MayActAsOthers()) GTEST_FAIL();
  }
  static void ExpectDenied(const absl::Status& status, const std::string& who) {
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(who), HasSubstr("ask "), HasSubstr("coppice-test")));
  }
  Loopback loopback_{{.server = {{.admin_group = "coppice-test"}}}};
};

TEST_F(Owners, AreUsersByName) {
  EXPECT_EQ(User(loopback_, kDaemonUser).Register()->owner(), "daemon");
  EXPECT_EQ(User(loopback_, kBinUser).Register()->owner(), "bin");
  EXPECT_EQ(User(loopback_, kNamelessUser).Register()->owner(), "54321");
  EXPECT_EQ(User(loopback_, 0).Register()->owner(), "root");
}

TEST_F(Owners, AloneChangeTheirJobs) {
  User owner(loopback_, kDaemonUser), other(loopback_, kBinUser),
      nameless(loopback_, kNamelessUser);
  const std::string job = owner.Register()->id();
  const auto tree = owner.Create(job);
  ASSERT_TRUE(tree.ok()) << tree.status();
  for (User* stranger : {&other, &nameless}) {
    ExpectDenied(stranger->End(job), "daemon");
    ExpectDenied(stranger->KeepAlive(job), "daemon");
    ExpectDenied(stranger->Create(job).status(), "daemon");
    ExpectDenied(stranger->Batch(job), "daemon");
    ExpectDenied(stranger->Release(tree->id()), "daemon");
    EXPECT_TRUE(stranger->Read(job).ok());
    EXPECT_TRUE(stranger->Create(job, /*advise=*/true).ok());
  }
  EXPECT_TRUE(owner.KeepAlive(job).ok());
  EXPECT_TRUE(owner.Release(tree->id()).ok());
  EXPECT_TRUE(owner.End(job).ok());
  ExpectDenied(other.End(job), "daemon");  // also when it is over
  EXPECT_TRUE(other.KeepAlive(job).ok());  // which everybody may be told
  EXPECT_TRUE(absl::IsNotFound(other.End("4711")));
  EXPECT_TRUE(absl::IsNotFound(other.Release("4711")));
  EXPECT_TRUE(absl::IsNotFound(other.Create("4711").status()));
}

TEST_F(Owners, DoNotShareRequestIds) {
  User owner(loopback_, kDaemonUser), other(loopback_, kBinUser);
  const auto job = owner.Register("once");
  EXPECT_EQ(owner.Register("once")->id(), job->id());
  // Who uses a name first keeps nobody else from it.
  const auto others = other.Register("once");
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_NE(others->id(), job->id());
  EXPECT_EQ(other.Register("once")->id(), others->id());
}

TEST_F(Owners, AreUnderAdministrators) {
  User owner(loopback_, kDaemonUser), other(loopback_, kBinUser), root(loopback_, 0);
  const std::string job = owner.Register()->id();
  const auto tree = root.Create(job);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_TRUE(root.KeepAlive(job).ok());
  EXPECT_TRUE(root.Sweep().ok());
  EXPECT_TRUE(root.Reset().ok());
  for (const auto call : {&User::Sweep, &User::Reset, &User::Calibrate}) {
    ExpectDenied((other.*call)(), "bin");
  }
  // Their own group makes them administrators; so does one that they are listed in.
  loopback_.server().SetAdministrators("bin", {});
  EXPECT_TRUE(other.Sweep().ok());
  EXPECT_TRUE(other.Release(tree->id()).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(owner.Sweep()));
  loopback_.server().SetAdministrators("daemon", {});
  EXPECT_TRUE(owner.Sweep().ok());
  EXPECT_TRUE(absl::IsPermissionDenied(other.End(job)));
  EXPECT_TRUE(root.End(job).ok());
}

TEST_F(Owners, OfEarlierReleasesAreUnknown) {
  RegisterJobArgs args;
  args.owner = "unknown";
  args.all_endpoints = true;
  std::string job;
  absl::Notification registered;
  loopback_.manager().RegisterJob(args, [&](absl::StatusOr<JobView> view) {
    job = absl::StrCat(view->record->id.value());
    registered.Notify();
  });
  registered.WaitForNotification();
  ExpectDenied(User(loopback_, kDaemonUser).End(job), "not noted");
  EXPECT_TRUE(User(loopback_, 0).End(job).ok());
}

TEST_F(Owners, ConnectAsTheSocketsModeAllows) {
  Loopback closed({.server = {{.socket_mode = 0600}}});
  const std::string path = closed.server().addresses()[0].substr(5);
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  ASSERT_EQ(stat(loopback_.server().addresses()[0].substr(5).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0666u);
}

// Opens a socket for the group and says which mode and group its file has.
struct stat SocketOf(const AccessOptions& access) {
  std::string folder = "/tmp/coppice-socket-XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  struct stat info {};
  {
    const auto listener = UnixListener::Open({folder + "/s"}, access);
    EXPECT_TRUE(listener.ok()) << listener.status();
    EXPECT_EQ(stat((folder + "/s").c_str(), &info), 0);
  }
  std::filesystem::remove_all(folder);
  return info;
}

TEST_F(Owners, ConnectAsMembersOfTheSocketsGroup) {
  struct stat info = SocketOf({0660, "bin"});
  EXPECT_EQ(info.st_gid, UnixUsers::FindGroup("bin"));
  EXPECT_EQ(info.st_mode & 07777, 0660u);
  // Without that group nobody in its place; whom the mode lets in anyway stays so.
  info = SocketOf({0660, "coppice-test"});
  EXPECT_EQ(info.st_gid, getegid());
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(SocketOf({0666, "coppice-test"}).st_mode & 07777, 0666u);
  EXPECT_EQ(SocketOf({0600, "coppice-test"}).st_mode & 07777, 0600u);
  EXPECT_EQ(RpcServerOptions().socket_mode, 0660u);
  const absl::Status needed =
      UnixListener::Open({"/tmp/coppice-no-such-socket"}, {0660, "coppice-test", true}).status();
  EXPECT_EQ(needed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(needed.message()), HasSubstr("no group coppice-test"));
}

TEST(UnixUsers, NamesAndRefusesGroups) {
  UnixUsers users("coppice-test");
  EXPECT_EQ(users.Find(0).name, "root");
  EXPECT_TRUE(users.Find(0).is_administrator);
  EXPECT_TRUE(users.Find(geteuid()).is_administrator);
  EXPECT_EQ(users.Find(kNamelessUser).name, "54321");
  EXPECT_FALSE(users.Find(kNamelessUser).is_administrator);
  EXPECT_FALSE(users.Find(kBinUser).is_administrator);
  users.SetAdminGroup("bin");
  EXPECT_TRUE(users.Find(kBinUser).is_administrator);
  EXPECT_TRUE(UnixUsers::CheckGroup("bin").ok());
  const absl::Status none = UnixUsers::CheckGroup("coppice-test");
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(std::string(none.message()), HasSubstr("coppice-test"));
}

// Its uid may be any service's on the node that says it.
TEST(UnixUsers, WhoRunsTheDaemonIsNoAdministratorByName) {
  ASSERT_TRUE(MayActAsOthers());
  UnixUsers users("coppice-test");
  // The bare system call changes the user of its own thread only.
  std::thread([&users] {
    ASSERT_EQ(syscall(SYS_setresuid, kBinUser, kBinUser, kBinUser), 0);
    EXPECT_TRUE(users.Find(kBinUser).is_administrator);
    for (const char* const name : {"2", "bin"}) {
      const std::optional<UnixUser> named = users.FindNamed(name);
      ASSERT_TRUE(named.has_value());
      EXPECT_EQ(named->name, "bin");
      EXPECT_FALSE(named->is_administrator) << name;
    }
    EXPECT_TRUE(users.Find(kBinUser).is_administrator);
    EXPECT_TRUE(users.FindNamed("0")->is_administrator);
    users.SetAdminGroup("bin");
    EXPECT_TRUE(users.FindNamed("2")->is_administrator);
  }).join();
}

}  // namespace
}  // namespace coppice::owners_test
