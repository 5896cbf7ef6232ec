// The file of held jobs: read as it was written, or not at all.
#include "agents/node/hold_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/support/tier.h"

namespace coppice::hold_file_test {
namespace {

class HoldFileTest : public ::testing::Test {
 protected:
  HoldFileTest() {
    char folder[] = "/tmp/coppice-hold-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/held.json";
  }
  ~HoldFileTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_, path_;
};

std::vector<HeldJob> SomeJobs() {
  return {{"7", "alice", {{123, 456}, {124, ~uint64_t{0}}}, true},
          {"19", "1000", {}, false},
          {"20", "b\"\\\nob\xff", {{1, 0}}, false}};
}

TEST(HoldsTest, ComeBackAsTheyWere) {
  auto jobs = SomeJobs();
  jobs[2].user = "b\"\\\nob";
  const auto read = ParseHolds(FormatHolds(jobs, "boot"), "boot");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, jobs);
  EXPECT_TRUE(ParseHolds(FormatHolds({}, ""), "")->empty());
  EXPECT_TRUE(ParseHolds(FormatHolds(SomeJobs(), "boot"), "boot").ok());  // a name beyond UTF-8
}

TEST(HoldsTest, ProcessesOfAnotherStartOfTheNodeAreGone) {
  const auto read = ParseHolds(FormatHolds(SomeJobs(), "before"), "after");
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 3u);
  for (const HeldJob& job : *read) EXPECT_TRUE(job.processes.empty());
  EXPECT_TRUE(read->front().end_job);
  // Who cannot tell which start it is does not know that anybody is gone.
  EXPECT_EQ(ParseHolds(FormatHolds(SomeJobs(), "before"), "")->front().processes.size(), 2u);
  EXPECT_EQ(ParseHolds(FormatHolds(SomeJobs(), ""), "after")->front().processes.size(), 2u);
}

TEST(HoldsTest, WhatIsNoListIsRefused) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"format":2,"boot":"","jobs":[]})", R"({"format":1,"jobs":[]})",
        R"({"format":1,"boot":""})", R"({"format":1,"boot":"","jobs":{}})",
        R"({"format":1,"boot":"","jobs":[7]})", R"({"format":1,"boot":"","jobs":[{}]})",
        R"({"format":1,"boot":"","jobs":[{"job":7,"user":"","end":true,"processes":[]}]})",
        R"({"format":1,"boot":"","jobs":[{"job":"7","user":"","end":1,"processes":[]}]})",
        R"({"format":1,"boot":"","jobs":[{"job":"7","user":"","end":true}]})",
        R"({"format":1,"boot":"","jobs":[{"job":"7","user":"","end":true,"processes":[{}]}]})",
        R"({"format":1,"boot":"","jobs":[{"job":"7","user":"","end":true,)"
        R"("processes":[{"pid":1,"start":-1}]}]})"}) {
    EXPECT_EQ(ParseHolds(text, "").status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(HoldsTest, AnythingMayBeInTheFile) {
  std::mt19937_64 random(TestSeed());
  const std::string whole = FormatHolds(SomeJobs(), "boot");
  for (int round = 0; round < 5'000; ++round) {
    std::string text = whole;
    for (uint64_t i = 1 + random() % 3; i > 0; --i) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    if (random() % 2 == 0) text.resize(random() % text.size());
    const auto read = ParseHolds(text, "boot");
    if (!read.ok()) continue;
    EXPECT_EQ(*ParseHolds(FormatHolds(*read, "x"), "x"), *read) << text;
  }
}

TEST_F(HoldFileTest, IsReplacedAsAWhole) {
  const HoldFile file(path_);
  ASSERT_TRUE(file.Load().ok());
  EXPECT_TRUE(file.Load()->empty());
  auto jobs = SomeJobs();
  jobs.pop_back();
  ASSERT_TRUE(file.Save(jobs).ok());
  EXPECT_EQ(*file.Load(), jobs);
  jobs.pop_back();
  ASSERT_TRUE(file.Save(jobs).ok());
  EXPECT_EQ(*file.Load(), jobs);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  // Half of the next one, as a crash leaves it.
  std::ofstream(path_ + ".next") << "{";
  EXPECT_EQ(*file.Load(), jobs);
}

TEST_F(HoldFileTest, AnUnreadableOneIsKeptAside) {
  std::ofstream(path_) << "garbage";
  const HoldFile file(path_);
  const absl::Status status = file.Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(std::string(status.message()).find(path_ + ".unreadable"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(path_ + ".unreadable"));
  EXPECT_TRUE(file.Load()->empty());
}

// A folder in its place stands for a file that is another's: root may read all files.
TEST_F(HoldFileTest, OneThatCannotBeReadStaysAsItIs) {
  std::filesystem::create_directory(path_);
  const HoldFile file(path_);
  const absl::Status status = file.Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(std::filesystem::is_directory(path_));
}

TEST_F(HoldFileTest, OneThatCannotBeWrittenIsSaid) {
  const HoldFile file(folder_ + "/no/such/folder.json");
  const absl::Status status = file.Save({});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(std::string(status.message()).find("/no/such/"), std::string::npos);
}

}  // namespace
}  // namespace coppice::hold_file_test
