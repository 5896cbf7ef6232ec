// A call that outlives its connection: until it is done no other connection may have the number of
// its descriptor, which is all that a call tells of who makes it (daemon/rpc/calls/peer.h).
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <set>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "tests/benchmark/empty.grpc.pb.h"
#include "tests/unit/rpc/loopback.h"
#include "tests/unit/rpc/users.h"

namespace coppice::late_call_test {
namespace {

using coppice::benchmark::Empty;
using coppice::benchmark::EmptyMessage;

constexpr int kConnections = 40;
constexpr int kMaxRounds = 10'000;  // that gRPC may take to close a connection

// A call with the metadata "hold" that waits for its client's end and then for Release.
class HeldCall final : public grpc::ServerUnaryReactor {
 public:
  explicit HeldCall(absl::Notification* is_cancelled) : is_cancelled_(is_cancelled) {}
  void OnCancel() override { is_cancelled_->Notify(); }
  void OnDone() override { delete this; }

 private:
  absl::Notification* const is_cancelled_;
};

class PeerService final : public Empty::CallbackService {
 public:
  grpc::ServerUnaryReactor* Call(grpc::CallbackServerContext* context, const EmptyMessage*,
                                 EmptyMessage*) override {
    absl::MutexLock lock(&mutex_);
    if (context->client_metadata().count("hold") > 0) {
      held_context_ = context;
      is_held_.Notify();
      return held_ = new HeldCall(&is_cancelled_);
    }
    peers_.insert(context->peer());
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  void AwaitHeldCall() { is_held_.WaitForNotification(); }
  std::string AwaitLateCall() {
    is_cancelled_.WaitForNotification();
    return HeldPeer();
  }
  std::string HeldPeer() {
    absl::MutexLock lock(&mutex_);
    return held_context_->peer();
  }
  void Release() {
    absl::MutexLock lock(&mutex_);
    held_->Finish(grpc::Status::OK);
  }
  std::set<std::string> TakePeers() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(peers_, {});
  }

 private:
  absl::Mutex mutex_;
  absl::Notification is_held_, is_cancelled_;
  grpc::CallbackServerContext* held_context_ = nullptr;
  HeldCall* held_ = nullptr;
  std::set<std::string> peers_;
};

// Of the file that has the number; 0: none has.
ino_t InodeOf(int number) {
  struct stat file;
  return fstat(number, &file) == 0 ? file.st_ino : 0;
}

void CallOnce(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  Loopback::SetDeadline(context);
  EmptyMessage message;
  const grpc::Status status = Empty::NewStub(channel)->Call(&context, message, &message);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(LateCall, KeepsTheNumberOfItsConnection) {
  ASSERT_TRUE(MayActAsOthers());
  Loopback loopback;
  PeerService service;
  RpcServerOptions options;
  options.listen = {loopback.server().addresses()[0] + "2"};
  auto server = RpcServer::Start(loopback.parts(), options, {&service});
  ASSERT_TRUE(server.ok()) << server.status();

  // A user's call is in its handler when its connection breaks.
  const int fd = ConnectAs(kDaemonUser, options.listen[0]);
  auto channel = ChannelOf(fd);
  grpc::ClientContext context;
  context.AddMetadata("hold", "1");
  EmptyMessage request, response;
  absl::Notification answered;
  const auto stub = Empty::NewStub(channel);
  stub->async()->Call(&context, &request, &response,
                      [&](const grpc::Status&) { answered.Notify(); });
  service.AwaitHeldCall();  // one that the server has not matched yet would just be forgotten
  shutdown(fd, SHUT_RDWR);
  const std::string late = service.AwaitLateCall();
  answered.WaitForNotification();
  ASSERT_EQ(late.substr(0, 3), "fd:");
  const int number = std::stoi(late.substr(3));

  // Others come, and go, and come.
  for (int i = 0; i < kConnections; ++i) {
    CallOnce(ChannelOf(ConnectAs(kBinUser, options.listen[0])));
    EXPECT_EQ(service.TakePeers().count(late), 0u) << "round " << i;
  }
  EXPECT_EQ(service.HeldPeer(), late);
  const ino_t inode = InodeOf(number);
  EXPECT_NE(inode, 0u) << "the number is free while its call lives";

  // Once the call is done the number is free. Whose it is next is anybody's guess: other threads of
  // this process open files, too.
  const std::shared_ptr<grpc::Channel> other = ChannelOf(ConnectAs(kBinUser, options.listen[0]));
  CallOnce(other);
  service.Release();
  for (int i = 0; i < kMaxRounds && InodeOf(number) == inode; ++i) CallOnce(other);
  EXPECT_NE(InodeOf(number), inode) << "the number was never free again";
}

}  // namespace
}  // namespace coppice::late_call_test
