// What a store promises of trees that are planned anew or taken back: all or none, entries
// moved in one step, each refusal with its words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/unit/db/store_records.h"

namespace coppice::store_revisions_test {
namespace {

using absl::StatusCode;

std::shared_ptr<const TreeRecord> Shared(TreeRecord tree) {
  return std::make_shared<const TreeRecord>(std::move(tree));
}

// Tree `id` of job 1 as it might be planned anew.
TreeRecord Revision(int64_t id, uint32_t revision, std::vector<uint64_t> switches) {
  TreeRecord tree = Tree(id, 1, std::move(switches), 5);
  tree.revision = revision;
  tree.fabric_version = 77;
  tree.reason = "planned anew";
  tree.spec.type.reset();
  tree.spec.width = 5;
  tree.accepts_type1 = false;
  return tree;
}

class StoreRevisionsTest : public StoreTest {
 protected:
  // Switches 0 to 3 with two entries each; job 1 with trees 1 in {0, 1}, 2 in {0} and 3, type I.
  void SetUp() override {
    StoreTest::SetUp();
    ASSERT_APPLIED(store_->Apply(Capabilities(4, 2)));
    ASSERT_APPLIED(store_->Apply(PutJob{Job(1)}));
    ASSERT_APPLIED(store_->Apply(PutJob{Job(2)}));
    ASSERT_APPLIED(store_->Apply(GrantTree{Tree(1, 1, {0, 1})}));
    ASSERT_APPLIED(store_->Apply(GrantTree{Tree(2, 1, {0})}));
    ASSERT_APPLIED(store_->Apply(GrantTree{Tree(3, 1)}));
  }
  std::vector<uint32_t> Taken() {
    std::vector<uint32_t> taken;
    for (const EntryUse& use : EntriesOf(*store_)) taken.push_back(use.entries_taken);
    return taken;
  }
  // `change` is refused and leaves everything as it was.
  void Refused(ChangeTrees change, StatusCode code, const std::string& words) {
    const StoredState before = *store_->Load();
    EXPECT_STATUS(store_->Apply(std::move(change)), code, words);
    EXPECT_TRUE(*store_->Load() == before) << words;
  }
};

TEST_F(StoreRevisionsTest, GrantsRevisesAndRevokesInOneStep) {
  const TreeRecord first = Revision(1, 2, {2, 1}), third = Revision(3, 2, {0});
  const TreeRecord fourth = Tree(4, 2, {0, 3});
  ASSERT_APPLIED(store_->Apply(
      ChangeTrees{{Shared(fourth)}, {Shared(first), Shared(third)}, {{TreeId(2), JobId(1)}}}));
  const StoredState state = Load();
  ASSERT_EQ(state.trees.size(), 3u);
  EXPECT_TRUE(state.trees[0] == first);
  EXPECT_TRUE(state.trees[1] == third);
  EXPECT_TRUE(state.trees[2] == fourth);
  EXPECT_EQ(state.last_tree, TreeId(4));
  EXPECT_THAT(Taken(), testing::ElementsAre(2, 1, 1, 1));
  const TreeRecord again = Revision(1, 3, {});
  ASSERT_APPLIED(store_->Apply(ChangeTrees{{}, {Shared(again)}, {}}));
  EXPECT_TRUE(Load().trees[0] == again);
  EXPECT_THAT(Taken(), testing::ElementsAre(2, 0, 0, 1));
  ASSERT_APPLIED(store_->Apply(ChangeTrees{}));
  ASSERT_APPLIED(store_->Apply(EndJob{JobId(1), JobState::kEnded, At(60)}));
  EXPECT_THAT(Taken(), testing::ElementsAre(1, 0, 0, 1));
}

// Every switch is full: trees change places only because all leave before any enters.
TEST_F(StoreRevisionsTest, TreesChangePlacesInFullSwitches) {
  ASSERT_APPLIED(store_->Apply(Capabilities(2, 1)));  // switch 0 keeps 2, switch 1 has 1
  ASSERT_APPLIED(store_->Apply(
      ChangeTrees{{}, {Shared(Revision(1, 2, {0})), Shared(Revision(2, 2, {1, 0}))}, {}}));
  EXPECT_THAT(Taken(), testing::ElementsAre(2, 1));
  ASSERT_APPLIED(
      store_->Apply(ChangeTrees{{Shared(Tree(5, 2, {0}))}, {Shared(Revision(2, 3, {1}))}, {}}));
  EXPECT_THAT(Taken(), testing::ElementsAre(2, 1));
  EXPECT_EQ(Load().trees.size(), 4u);
}

TEST_F(StoreRevisionsTest, RefusalsChangeNothing) {
  const auto revised = [](TreeRecord tree) {
    return ChangeTrees{{}, {Shared(Revision(2, 2, {3})), Shared(std::move(tree))}, {}};
  };
  Refused(revised(Revision(9, 2, {})), StatusCode::kNotFound, "job 1 has no tree 9");
  Refused(revised(Revision(1, 1, {})), StatusCode::kFailedPrecondition,
          "tree 1 has revision 1: revision 1 cannot follow it");
  Refused(revised(Revision(1, 3, {})), StatusCode::kFailedPrecondition, "revision 3 cannot");
  TreeRecord other = Revision(1, 2, {});
  other.job = JobId(2);
  Refused(revised(other), StatusCode::kInvalidArgument, "tree 1: a revision keeps its job");
  other = Revision(1, 2, {});
  other.request_id = "new";
  Refused(revised(other), StatusCode::kInvalidArgument, "tree 1: a revision keeps");
  other = Revision(1, 2, {});
  other.created += absl::Nanoseconds(1);
  Refused(revised(other), StatusCode::kInvalidArgument, "tree 1: a revision keeps");
  other = Revision(1, 2, {});
  ++other.request_fingerprint;
  Refused(revised(other), StatusCode::kInvalidArgument, "tree 1: a revision keeps");
  Refused(revised(Revision(2, 2, {})), StatusCode::kInvalidArgument, "tree 2: is named twice");
  Refused(revised(Revision(1, 2, {2, 77})), StatusCode::kAborted,
          "switch 0002c9020040004d has no aggregation capability");
  other = Revision(1, 2, {2});
  other.parents.pop_back();
  Refused(revised(other), StatusCode::kInvalidArgument, "tree 1: 5 parents");
  Refused({{}, {Shared(Revision(1, 2, {3}))}, {{TreeId(2), JobId(2)}}}, StatusCode::kNotFound,
          "job 2 has no tree 2");
  Refused({{}, {Shared(Revision(1, 2, {3}))}, {{TreeId(1), JobId(1)}}},
          StatusCode::kInvalidArgument, "tree 1: is named twice");
}

TEST_F(StoreRevisionsTest, RefusedGrantsTakeTheRestWithThem) {
  const auto granted = [](TreeRecord tree) {
    return ChangeTrees{{Shared(Tree(10, 2, {3})), Shared(std::move(tree))},
                       {Shared(Revision(1, 2, {1, 2}))},
                       {{TreeId(2), JobId(1)}}};
  };
  Refused(granted(Tree(3, 2)), StatusCode::kAlreadyExists, "tree 3 exists");
  Refused(granted(Tree(11, 8)), StatusCode::kFailedPrecondition, "job 8 is not active");
  Refused(granted(Tree(10, 2)), StatusCode::kInvalidArgument, "tree 10: is named twice");
  Refused(granted(Tree(0, 2)), StatusCode::kInvalidArgument, "tree 0: ids start at 1");
  Refused({{Shared(Tree(10, 2, {3})), Shared(Tree(11, 2, {3})), Shared(Tree(12, 2, {3}))},
           {Shared(Revision(1, 2, {}))},
           {{TreeId(2), JobId(1)}}},
          StatusCode::kResourceExhausted, "switch 0002c90200400003 has no entry left: 2 taken");
  TreeRecord named = Tree(11, 2), same = Tree(12, 2);
  named.request_id = same.request_id = "t";
  Refused({{Shared(named), Shared(same)}, {}, {}}, StatusCode::kAlreadyExists,
          "request id \"t\" of job 2 belongs to tree 11");
}

TEST_F(StoreRevisionsTest, RevokedRequestIdIsFreeAndARevisedOneIsNot) {
  TreeRecord named = Tree(5, 2);
  named.request_id = "t";
  ASSERT_APPLIED(store_->Apply(GrantTree{named}));
  TreeRecord next = named;
  next.revision = 2;
  ASSERT_APPLIED(store_->Apply(ChangeTrees{{}, {Shared(next)}, {}}));
  TreeRecord later = Tree(6, 2);
  later.request_id = "t";
  Refused({{Shared(later)}, {}, {}}, StatusCode::kAlreadyExists, "belongs to tree 5");
  ASSERT_APPLIED(store_->Apply(ChangeTrees{{Shared(later)}, {}, {{TreeId(5), JobId(2)}}}));
  EXPECT_EQ(Load().trees.back().id, TreeId(6));
}

TEST_F(StoreRevisionsTest, OneRefusalLeavesItsGroupWhole) {
  Store& store = *store_;
  std::vector<bool> ok;
  const auto submit = [&](Mutation mutation) {
    store.Submit(std::move(mutation), [&](absl::Status status) { ok.push_back(status.ok()); });
  };
  submit(ChangeTrees{{}, {Shared(Revision(1, 2, {2}))}, {}});
  submit(ChangeTrees{{}, {Shared(Revision(2, 2, {2})), Shared(Revision(1, 2, {3}))}, {}});
  submit(ChangeTrees{{Shared(Tree(8, 2, {1}))}, {Shared(Revision(1, 3, {0}))}, {}});
  ASSERT_APPLIED(store.Apply(AppendEvents{}));  // answered after all before it
  EXPECT_THAT(ok, testing::ElementsAre(true, false, true));
  EXPECT_THAT(Taken(), testing::ElementsAre(2, 1, 0, 0));
  EXPECT_EQ(Load().trees[0].revision, 3u);
}

}  // namespace
}  // namespace coppice::store_revisions_test
