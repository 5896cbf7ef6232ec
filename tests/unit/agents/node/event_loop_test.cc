#include "agents/node/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <thread>

namespace coppice::event_loop_test {
namespace {

using std::chrono::milliseconds;

TEST(EventLoopTest, TimersComeInTheirOrderUnlessCancelled) {
  const auto loop = *EventLoop::Create();
  std::string order;
  loop->After(milliseconds(20), [&] { order += 'c'; });
  loop->After(milliseconds(0), [&] { order += 'a'; });
  const auto cancelled = loop->After(milliseconds(5), [&] { order += 'x'; });
  loop->After(milliseconds(1), [&] {
    order += 'b';
    loop->Cancel(cancelled);
  });
  loop->After(milliseconds(30), [&] { loop->Stop(); });
  loop->Run();
  EXPECT_EQ(order, "abc");
}

TEST(EventLoopTest, WorkOfOtherThreadsKeepsItsOrder) {
  const auto loop = *EventLoop::Create();
  std::vector<int> seen[4];
  std::vector<std::thread> threads;
  int left = 4;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 1000; ++i) loop->Post([&, thread, i] { seen[thread].push_back(i); });
      loop->Post([&] {
        if (--left == 0) loop->Stop();
      });
    });
  }
  loop->Run();
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : seen) {
    ASSERT_EQ(one.size(), 1000u);
    EXPECT_TRUE(std::is_sorted(one.begin(), one.end()));
  }
}

TEST(EventLoopTest, WhatIsForgottenIsNotCalled) {
  const auto loop = *EventLoop::Create();
  int pipes[2][2];
  ASSERT_EQ(pipe(pipes[0]) + pipe(pipes[1]), 0);
  int calls = 0;
  for (int i = 0; i < 2; ++i) {
    loop->Watch(pipes[i][0], EPOLLIN, [&](uint32_t) {
      ++calls;
      // Both are ready in the same turn; whoever is first forgets both, itself too.
      for (const auto& one : pipes) loop->Forget(one[0]);
      loop->Stop();
    });
    ASSERT_EQ(write(pipes[i][1], "x", 1), 1);
  }
  loop->Run();
  EXPECT_EQ(calls, 1);
  for (const auto& one : pipes) {
    close(one[0]);
    close(one[1]);
  }
}

TEST(EventLoopTest, RunUntilEndsBySelfOrByTime) {
  const auto loop = *EventLoop::Create();
  bool is_done = false;
  loop->After(milliseconds(1), [&] { is_done = true; });
  loop->RunUntil([&] { return is_done; }, milliseconds(60'000));
  EXPECT_TRUE(is_done);
  loop->RunUntil([] { return false; }, milliseconds(1));
}

}  // namespace
}  // namespace coppice::event_loop_test
