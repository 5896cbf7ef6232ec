// What the process takes, against what this test makes it take.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/rpc/server.h"

namespace coppice::process_test {
namespace {

TEST(ProcessTest, OpenFilesAndThreadsAreCounted) {
  const ProcessNumbers before = ReadProcess();
  std::vector<int> files;
  for (int i = 0; i < 20; ++i) files.push_back(open("/dev/null", O_RDONLY));
  std::atomic<bool> stop = false;
  std::thread thread([&] { stop.wait(false); });
  const ProcessNumbers now = ReadProcess();
  stop = true;
  stop.notify_all();
  thread.join();
  for (const int file : files) close(file);
  EXPECT_EQ(before.open_files + 20, now.open_files);
  EXPECT_EQ(before.threads + 1, now.threads);
  EXPECT_EQ(before.open_files, ReadProcess().open_files);
  EXPECT_GE(now.max_open_files, now.open_files);
}

TEST(ProcessTest, MemoryAndTimesAreThoseOfThisProcess) {
  constexpr size_t kBytes = 64 << 20;
  const ProcessNumbers before = ReadProcess();
  EXPECT_GT(before.resident_bytes, uint64_t{1} << 20);
  EXPECT_LT(before.resident_bytes, before.virtual_bytes);
  std::vector<char> memory(kBytes);
  uint64_t sum = 0;
  for (int round = 0; round < 5; ++round) {
    for (size_t i = 0; i < kBytes; i += 64) sum += static_cast<uint64_t>(++memory[i]);
  }
  EXPECT_GT(sum, 0u);
  const ProcessNumbers now = ReadProcess();
  EXPECT_GT(now.virtual_bytes, before.virtual_bytes);
  EXPECT_GE(now.cpu_time, before.cpu_time);
  EXPECT_EQ(before.start_time, now.start_time);
  EXPECT_LT(now.start_time, absl::Now() + absl::Seconds(1));
  EXPECT_GT(now.start_time, absl::Now() - absl::Hours(24));
}

}  // namespace
}  // namespace coppice::process_test
