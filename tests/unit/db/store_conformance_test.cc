// What a store promises: jobs, trees, entries, events; each refusal with its words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>

#include "tests/unit/db/store_records.h"

namespace coppice::store_conformance_test {
namespace {

using absl::StatusCode;

class StoreConformanceTest : public StoreTest {};

TEST_F(StoreConformanceTest, NewStoreHoldsNothing) { EXPECT_TRUE(Load() == StoredState()); }

TEST_F(StoreConformanceTest, JobIsKeptExactly) {
  JobRecord job = Job(7, "request-1");
  job.name = "quotes ' and \" and \xc3\xa9";
  ASSERT_APPLIED(store_->Apply(PutJob{job}));
  const StoredState state = Load();
  ASSERT_EQ(state.jobs.size(), 1u);
  EXPECT_TRUE(state.jobs[0] == job);
  EXPECT_EQ(state.last_job, JobId(7));
  EXPECT_TRUE(*store_->GetJob(JobId(7)) == job);
}

TEST_F(StoreConformanceTest, JobRefusals) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(PutJob{Job(1, "r")}));
  ASSERT_APPLIED(store.Apply(PutJob{Job(2)}));
  ASSERT_APPLIED(store.Apply(PutJob{Job(3)}));  // no request id: not the same as job 2's
  EXPECT_STATUS(store.Apply(PutJob{Job(1, "s")}), StatusCode::kAlreadyExists, "job 1 exists");
  EXPECT_STATUS(store.Apply(PutJob{Job(4, "r")}), StatusCode::kAlreadyExists,
                "request id \"r\" belongs to job 1");
  EXPECT_STATUS(store.Apply(PutJob{Job(0)}), StatusCode::kInvalidArgument, "job 0");
  JobRecord ended = Job(5);
  ended.state = JobState::kEnded;
  EXPECT_STATUS(store.Apply(PutJob{ended}), StatusCode::kInvalidArgument, "job 5");
  EXPECT_STATUS(store.GetJob(JobId(9)).status(), StatusCode::kNotFound, "job 9");
}

TEST_F(StoreConformanceTest, EndedJobStaysKnownButNotActive) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(PutJob{Job(1, "r")}));
  EXPECT_STATUS(store.Apply(EndJob{JobId(2), JobState::kEnded, At(50)}), StatusCode::kNotFound,
                "no active job 2");
  EXPECT_STATUS(store.Apply(EndJob{JobId(1), JobState::kActive, At(50)}),
                StatusCode::kInvalidArgument, "job 1");
  ASSERT_APPLIED(store.Apply(EndJob{JobId(1), JobState::kExpired, At(50)}));
  EXPECT_STATUS(store.Apply(EndJob{JobId(1), JobState::kEnded, At(51)}), StatusCode::kNotFound,
                "no active job 1");
  JobRecord expected = Job(1, "r");
  expected.state = JobState::kExpired;
  expected.ended = At(50);
  EXPECT_TRUE(*store.GetJob(JobId(1)) == expected);
  EXPECT_STATUS(store.Apply(PutJob{Job(1)}), StatusCode::kAlreadyExists, "job 1 exists");
  EXPECT_STATUS(store.Apply(PutJob{Job(2, "r")}), StatusCode::kAlreadyExists, "belongs to job 1");
  EXPECT_STATUS(store.Apply(GrantTree{Tree(1, 1)}), StatusCode::kFailedPrecondition,
                "job 1 is not active");
  const StoredState state = Load();
  EXPECT_TRUE(state.jobs.empty());
  EXPECT_EQ(state.last_job, JobId(1));
}

TEST_F(StoreConformanceTest, TreesOfBothTypesAreKeptExactly) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(Capabilities(3, 2)));
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  TreeRecord first = Tree(1, 1);
  first.request_id = "t";
  const TreeRecord second = Tree(2, 1, {2, 0});
  TreeRecord empty;
  empty.id = TreeId(3), empty.job = JobId(1);
  for (const TreeRecord& tree : {first, second, empty}) {
    ASSERT_APPLIED(store.Apply(GrantTree{tree}));
  }
  const StoredState state = Load();
  ASSERT_EQ(state.trees.size(), 3u);
  EXPECT_TRUE(state.trees[0] == first);
  EXPECT_TRUE(state.trees[1] == second);
  EXPECT_TRUE(state.trees[2] == empty);
  EXPECT_EQ(state.last_tree, TreeId(3));
  ASSERT_EQ(state.entries.size(), 3u);
  EXPECT_TRUE(state.entries[0] == (EntryUse{Capability(0, 2), 1}));
  EXPECT_TRUE(state.entries[1] == (EntryUse{Capability(1, 2), 0}));
  EXPECT_TRUE(state.entries[2] == (EntryUse{Capability(2, 2), 1}));
}

