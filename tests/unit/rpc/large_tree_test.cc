// A communicator of every port of the paper's largest fabric, over RPC: 80 supernodes of 512 ports,
// 40,960 in all. The client keeps gRPC's default limits, so every answer is below 4 MiB.
#include <gtest/gtest.h>

#include "tests/unit/rpc/loopback.h"

namespace coppice::large_tree_test {
namespace {

using TreesStub = v1::Trees::Stub;

constexpr uint32_t kPorts = 40'960;

class LargeTreeTest : public ::testing::TestWithParam<v1::TreeType> {
 protected:
  absl::StatusOr<v1::Tree> Get(const std::string& id, v1::TreeView view, uint32_t rank) {
    v1::GetTreeRequest request;
    request.set_id(id);
    request.set_view(view);
    request.set_rank(rank);
    return loopback_.Call(loopback_.trees(), &TreesStub::GetTree, request);
  }

  // A top switch reaches all 80 supernodes: its degree is what a type II tree over them needs.
  Loopback loopback_{
      {.fabric = "model:fat-tree(supernodes=80,leaves=32,spines=16,hosts-per-leaf=16,tops=64)",
       .entries = 2,
       .degree_limit = 128}};
};

TEST_P(LargeTreeTest, IsGrantedReadAndReleased) {
  v1::CreateTreeRequest request;
  request.set_job_id(loopback_.RegisterAll());
  request.set_type(GetParam());
  for (uint32_t rank = kPorts; rank > 0; --rank) request.add_ranks(rank - 1);
  const auto tree = loopback_.Call(loopback_.trees(), &TreesStub::CreateTree, request);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->rank_count(), kPorts);
  EXPECT_EQ(tree->type(), GetParam());
  ASSERT_EQ(tree->nodes().parents_size(), static_cast<int>(kPorts + tree->switch_count()));
  EXPECT_EQ(loopback_.manager().Counts().entries_taken, tree->switch_count());

  const auto full = Get(tree->id(), v1::TREE_VIEW_FULL, 0);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->nodes().SerializeAsString(), tree->nodes().SerializeAsString());
  EXPECT_EQ(full->physical().SerializeAsString(), tree->physical().SerializeAsString());
  for (const uint32_t rank : {0u, 20'000u, kPorts - 1}) {
    const auto view = Get(tree->id(), v1::TREE_VIEW_RANK, rank);
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(view->rank_view().has_parent(), rank != tree->root());
    EXPECT_EQ(view->rank_view().parent().links(), tree->nodes().links(static_cast<int>(rank)));
  }
  v1::ReleaseTreeRequest release;
  release.set_id(tree->id());
  EXPECT_TRUE(loopback_.Call(loopback_.trees(), &TreesStub::ReleaseTree, release).ok());
  EXPECT_EQ(loopback_.manager().Counts().entries_taken, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, LargeTreeTest,
                         ::testing::Values(v1::TREE_TYPE_I, v1::TREE_TYPE_II));

}  // namespace
}  // namespace coppice::large_tree_test
