// Calls are somebody's, or are not made: metadata that gRPC dies of, and names that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "agents/node/daemon_link.h"
#include "coppice/v1/trees.pb.h"
#include "tests/unit/agents/node/standing_daemon.h"

namespace coppice::forwarded_call_test {
namespace {

struct Ended {
  grpc::Status status;
  std::string message;
};

// Reads one answer of Trees.GetTree, which says who asked.
Ended CallAs(const std::string& server, const std::string& user) {
  auto loop = *EventLoop::Create();
  DaemonLink link(loop.get(), server, grpc::InsecureChannelCredentials());
  v1::GetTreeRequest request;
  request.set_id("1");
  const std::string text = request.SerializeAsString();
  ForwardedCall::Request call;
  call.method = "/coppice.v1.Trees/GetTree";
  call.user = user;
  call.message = text;
  Ended ended;
  bool is_over = false;
  std::shared_ptr<ForwardedCall> made;
  ForwardedCall::Events events;
  events.on_message = [&](const std::string& message) {
    ended.message = message;
    made->ReadMore();
  };
  events.on_end = [&](const grpc::Status& status) {
    ended.status = status;
    is_over = true;
  };
  made = link.Call(call, std::move(events));
  made->ReadMore();  // may be asked at any time
  loop->RunUntil([&] { return is_over; }, std::chrono::milliseconds(60'000));
  EXPECT_TRUE(is_over) << user;
  made.reset();
  loop->RunUntil([&] { return link.IsIdle(); }, std::chrono::milliseconds(60'000));
  EXPECT_TRUE(link.IsIdle());
  return ended;
}

TEST(ForwardedCallTest, WithoutANameItIsNotTheAgentsOwn) {
  StandingDaemon daemon;
  for (const std::string& user :
       {std::string(), std::string("j\xc3\xb6rg"), std::string("a b"), std::string("a\n"),
        std::string("a\0b", 3), std::string(256, 'a'), std::string("\x7f")}) {
    const Ended ended = CallAs(daemon.address(), user);
    EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << user;
    EXPECT_THAT(ended.status.error_message(), testing::HasSubstr("uid in digits"));
    EXPECT_EQ(ended.message, "");
  }
}

TEST(ForwardedCallTest, ANumberAndANameArriveAsTheyAre) {
  StandingDaemon daemon;
  for (const char* user : {"0", "50000", "alice", "svc.mpi-1$"}) {
    const Ended ended = CallAs(daemon.address(), user);
    EXPECT_TRUE(ended.status.ok()) << ended.status.error_message();
    v1::Tree tree;
    ASSERT_TRUE(tree.ParseFromString(ended.message));
    EXPECT_EQ(tree.reason(), user);
  }
}

}  // namespace
}  // namespace coppice::forwarded_call_test