TEST_F(StoreConformanceTest, GrantRefusalsInTheirOrder) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(Capabilities(2, 3, 2)));
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  ASSERT_APPLIED(store.Apply(PutJob{Job(2)}));
  TreeRecord held = Tree(1, 1, {0});
  held.request_id = "t";
  ASSERT_APPLIED(store.Apply(GrantTree{held}));
  TreeRecord tree = Tree(1, 9, {0, 77});
  tree.request_id = "t";
  EXPECT_STATUS(store.Apply(GrantTree{tree}), StatusCode::kFailedPrecondition, "job 9");
  tree.job = JobId(1);
  EXPECT_STATUS(store.Apply(GrantTree{tree}), StatusCode::kAlreadyExists, "tree 1 exists");
  tree.id = TreeId(2);
  EXPECT_STATUS(store.Apply(GrantTree{tree}), StatusCode::kAlreadyExists,
                "request id \"t\" of job 1 belongs to tree 1");
  tree.job = JobId(2);  // where "t" is free
  EXPECT_STATUS(store.Apply(GrantTree{tree}), StatusCode::kResourceExhausted,
                "switch 0002c90200400000 has no entry left: 1 taken and 2 reserved of 3");
  tree.switches[0].guid = Switch(1);
  EXPECT_STATUS(store.Apply(GrantTree{tree}), StatusCode::kAborted,
                "switch 0002c9020040004d has no aggregation capability");
  tree.switches[1].guid = Switch(1);
  EXPECT_STATUS(store.Apply(GrantTree{tree}), StatusCode::kInvalidArgument, "serves twice");
  const StoredState state = Load();  // nothing of all that was written
  ASSERT_EQ(state.trees.size(), 1u);
  EXPECT_EQ(state.entries[1].entries_taken, 0u);
}

TEST_F(StoreConformanceTest, MalformedTreesAreRefused) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  const auto refused = [&](auto change) {
    TreeRecord tree = Tree(5, 1, {0});
    change(tree);
    EXPECT_STATUS(store.Apply(GrantTree{tree}), StatusCode::kInvalidArgument, "tree ");
  };
  refused([](TreeRecord& tree) { tree.id = TreeId(0); });
  refused([](TreeRecord& tree) { tree.type = 3; });
  refused([](TreeRecord& tree) { tree.type = 1; });
  refused([](TreeRecord& tree) { tree.parents.pop_back(); });
  refused([](TreeRecord& tree) { tree.edge_links_up.push_back(1); });
  refused([](TreeRecord& tree) { tree.edge_links_down.clear(); });
  refused([](TreeRecord& tree) { tree.parents[0] = 5; });
  refused([](TreeRecord& tree) { tree.parents[0] = -2; });
  refused([](TreeRecord& tree) { tree.total_us = std::numeric_limits<double>::quiet_NaN(); });
}

TEST_F(StoreConformanceTest, ReleaseFreesEntriesOnce) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(Capabilities(2, 1)));
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  ASSERT_APPLIED(store.Apply(PutJob{Job(2)}));
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(1, 1, {0, 1})}));
  EXPECT_STATUS(store.Apply(ReleaseTree{TreeId(1), JobId(2)}), StatusCode::kNotFound,
                "job 2 has no tree 1");
  EXPECT_EQ(store.Entries()->at(0).entries_taken, 1u);
  ASSERT_APPLIED(store.Apply(ReleaseTree{TreeId(1), JobId(1)}));
  EXPECT_STATUS(store.Apply(ReleaseTree{TreeId(1), JobId(1)}), StatusCode::kNotFound,
                "job 1 has no tree 1");
  EXPECT_EQ(store.Entries()->at(0).entries_taken, 0u);
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(2, 2, {1})}));
  EXPECT_EQ(Load().last_tree, TreeId(2));
  ASSERT_APPLIED(store_->Apply(ReleaseTree{TreeId(2), JobId(2)}));
  EXPECT_EQ(Load().last_tree, TreeId(2));  // also when no tree is left
}

