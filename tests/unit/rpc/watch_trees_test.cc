// Trees.WatchTrees over a real server: listing, changes, resuming, filters, slow and many watchers,
// shutdown and cancellation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "daemon/rpc/conversion/trees_conversion.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::watch_trees_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One watching client.
class TreesWatcher {
 public:
  explicit TreesWatcher(Loopback& loopback, v1::WatchTreesRequest request = {}) {
    Loopback::SetDeadline(context_);
    reader_ = loopback.trees().WatchTrees(&context_, request);
  }
  // The next change as "granted 3"; or how it ended.
  std::string Next() {
    if (!reader_->Read(&last_)) return "end: " + std::string(Finish().message());
    const std::string kind = v1::TreeChangeKind_Name(last_.kind()).substr(17);
    return last_.has_tree() ? kind + " " + last_.tree().id() : kind;
  }
  std::vector<std::string> Next(int count) {
    std::vector<std::string> changes;
    for (; count > 0; --count) changes.push_back(Next());
    return changes;
  }
  absl::Status Finish() {
    v1::TreeChange ignored;
    while (reader_->Read(&ignored)) {
    }
    return Loopback::ToAbsl(reader_->Finish());
  }
  const v1::TreeChange& last() const { return last_; }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::TreeChange>> reader_;
  v1::TreeChange last_;
};

class WatchTreesTest : public testing::Test {
 protected:
  std::string Create(const std::string& job, v1::TreeType type = v1::TREE_TYPE_I) {
    v1::CreateTreeRequest request;
    request.set_job_id(job);
    request.set_type(type);
    const auto tree = loopback_.Call(loopback_.trees(), &v1::Trees::Stub::CreateTree, request);
    EXPECT_TRUE(tree.ok()) << tree.status();
    return tree.ok() ? tree->id() : "";
  }
  void Release(const std::string& id) {
    v1::ReleaseTreeRequest request;
    request.set_id(id);
    EXPECT_TRUE(loopback_.Call(loopback_.trees(), &v1::Trees::Stub::ReleaseTree, request).ok());
  }
  void End(const std::string& job) {
    v1::EndJobRequest request;
    request.set_id(job);
    EXPECT_TRUE(loopback_.Call(loopback_.jobs(), &v1::Jobs::Stub::EndJob, request).ok());
  }
  static v1::WatchTreesRequest Of(const std::string& job, const std::string& token = "") {
    v1::WatchTreesRequest request;
    request.set_job_id(job);
    request.set_resume_token(token);
    return request;
  }

  Loopback loopback_;
};

TEST_F(WatchTreesTest, WhatIsThereThenWhatHappens) {
  const std::string job = loopback_.RegisterAll();
  Create(job);
  const std::string second = Create(job, v1::TREE_TYPE_II);
  TreesWatcher watcher(loopback_);
  EXPECT_THAT(watcher.Next(2), ElementsAre("PRESENT 1", "PRESENT 2"));
  EXPECT_EQ(v1::TREE_TYPE_II, watcher.last().tree().type());
  EXPECT_EQ(16u, watcher.last().tree().rank_count());
  EXPECT_FALSE(watcher.last().tree().has_nodes());
  EXPECT_EQ("", watcher.last().resume_token());
  EXPECT_EQ("SYNCED", watcher.Next());
  EXPECT_NE("", watcher.last().resume_token());
  Create(job);
  EXPECT_EQ("GRANTED 3", watcher.Next());
  EXPECT_EQ(1u, watcher.last().tree().revision());
  Release(second);
  EXPECT_EQ("RELEASED 2", watcher.Next());
  End(job);
  EXPECT_THAT(watcher.Next(2), ElementsAre("RELEASED 1", "RELEASED 3"));
  watcher.Cancel();
  EXPECT_TRUE(absl::IsCancelled(watcher.Finish()));
}

