// Admin.GetStatus over a real server, against what the test made happen.
#include <gtest/gtest.h>

#include <string>

#include "coppice/v1/admin.grpc.pb.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::admin_service_test {
namespace {

v1::DaemonStatus StatusOf(Loopback& loopback) {
  const auto stub = v1::Admin::NewStub(loopback.Connect());
  const auto status = loopback.Call(*stub, &v1::Admin::Stub::GetStatus, v1::GetStatusRequest());
  EXPECT_TRUE(status.ok()) << status.status();
  return status.ok() ? *status : v1::DaemonStatus();
}

Loopback::Options Versioned(const std::string& fabric = kSmallFabric) {
  Loopback::Options options;
  options.fabric = fabric;
  options.server.version = "1.2.3";
  return options;
}

TEST(AdminServiceTest, StatusTellsWhatThereIs) {
  Loopback loopback(Versioned());
  const std::string job = loopback.RegisterAll();
  v1::CreateTreeRequest request;
  request.set_job_id(job);
  request.set_type(v1::TREE_TYPE_II);
  std::string last;
  for (int i = 0; i < 3; ++i) {  // two entries a switch: at most two that cross all of them
    const auto tree = loopback.Call(loopback.trees(), &v1::Trees::Stub::CreateTree, request);
    if (tree.ok()) last = tree->id();
  }
  v1::ReleaseTreeRequest release;
  release.set_id(last);
  ASSERT_TRUE(loopback.Call(loopback.trees(), &v1::Trees::Stub::ReleaseTree, release).ok());
  const v1::DaemonStatus status = StatusOf(loopback);
  const DaemonCounts counts = loopback.manager().Counts();
  EXPECT_EQ("1.2.3", status.version());
  EXPECT_GT(status.start_time().seconds(), 0);
  EXPECT_GT(status.resident_bytes(), uint64_t{1} << 20);
  EXPECT_EQ(1u, status.fabric_version());
  EXPECT_TRUE(status.has_snapshot_age());
  EXPECT_TRUE(status.has_subnet_manager());
  EXPECT_EQ(16u, status.fabric().endpoint_count());
  EXPECT_EQ(1u, status.active_jobs());
  EXPECT_EQ(counts.granted_trees, status.granted_trees());
  EXPECT_EQ(12u, status.entries_total());
  EXPECT_EQ(counts.entries_taken, status.entries_taken());
  EXPECT_EQ(status.trees_created(), status.granted_trees() + 1u);
  EXPECT_EQ(3u, status.trees_created() + status.trees_refused());
}

TEST(AdminServiceTest, StatusIsTheFirstThingThatWorks) {
  Loopback loopback(Versioned("file:/nonexistent"));
  const v1::DaemonStatus status = StatusOf(loopback);
  EXPECT_FALSE(status.has_fabric());
  EXPECT_FALSE(status.has_snapshot_age());
  EXPECT_EQ(0u, status.fabric_version());
}

TEST(AdminServiceTest, WatchersAreCounted) {
  Loopback loopback;
  grpc::ClientContext events_context, trees_context;
  Loopback::SetDeadline(events_context);
  Loopback::SetDeadline(trees_context);
  v1::WatchEventsRequest from_oldest;
  from_oldest.set_after_id(0);
  const auto events = loopback.fabric().WatchEvents(&events_context, from_oldest);
  const auto trees = loopback.trees().WatchTrees(&trees_context, {});
  v1::Event event;
  v1::TreeChange change;
  ASSERT_TRUE(events->Read(&event) && trees->Read(&change));
  const v1::DaemonStatus status = StatusOf(loopback);
  EXPECT_EQ(1u, status.event_watchers());
  EXPECT_EQ(1u, status.tree_watchers());
  events_context.TryCancel();
  trees_context.TryCancel();
}

}  // namespace
}  // namespace coppice::admin_service_test