TEST_F(StoreConformanceTest, EndOfAJobReleasesItsTreesOnly) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(Capabilities(2, 2)));
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  ASSERT_APPLIED(store.Apply(PutJob{Job(2)}));
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(1, 1, {0, 1})}));
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(2, 2, {0})}));
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(3, 1)}));
  ASSERT_APPLIED(store.Apply(EndJob{JobId(1), JobState::kEnded, At(60)}));
  const StoredState state = Load();
  ASSERT_EQ(state.trees.size(), 1u);
  EXPECT_EQ(state.trees[0].id, TreeId(2));
  EXPECT_EQ(state.entries[0].entries_taken, 1u);
  EXPECT_EQ(state.entries[1].entries_taken, 0u);
}

TEST_F(StoreConformanceTest, ReleasedRequestIdIsFree) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  TreeRecord tree = Tree(1, 1);
  tree.request_id = "t";
  ASSERT_APPLIED(store.Apply(GrantTree{tree}));
  ASSERT_APPLIED(store.Apply(ReleaseTree{tree.id, tree.job}));
  tree.id = TreeId(2);
  ASSERT_APPLIED(store.Apply(GrantTree{tree}));
}

TEST_F(StoreConformanceTest, CapabilitiesNeverLoseWhatIsGranted) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(Capabilities(3, 4)));
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(1, 1, {0, 1})}));
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(2, 1, {0})}));
  // Switch 0 shrinks below its two trees, 1 and 2 vanish, 3 is new with more reserved than it has.
  ASSERT_APPLIED(store.Apply(PutCapabilities{{Capability(0, 1, 1), Capability(3, 2, 5)}}));
  EXPECT_THAT(*store.Entries(),
              testing::ElementsAre(EntryUse{Capability(0, 3, 1), 2}, EntryUse{Capability(1, 4), 1},
                                   EntryUse{Capability(3, 2, 5), 0}));
  EXPECT_STATUS(store.Apply(GrantTree{Tree(3, 1, {0})}), StatusCode::kResourceExhausted,
                "2 taken and 1 reserved of 3");
  EXPECT_STATUS(store.Apply(GrantTree{Tree(3, 1, {3})}), StatusCode::kResourceExhausted,
                "0 taken and 5 reserved of 2");
  EXPECT_STATUS(store.Apply(PutCapabilities{{Capability(5, 1), Capability(5, 2)}}),
                StatusCode::kInvalidArgument, "switch 0002c90200400005");
  ASSERT_APPLIED(store.Apply(ReleaseTree{TreeId(1), JobId(1)}));
  ASSERT_APPLIED(store.Apply(PutCapabilities{}));
  EXPECT_THAT(*store.Entries(), testing::ElementsAre(EntryUse{Capability(0, 3, 1), 1}));
}

TEST_F(StoreConformanceTest, OneSwitchMayChangeWhatItCanAlone) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(Capabilities(3, 4)));
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(1, 1, {1})}));
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(2, 1, {1})}));
  PutCapabilities put{{Capability(1, 1), Capability(7, 9)}};
  put.others_stay = true;
  ASSERT_APPLIED(store.Apply(put));
  EXPECT_THAT(*store.Entries(),
              testing::ElementsAre(EntryUse{Capability(0, 4), 0}, EntryUse{Capability(1, 2), 2},
                                   EntryUse{Capability(2, 4), 0}, EntryUse{Capability(7, 9), 0}));
}

TEST_F(StoreConformanceTest, WhatATreeIsCarriedWithIsKept) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(Capabilities(3, 4)));
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  TreeRecord tree = Tree(1, 1, {0, 1});
  tree.carriage = {std::string("\0\xff\x80 0123456789a\n", 16), 4096, 8};
  ASSERT_APPLIED(store.Apply(GrantTree{tree}));
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(2, 1, {0})}));
  StoredState state = Load();
  ASSERT_EQ(state.trees.size(), 2u);
  EXPECT_EQ(state.trees[0].carriage, tree.carriage);
  EXPECT_EQ(state.trees[1].carriage, CarriageRecord());
  // Each revision has its own, or none.
  for (const CarriageRecord& next : {CarriageRecord{std::string(16, 'k'), 64, 1}, {}}) {
    ++tree.revision;
    tree.carriage = next;
    ASSERT_APPLIED(store_->Apply(ChangeTrees{{}, {std::make_shared<const TreeRecord>(tree)}, {}}));
    state = Load();
    EXPECT_EQ(state.trees[0].carriage, next);
  }
}

