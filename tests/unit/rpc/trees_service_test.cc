#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "google/rpc/error_details.pb.h"
#include "proto/status_conversion.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::trees_service_test {
namespace {

using ::testing::HasSubstr;
using TreesStub = v1::Trees::Stub;

class TreesServiceTest : public ::testing::Test {
 protected:
  void SetUp() override { job_ = loopback_.RegisterAll(); }

  v1::CreateTreeRequest All(v1::TreeType type) const {
    v1::CreateTreeRequest request;
    request.set_job_id(job_);
    request.set_type(type);
    return request;
  }
  absl::StatusOr<v1::Tree> Create(const v1::CreateTreeRequest& request) {
    return loopback_.Call(loopback_.trees(), &TreesStub::CreateTree, request);
  }
  absl::StatusCode CreateCode(const v1::CreateTreeRequest& request) {
    return Create(request).status().code();
  }
  absl::StatusOr<v1::Tree> Get(const std::string& id, v1::TreeView view, uint32_t rank = 0) {
    v1::GetTreeRequest request;
    request.set_id(id);
    request.set_view(view);
    request.set_rank(rank);
    return loopback_.Call(loopback_.trees(), &TreesStub::GetTree, request);
  }
  absl::StatusCode Release(const std::string& id) {
    v1::ReleaseTreeRequest request;
    request.set_id(id);
    return loopback_.Call(loopback_.trees(), &TreesStub::ReleaseTree, request).status().code();
  }
  uint64_t Taken() { return loopback_.manager().Counts().entries_taken; }