TEST_F(WatchTreesTest, LeasesThatRunOutReleaseTheirTrees) {
  const std::string job = loopback_.RegisterAll();
  Create(job);
  TreesWatcher watcher(loopback_, Of(job));
  EXPECT_THAT(watcher.Next(2), ElementsAre("PRESENT 1", "SYNCED"));
  loopback_.clock().Advance(absl::Hours(1));
  loopback_.manager().ExpireLeases();
  EXPECT_EQ("RELEASED 1", watcher.Next());
  EXPECT_EQ(absl::OkStatus(), watcher.Finish());
}

TEST_F(WatchTreesTest, OneJobOnlyAndItsEnd) {
  const std::string job = loopback_.RegisterAll(), other = loopback_.RegisterAll();
  Create(other);
  TreesWatcher watcher(loopback_, Of(job));
  EXPECT_EQ("SYNCED", watcher.Next());
  Create(other);
  Create(job);
  EXPECT_EQ("GRANTED 3", watcher.Next());
  End(other);
  End(job);
  EXPECT_EQ("RELEASED 3", watcher.Next());
  EXPECT_EQ(absl::OkStatus(), watcher.Finish());
  TreesWatcher late(loopback_, Of(job));
  EXPECT_EQ("SYNCED", late.Next());
  EXPECT_EQ(absl::OkStatus(), late.Finish());
}

TEST_F(WatchTreesTest, ResumingLosesAndRepeatsNothing) {
  const std::string job = loopback_.RegisterAll();
  std::string token;
  {
    TreesWatcher watcher(loopback_);
    EXPECT_EQ("SYNCED", watcher.Next());
    token = watcher.last().resume_token();
  }
  int64_t last = 0;
  for (int round = 0; round < 5; ++round) {
    for (int n = 0; n < 6; ++n) Create(job);
    TreesWatcher watcher(loopback_, Of(round % 2 == 0 ? "" : job, token));
    for (int n = 0; n < 4; ++n) {
      EXPECT_EQ("GRANTED " + std::to_string(++last), watcher.Next());
      token = watcher.last().resume_token();
    }
  }
}

TEST_F(WatchTreesTest, TokensOfAnotherRunAndOtherBadRequests) {
  const std::string job = loopback_.RegisterAll();
  std::string token;
  {
    Loopback earlier;
    TreesWatcher watcher(earlier);
    EXPECT_EQ("SYNCED", watcher.Next());
    token = watcher.last().resume_token();
  }
  EXPECT_TRUE(absl::IsOutOfRange(TreesWatcher(loopback_, Of("", token)).Finish()));
  EXPECT_TRUE(absl::IsInvalidArgument(TreesWatcher(loopback_, Of("", "yesterday")).Finish()));
  EXPECT_TRUE(absl::IsNotFound(TreesWatcher(loopback_, Of("77")).Finish()));
  EXPECT_TRUE(absl::IsInvalidArgument(TreesWatcher(loopback_, Of("x")).Finish()));
  v1::WatchTreesRequest ranks = Of(job);
  ranks.set_view(v1::TREE_VIEW_RANK);
  EXPECT_TRUE(absl::IsInvalidArgument(TreesWatcher(loopback_, ranks).Finish()));
  v1::WatchTreesRequest full = Of(job);
  full.set_view(v1::TREE_VIEW_FULL);
  Create(job);
  TreesWatcher watcher(loopback_, full);
  EXPECT_EQ("PRESENT 1", watcher.Next());
  EXPECT_EQ(16, watcher.last().tree().nodes().parents_size());
}

TEST_F(WatchTreesTest, ManyWatchersSeeTheSame) {
  const std::string job = loopback_.RegisterAll();
  constexpr int kTrees = 40;
  std::vector<std::unique_ptr<TreesWatcher>> watchers;
  for (int n = 0; n < 24; ++n) {
    watchers.push_back(std::make_unique<TreesWatcher>(loopback_, Of(n % 2 == 0 ? "" : job)));
    ASSERT_EQ("SYNCED", watchers.back()->Next());
  }
  std::vector<std::thread> readers;
  for (const auto& watcher : watchers) {
    readers.emplace_back([&watcher] {
      for (int id = 1; id <= kTrees; ++id) {
        EXPECT_EQ("GRANTED " + std::to_string(id), watcher->Next());
      }
    });
  }
  for (int n = 0; n < kTrees; ++n) Create(job);
  for (std::thread& reader : readers) reader.join();
}