TEST_F(StoreConformanceTest, KeepsForests) {
  ASSERT_APPLIED(store_->Apply(PutJob{Job(1)}));
  TreeRecord tree = Tree(1, 1, {});
  tree.type = 1;
  tree.forest = {{1.0 / 3, tree.parents}, {2.0 / 3, tree.parents}};
  std::reverse(tree.forest[1].parents.begin(), tree.forest[1].parents.end());
  ASSERT_APPLIED(store_->Apply(GrantTree{tree}));
  EXPECT_TRUE(Load().trees.at(0) == tree);
  ++tree.revision;
  tree.forest.clear();
  ASSERT_APPLIED(store_->Apply(ChangeTrees{{}, {std::make_shared<const TreeRecord>(tree)}, {}}));
  EXPECT_TRUE(Load().trees.at(0) == tree);
  const auto expect_refused = [&](const std::function<void(TreeRecord&)>& change) {
    TreeRecord wrong = Tree(2, 1, {});
    wrong.type = 1;
    wrong.forest = {{0.5, wrong.parents}, {0.5, wrong.parents}};
    change(wrong);
    EXPECT_EQ(store_->Apply(GrantTree{wrong}).code(), absl::StatusCode::kInvalidArgument);
  };
  expect_refused([](TreeRecord& t) { t.forest.pop_back(); });
  expect_refused([](TreeRecord& t) { t.forest[1].share = 0; });
  expect_refused([](TreeRecord& t) { t.forest[1].parents.pop_back(); });
  expect_refused([](TreeRecord& t) { t.forest[1].parents[0] = 99; });
  expect_refused([](TreeRecord& t) { t.forest[0].parents[0] = 1; });
}

TEST_F(StoreConformanceTest, RefusesCarriageThatCannotBe) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(Capabilities(3, 4)));
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  const auto refused = [&](TreeRecord tree, CarriageRecord carriage, const char* words) {
    tree.carriage = std::move(carriage);
    EXPECT_STATUS(store.Apply(GrantTree{std::move(tree)}), StatusCode::kInvalidArgument, words);
  };
  const std::string key(16, 'k');
  refused(Tree(1, 1, {0}), {key.substr(1), 64, 1}, "15 bytes");
  refused(Tree(1, 1, {0}), {key + "k", 64, 1}, "17 bytes");
  refused(Tree(1, 1, {0}), {key, 0, 1}, "no switches, segments or window");
  refused(Tree(1, 1, {0}), {key, 64, 0}, "no switches, segments or window");
  refused(Tree(1, 1), {key, 64, 1}, "no switches, segments or window");
}

TEST_F(StoreConformanceTest, EntriesAreInOrderOfUnsignedGuids) {
  PutCapabilities put;
  for (uint64_t guid : {0xf000000000000000ull, 1ull, 0x7fffffffffffffffull}) {
    put.capabilities.push_back({Guid(guid), 1, 0, 4});
  }
  ASSERT_APPLIED(store_->Apply(put));
  const std::vector<EntryUse> entries = *store_->Entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].capability.guid, Guid(1));
  EXPECT_EQ(entries[2].capability.guid, Guid(0xf000000000000000));
}

TEST_F(StoreConformanceTest, EventsAreNumberedAndFiltered) {
  Store& store = *store_;
  EXPECT_EQ(*store.KeptEvents(), (EventRange{1, 0}));
  ASSERT_APPLIED(store.Apply(
      AppendEvents{{Event("info", "job.registered"), Event("error", "link.down", "link:3"),
                    Event("warning", "link.up", "link:3")}}));
  const std::vector<EventRecord> all = *store.Events({});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2].id, 3);
  EXPECT_EQ(all[2].message, "words");
  EXPECT_EQ(all[2].time, At(1));
  EXPECT_EQ(*store.KeptEvents(), (EventRange{1, 3}));
  const auto ids = [&](const EventFilter& filter) {
    std::vector<int64_t> found;
    const std::vector<EventRecord> events = *store.Events(filter);
    for (const EventRecord& event : events) found.push_back(event.id);
    return found;
  };
  EXPECT_THAT(ids({.after_id = 1}), testing::ElementsAre(2, 3));
  EXPECT_THAT(ids({.kind_prefix = "link."}), testing::ElementsAre(2, 3));
  EXPECT_THAT(ids({.kind_prefix = "link.*"}), testing::IsEmpty());
  EXPECT_THAT(ids({.object = "job:1"}), testing::ElementsAre(1));
  EXPECT_THAT(ids({.min_severity = "warning"}), testing::ElementsAre(2, 3));
  EXPECT_THAT(ids({.min_severity = "error"}), testing::ElementsAre(2));
  EXPECT_THAT(ids({.limit = 2}), testing::ElementsAre(1, 2));
  EXPECT_STATUS(store.Events({.min_severity = "loud"}).status(), StatusCode::kInvalidArgument,
                "\"loud\"");
}