  Loopback loopback_;
  std::string job_;
};

// The server fills the messages of earlier calls again.
TEST_F(TreesServiceTest, AnswersHoldNothingOfEarlierCalls) {
  for (int round = 0; round < 8; ++round) {
    v1::CreateTreeRequest large = All(v1::TREE_TYPE_II);
    large.set_request_id("large");
    large.add_sizes()->set_bytes(1 << 20);
    const auto first = Create(large);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_TRUE(first->has_physical());
    v1::CreateTreeRequest small = All(v1::TREE_TYPE_I);
    small.add_ranks(3);
    small.add_ranks(5);
    small.set_validate_only(true);
    const auto second = Create(small);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_EQ(second->id(), "");
    EXPECT_FALSE(second->has_create_time());
    EXPECT_FALSE(second->has_physical());
    EXPECT_EQ(second->rank_count(), 2);
    EXPECT_EQ(second->nodes().parents_size(), 2);
    EXPECT_EQ(second->nodes().switches_size(), 0);
    ASSERT_EQ(second->sizes_size(), 1);
    EXPECT_EQ(second->sizes(0).bytes(), 8);
    v1::CreateTreeRequest wrong;
    EXPECT_EQ(CreateCode(wrong), absl::StatusCode::kInvalidArgument);
    ASSERT_EQ(Release(first->id()), absl::StatusCode::kOk);
    EXPECT_EQ(Release(""), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(TreesServiceTest, GrantsReadsAndReleasesTypeII) {
  const auto tree = Create(All(v1::TREE_TYPE_II));
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->type(), v1::TREE_TYPE_II);
  EXPECT_EQ(tree->rank_count(), 16);
  EXPECT_GT(tree->switch_count(), 0);
  EXPECT_EQ(Taken(), tree->switch_count());
  EXPECT_FALSE(tree->reason().empty());
  const int nodes = static_cast<int>(tree->rank_count() + tree->switch_count());
  EXPECT_EQ(tree->nodes().parents_size(), nodes);
  EXPECT_EQ(tree->nodes().links_size(), nodes);
  EXPECT_EQ(tree->nodes().endpoints_size(), 16);
  EXPECT_EQ(tree->nodes().switches_size(), static_cast<int>(tree->switch_count()));
  EXPECT_EQ(tree->nodes().parents(static_cast<int>(tree->root())), -1);
  std::vector<uint32_t> order(tree->nodes().order().begin(), tree->nodes().order().end());
  ASSERT_EQ(order.size(), 16U);
  EXPECT_EQ(order[0], 0U);
  std::sort(order.begin(), order.end());
  for (uint32_t rank = 0; rank < 16; ++rank) EXPECT_EQ(order[rank], rank);
  // The physical tree's leaves are the 16 ports; its root comes first, parents before children.
  const v1::PhysicalTree& physical = tree->physical();
  ASSERT_EQ(physical.guids_size(), physical.parents_size());
  EXPECT_EQ(physical.guids_size(), static_cast<int>(physical.switch_count()) + 16);
  EXPECT_EQ(physical.parents(0), -1);
  for (int i = 1; i < physical.parents_size(); ++i) {
    EXPECT_GE(physical.parents(i), 0);
    EXPECT_LT(physical.parents(i), i);
  }
  const auto read = Get(tree->id(), v1::TREE_VIEW_UNSPECIFIED);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), tree->SerializeAsString());
  EXPECT_EQ(Release(tree->id()), absl::StatusCode::kOk);
  EXPECT_EQ(Taken(), 0);
  EXPECT_EQ(Release(tree->id()), absl::StatusCode::kNotFound);
  EXPECT_EQ(Get(tree->id(), v1::TREE_VIEW_FULL).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TreesServiceTest, ShowsOneRankOrNone) {
  const auto tree = Create(All(v1::TREE_TYPE_I));
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_FALSE(tree->has_physical());
  int edges = 0;
  for (uint32_t rank = 0; rank < 16; ++rank) {
    const auto view = Get(tree->id(), v1::TREE_VIEW_RANK, rank);
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_FALSE(view->has_nodes());
    EXPECT_EQ(view->rank_view().rank(), rank);
    EXPECT_EQ(view->rank_view().has_parent(), rank != tree->root());
    for (const v1::Neighbour& child : view->rank_view().children()) {
      EXPECT_EQ(tree->nodes().parents(static_cast<int>(child.rank())), static_cast<int>(rank));
      EXPECT_EQ(child.guid().size(), 16);
      EXPECT_EQ(child.links(), tree->nodes().links(static_cast<int>(child.rank())));
      ++edges;
    }
  }
  EXPECT_EQ(edges, 15);
  EXPECT_EQ(Get(tree->id(), v1::TREE_VIEW_RANK, 16).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto summary = Get(tree->id(), v1::TREE_VIEW_SUMMARY);
  EXPECT_FALSE(summary->has_nodes());
  EXPECT_EQ(summary->height(), tree->height());
  EXPECT_EQ(Get(tree->id(), static_cast<v1::TreeView>(9)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TreesServiceTest, AForestIsAnsweredToWhoAsks) {
  v1::CreateTreeRequest request = All(v1::TREE_TYPE_UNSPECIFIED);
  request.add_sizes()->set_bytes(4 << 20);
  request.set_max_trees(1);
  EXPECT_EQ(Create(request)->forest_size(), 0);
  request.set_max_trees(8);
  const auto forest = Create(request);
  ASSERT_TRUE(forest.ok()) << forest.status();
  ASSERT_GT(forest->forest_size(), 1);
  EXPECT_LE(forest->forest_size(), 8);
  EXPECT_EQ(forest->builder(), v1::TREE_BUILDER_FOREST);
  double shares = 0;
  for (const v1::ForestTree& one : forest->forest()) {
    shares += one.share();
    EXPECT_EQ(one.parents_size(), 16);
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_TRUE(std::equal(forest->nodes().parents().begin(), forest->nodes().parents().end(),
                         forest->forest(0).parents().begin()));
  EXPECT_EQ(Get(forest->id(), v1::TREE_VIEW_FULL)->SerializeAsString(),
            forest->SerializeAsString());
  const auto summary = Get(forest->id(), v1::TREE_VIEW_SUMMARY);
  ASSERT_EQ(summary->forest_size(), forest->forest_size());
  EXPECT_EQ(summary->forest(0).parents_size(), 0);
  const auto view = Get(forest->id(), v1::TREE_VIEW_RANK, 3).status();
  EXPECT_EQ(view.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(view.message()), HasSubstr("is a forest of"));
  request.set_max_trees(65);
  EXPECT_EQ(CreateCode(request), absl::StatusCode::kInvalidArgument);
  request.set_max_trees(8);
  request.set_builder(v1::TREE_BUILDER_FOREST);  // of answers only
  EXPECT_EQ(CreateCode(request), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Release(forest->id()), absl::StatusCode::kOk);
}

TEST_F(TreesServiceTest, TheNextRunIsToldWhatEarlierOnesMeasured) {
  v1::CreateTreeRequest request = All(v1::TREE_TYPE_I);
  request.set_application("waves");
  const auto first = Create(request);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->known_size(), 0);
  v1::ReleaseTreeRequest release;
  release.set_id(first->id());
  v1::WayTime& time = *release.add_times();
  time.set_operation(v1::OPERATION_BCAST);
  time.set_length_bits(17);
  time.set_way(v1::COLLECTIVE_WAY_CHAIN);
  time.set_us(12.5);
  const auto released = [&] {
    return loopback_.Call(loopback_.trees(), &TreesStub::ReleaseTree, release).status();
  };
  // The tree stays after a refusal.
  const auto refused = [&](const char* words) {
    const absl::Status status = released();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_TRUE(Get(first->id(), v1::TREE_VIEW_SUMMARY).ok());
  };
  refused("application: ");
  release.set_application("a b");
  refused("application: ");
  release.set_application("waves");
  time.set_way(v1::COLLECTIVE_WAY_UNSPECIFIED);
  refused("times.way");
  time.set_way(static_cast<v1::CollectiveWay>(77));
  refused("times.way");
  time.set_way(v1::COLLECTIVE_WAY_CHAIN);
  time.set_us(-1);
  refused("us is none");
  time.set_us(12.5);
  time.set_length_bits(256 + 17);
  refused("bits");
  time.set_length_bits(17);
  ASSERT_TRUE(released().ok());
  EXPECT_EQ(Get(first->id(), v1::TREE_VIEW_SUMMARY).status().code(), absl::StatusCode::kNotFound);

  const auto second = Create(request);
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_EQ(second->known_size(), 1);
  time.set_runs(1);
  EXPECT_EQ(second->known(0).SerializeAsString(), time.SerializeAsString());
  request.clear_application();
  EXPECT_EQ(Create(request)->known_size(), 0);
  request.set_application("-x");
  EXPECT_EQ(CreateCode(request), absl::StatusCode::kInvalidArgument);
  request.set_application("waves");
  request.set_type(v1::TREE_TYPE_II);
  EXPECT_EQ(Create(request)->known_size(), 0);
}

TEST_F(TreesServiceTest, NamesFullSwitches) {
  int granted = 0;
  absl::Status refused;
  for (int i = 0; i < 100 && refused.ok(); ++i) {
    refused = Create(All(v1::TREE_TYPE_II)).status();
    granted += refused.ok();
  }
  EXPECT_GT(granted, 0);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  const auto quota = GetDetail<google::rpc::QuotaFailure>(refused);
  ASSERT_TRUE(quota.has_value());
  ASSERT_GT(quota->violations_size(), 0);
  EXPECT_THAT(quota->violations(0).subject(), ::testing::StartsWith("switch:"));
  EXPECT_THAT(quota->violations(0).description(), HasSubstr("2 of 2 entries"));
  // Auto falls back to type I and says why.
  const auto fallback = Create(All(v1::TREE_TYPE_UNSPECIFIED));
  ASSERT_TRUE(fallback.ok()) << fallback.status();
  EXPECT_EQ(fallback->type(), v1::TREE_TYPE_I);
}

TEST_F(TreesServiceTest, AdvisesAndTakesNothing) {
  v1::CreateTreeRequest request = All(v1::TREE_TYPE_II);
  const auto advice = loopback_.Call(loopback_.trees(), &TreesStub::AdviseTree, request);
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_EQ(advice->id(), "");
  EXPECT_FALSE(advice->has_create_time());
  EXPECT_GT(advice->nodes().parents_size(), 16);
  request.set_validate_only(true);
  const auto validated = Create(request);
  ASSERT_TRUE(validated.ok()) << validated.status();
  EXPECT_EQ(validated->SerializeAsString(), advice->SerializeAsString());
  EXPECT_EQ(Taken(), 0);
}

TEST_F(TreesServiceTest, CarriesOutARequestIdOnce) {
  v1::CreateTreeRequest request = All(v1::TREE_TYPE_I);
  request.set_request_id("once");
  const auto first = Create(request), second = Create(request);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->id(), second->id());
  request.set_operation(v1::OPERATION_BCAST);
  EXPECT_EQ(CreateCode(request), absl::StatusCode::kAlreadyExists);
}

TEST_F(TreesServiceTest, ReadsRanksAsRangesOrAList) {
  v1::CreateTreeRequest ranges = All(v1::TREE_TYPE_I);
  v1::RankRange& range = *ranges.add_rank_ranges();
  range.set_first(1);
  range.set_count(3);
  range.set_stride(5);
  v1::CreateTreeRequest list = All(v1::TREE_TYPE_I);
  for (const uint32_t rank : {1, 6, 11}) list.add_ranks(rank);
  const auto by_range = Create(ranges), by_list = Create(list);
  ASSERT_TRUE(by_range.ok() && by_list.ok()) << by_range.status() << by_list.status();
  EXPECT_EQ(by_range->nodes().SerializeAsString(), by_list->nodes().SerializeAsString());

  list.add_rank_ranges()->set_count(1);
  EXPECT_EQ(CreateCode(list), absl::StatusCode::kInvalidArgument);
  ranges.clear_rank_ranges();
  ranges.add_rank_ranges();  // no rank
  EXPECT_EQ(CreateCode(ranges), absl::StatusCode::kInvalidArgument);
  ranges.mutable_rank_ranges(0)->set_count(std::numeric_limits<uint32_t>::max());
  EXPECT_EQ(CreateCode(ranges), absl::StatusCode::kInvalidArgument);
  ranges.mutable_rank_ranges(0)->set_count(2);
  ranges.mutable_rank_ranges(0)->set_stride(std::numeric_limits<uint32_t>::max());
  ranges.mutable_rank_ranges(0)->set_first(1);
  EXPECT_EQ(CreateCode(ranges), absl::StatusCode::kInvalidArgument);
  ranges.mutable_rank_ranges(0)->set_stride(1);
  ranges.mutable_rank_ranges(0)->set_first(15);  // rank 16 does not exist
  EXPECT_EQ(CreateCode(ranges), absl::StatusCode::kInvalidArgument);
}

TEST_F(TreesServiceTest, RefusesWhatMakesNoSense) {
  const auto with = [this](auto set) {
    v1::CreateTreeRequest request = All(v1::TREE_TYPE_UNSPECIFIED);
    set(request);
    return CreateCode(request);
  };
  using R = v1::CreateTreeRequest;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(with([](R& r) { r.set_job_id("x"); }), kInvalid);
  EXPECT_EQ(with([](R& r) { r.set_width(1); }), kInvalid);
  EXPECT_EQ(with([](R& r) { r.set_operation(static_cast<v1::Operation>(99)); }), kInvalid);
  EXPECT_EQ(with([](R& r) { r.set_type(static_cast<v1::TreeType>(99)); }), kInvalid);
  EXPECT_EQ(with([](R& r) { r.set_builder(static_cast<v1::TreeBuilder>(99)); }), kInvalid);
  EXPECT_EQ(with([](R& r) { r.set_root_switch("leaf"); }), kInvalid);
  EXPECT_EQ(with([](R& r) { r.add_sizes()->set_weight(-1); }), kInvalid);
  EXPECT_EQ(with([](R& r) { r.set_job_id("99"); }), absl::StatusCode::kNotFound);
  EXPECT_EQ(with([](R& r) {
              r.set_type(v1::TREE_TYPE_II);
              r.set_root_switch("ffffffffffffff00");
            }),
            absl::StatusCode::kNotFound);
}

TEST_F(TreesServiceTest, RefusesATreeForAJobThatEnded) {
  v1::EndJobRequest end;
  end.set_id(job_);
  ASSERT_TRUE(loopback_.Call(loopback_.jobs(), &v1::Jobs::Stub::EndJob, end).ok());
  const absl::Status status = Create(All(v1::TREE_TYPE_I)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  const auto failure = GetDetail<google::rpc::PreconditionFailure>(status);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->violations(0).subject(), "job:" + job_);
}

TEST_F(TreesServiceTest, ListsPageByPageAndByJob) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Create(All(v1::TREE_TYPE_I)).ok());
  v1::CreateTreeRequest other = All(v1::TREE_TYPE_I);
  other.set_job_id(loopback_.RegisterAll());
  ASSERT_TRUE(Create(other).ok());
  v1::ListTreesRequest request;
  request.set_page_size(3);
  const auto list = [&] {
    return loopback_.Call(loopback_.trees(), &TreesStub::ListTrees, request);
  };
  const auto first = list();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->trees_size(), 3);
  EXPECT_FALSE(first->trees(0).has_nodes());
  request.set_page_token(first->next_page_token());
  EXPECT_EQ(list()->trees_size(), 1);
  EXPECT_EQ(list()->next_page_token(), "");
  request.clear_page_token();
  request.set_job_id(job_);
  EXPECT_EQ(list()->trees_size(), 3);
  EXPECT_EQ(list()->next_page_token(), "");
  request.set_job_id("99");
  EXPECT_EQ(list().status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace coppice::trees_service_test