// The one who reads nothing is told that it fell behind; the other gets all, and grants go on.
TEST(SlowWatcherTest, FallsBehindAlone) {
  Loopback::Options options;
  options.fabric = "model:fat-tree(leaves=16,spines=2,hosts-per-leaf=16)";
  options.kept_tree_changes = 16;
  Loopback loopback(options);
  const std::string job = loopback.RegisterAll();
  v1::WatchTreesRequest full;
  full.set_view(v1::TREE_VIEW_FULL);
  TreesWatcher slow(loopback, full), quick(loopback);
  ASSERT_EQ("SYNCED", slow.Next());
  ASSERT_EQ("SYNCED", quick.Next());
  v1::CreateTreeRequest request;
  request.set_job_id(job);
  request.set_type(v1::TREE_TYPE_I);
  request.set_builder(v1::TREE_BUILDER_KARY);
  request.set_width(4);
  // More than any window of flow control holds.
  for (int id = 1; id <= 3'000; ++id) {
    ASSERT_TRUE(loopback.Call(loopback.trees(), &v1::Trees::Stub::CreateTree, request).ok());
    ASSERT_EQ("GRANTED " + std::to_string(id), quick.Next());
  }
  const absl::Status ended = slow.Finish();
  EXPECT_TRUE(absl::IsOutOfRange(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("watch again without a resume token"));
}

TEST_F(WatchTreesTest, ShutdownEndsThemAtOnce) {
  const std::string job = loopback_.RegisterAll();
  TreesWatcher all(loopback_), one(loopback_, Of(job));
  EXPECT_EQ("SYNCED", all.Next());
  EXPECT_EQ("SYNCED", one.Next());
  loopback_.server().Shutdown(absl::Seconds(60));
  EXPECT_TRUE(absl::IsUnavailable(all.Finish()));
  EXPECT_TRUE(absl::IsUnavailable(one.Finish()));
}

TEST_F(WatchTreesTest, ClientsThatComeAndGoWhileTreesDo) {
  const std::string job = loopback_.RegisterAll();
  std::atomic<bool> stop = false;
  std::thread tenant([&] {
    while (!stop) Release(Create(job));
  });
  for (int n = 0; n < 60; ++n) {
    TreesWatcher watcher(loopback_, Of(n % 2 == 0 ? "" : job));
    watcher.Next(n % 7);
    if (n % 3 != 0) watcher.Cancel();
  }
  stop = true;
  tenant.join();
}

TEST(WatchMessageTest, RevisionsAndRevocationsCarryTheirReason) {
  TreeRecord record;
  record.id = TreeId(9);
  record.revision = 2;
  TreeChange change;
  change.kind = TreeChangeKind::kRevised;
  change.resume_token = "t";
  change.tree.record = std::make_shared<const TreeRecord>(record);
  change.tree.job = std::make_shared<const JobRecord>();
  change.reason = "link 1 is gone";
  v1::TreeChange message;
  ToProto(change, TreeDetail::kSummary, nullptr, message);
  EXPECT_EQ(v1::TREE_CHANGE_KIND_REVISED, message.kind());
  EXPECT_EQ("9", message.tree().id());
  EXPECT_EQ(2u, message.tree().revision());
  EXPECT_EQ("link 1 is gone", message.reason());
  change.kind = TreeChangeKind::kRevoked;
  ToProto(change, TreeDetail::kFull, nullptr, message);
  EXPECT_EQ(v1::TREE_CHANGE_KIND_REVOKED, message.kind());
  EXPECT_EQ("t", message.resume_token());
}

}  // namespace
}  // namespace coppice::watch_trees_test