TEST_F(StoreConformanceTest, EventRefusalsWriteNone) {
  Store& store = *store_;
  EventRecord named = Event("info", "a");
  named.id = 5;
  ASSERT_APPLIED(store.Apply(AppendEvents{{named}}));
  EXPECT_STATUS(store.Apply(AppendEvents{{Event("info", "b"), named}}), StatusCode::kAlreadyExists,
                "event 5");
  EXPECT_STATUS(store.Apply(AppendEvents{{Event("info", "b"), Event("loud", "c")}}),
                StatusCode::kInvalidArgument, "\"loud\"");
  ASSERT_APPLIED(store.Apply(AppendEvents{{Event("info", "d")}}));
  ASSERT_EQ(store.Events({})->size(), 2u);
  EXPECT_EQ(store.Events({})->at(1).id, 6);
  EXPECT_EQ(*store.KeptEvents(), (EventRange{5, 6}));
}

TEST_F(StoreConformanceTest, OneRefusalLeavesItsGroupWhole) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(Capabilities(3, 1)));
  std::vector<absl::Status> answers;
  std::promise<void> all_answered;
  const auto submit = [&](Mutation mutation, bool last = false) {
    store.Submit(std::move(mutation), [&answers, &all_answered, last](absl::Status status) {
      answers.push_back(std::move(status));
      if (last) all_answered.set_value();
    });
  };
  submit(PutJob{Job(1)});
  submit(GrantTree{Tree(1, 1, {0})});
  submit(GrantTree{Tree(2, 1, {1, 2, 0})});  // fails at its third switch
  submit(GrantTree{Tree(3, 1, {2})});
  submit(PutJob{Job(1)});
  submit(ReleaseTree{TreeId(1), JobId(1)});
  submit(GrantTree{Tree(4, 1, {0, 1})}, true);
  all_answered.get_future().wait();
  std::vector<bool> ok;
  for (const absl::Status& answer : answers) ok.push_back(answer.ok());
  EXPECT_THAT(ok, testing::ElementsAre(true, true, false, true, false, true, true));
  const StoredState state = Load();
  ASSERT_EQ(state.trees.size(), 2u);
  EXPECT_EQ(state.trees[0].id, TreeId(3));
  for (const EntryUse& use : state.entries) EXPECT_EQ(use.entries_taken, 1u);
}

TEST_F(StoreConformanceTest, TreeOfEveryPortOfALargeFabric) {
  Store& store = *store_;
  constexpr uint32_t kMembers = 40'960;
  std::vector<uint64_t> switches(2'560);
  for (size_t n = 0; n < switches.size(); ++n) switches[n] = n;
  ASSERT_APPLIED(store.Apply(Capabilities(switches.size(), 1)));
  JobRecord job = Job(1);
  job.endpoints.resize(kMembers);
  ASSERT_APPLIED(store.Apply(PutJob{job}));
  const TreeRecord tree = Tree(1, 1, switches, kMembers);
  ASSERT_APPLIED(store.Apply(GrantTree{tree}));
  const StoredState state = Load();
  ASSERT_EQ(state.trees.size(), 1u);
  EXPECT_TRUE(state.trees[0] == tree);
  EXPECT_TRUE(state.jobs[0] == job);
  ASSERT_APPLIED(store_->Apply(ReleaseTree{TreeId(1), JobId(1)}));
  for (const EntryUse& use : EntriesOf(*store_)) ASSERT_EQ(use.entries_taken, 0u);
}

TEST_F(StoreConformanceTest, TheProfileIsTheLastOneOrNone) {
  ASSERT_APPLIED(store_->Apply(PutProfile{}));  // there is none, and that is well
  EXPECT_EQ(Load().profile_toml, "");
  const std::string first = "name = \"quotes ' and \xc3\xa9\"\nlink_us = 0.1\n";
  ASSERT_APPLIED(store_->Apply(PutProfile{first}));
  EXPECT_EQ(Load().profile_toml, first);
  ASSERT_APPLIED(store_->Apply(PutProfile{"name = \"second\"\n"}));
  EXPECT_EQ(Load().profile_toml, "name = \"second\"\n");
  ASSERT_APPLIED(store_->Apply(PutProfile{}));
  EXPECT_EQ(Load().profile_toml, "");
}

TEST_F(StoreConformanceTest, DestructionAnswersWhatWaits) {
  int answered = 0;
  for (int64_t id = 1; id <= 100; ++id) {
    store_->Submit(PutJob{Job(id)}, [&](absl::Status status) { answered += status.ok(); });
  }
  store_.reset();
  EXPECT_EQ(answered, 100);
}

}  // namespace
}  // namespace coppice::store_conformance_test
