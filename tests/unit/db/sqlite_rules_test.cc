// What the database itself refuses, whoever writes to it: raw SQL tries to break each rule beside a
// running store. And what an administrator's shell can read meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/db/raw_database.h"
#include "tests/unit/db/store_records.h"

namespace coppice::sqlite_rules_test {
namespace {

using testing::HasSubstr;

class SqliteRulesTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    ASSERT_APPLIED(store_->Apply(Capabilities(2, 2, 1)));
    ASSERT_APPLIED(store_->Apply(PutJob{Job(1, "r")}));
    ASSERT_APPLIED(store_->Apply(GrantTree{Tree(1, 1, {0})}));
    ASSERT_APPLIED(store_->Apply(GrantTree{Tree(2, 1)}));
    raw_ = std::make_unique<RawDatabase>(path_);
  }
  // `sql` must be refused with `words` and change nothing that counts.
  void Refused(const std::string& sql, const std::string& words) {
    EXPECT_THAT(raw_->Run(sql), testing::AllOf(testing::StartsWith("error: "), HasSubstr(words)))
        << sql;
    EXPECT_EQ(store_->Load()->trees.size(), 2u) << sql;
    EXPECT_EQ(store_->Entries()->at(0).entries_taken, 1u) << sql;
    EXPECT_EQ(store_->Entries()->at(0).capability.entries_total, 2u) << sql;
  }

  std::unique_ptr<RawDatabase> raw_;
  const std::string switch0_ = std::to_string(Switch(0).value());
  const std::string switch1_ = std::to_string(Switch(1).value());
};

TEST_F(SqliteRulesTest, EntriesAreNeverOversubscribed) {
  for (const char* verb : {"INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR ABORT"}) {
    Refused(std::string(verb) + " INTO tree_switch VALUES (2, 4, " + switch0_ + ", 1)",
            "no aggregation entry left");
  }
  Refused("INSERT INTO tree_switch VALUES (2, 4, 99, 1)", "no aggregation entry left");
  Refused("INSERT INTO tree_switch VALUES (77, 0, " + switch1_ + ", 1)", "tree does not exist");
}

TEST_F(SqliteRulesTest, TakenCannotDifferFromTheRows) {
  Refused("DELETE FROM tree_switch", "still granted");
  Refused("UPDATE tree_switch SET guid = " + switch1_, "do not change");
  Refused("UPDATE tree_switch SET tree_id = 2", "do not change");
  Refused("UPDATE switch_capability SET entries_total = 1", "more entries");
  Refused("UPDATE switch_capability SET entries_reserved = 2", "more entries");
  Refused("UPDATE switch_capability SET guid = guid + 9", "keeps its GUID");
  Refused("UPDATE switch_capability SET entries_total = -1", "more entries");
  Refused("DELETE FROM switch_capability", "take entries of the switch");
  Refused("REPLACE INTO switch_capability VALUES (" + switch0_ + ", 0, 0, 1)", "take more entries");
  EXPECT_THAT(raw_->Run("UPDATE entries SET entries_taken = 0"), HasSubstr("error: "));
}

TEST_F(SqliteRulesTest, ATreeNeedsAnActiveJob) {
  const std::string columns =
      "request_id, request_fingerprint, fabric_version, revision, type, builder, width, height, "
      "radius, operation, sizes, aggregate_us, distribute_us, total_us, reason, alternatives, "
      "created_ns, nodes, links, physical";
  const std::string copy = "INSERT INTO tree (id, job_id, " + columns + ") SELECT 9, %, " +
                           columns + " FROM tree WHERE id = 2";
  const auto for_job = [&](const std::string& job) {
    std::string sql = copy;
    return sql.replace(sql.find('%'), 1, job);
  };
  Refused(for_job("8"), "not active");
  Refused("UPDATE tree SET job_id = 8", "keeps its id");
  Refused("UPDATE OR REPLACE tree SET request_id = 'x'", "keeps its id");
  Refused("UPDATE job SET state = 'ended', ended_ns = 1", "still has trees");
  Refused("UPDATE job SET id = 4", "keeps its id");
  Refused("DELETE FROM job", "still has trees");
  Refused("REPLACE INTO job SELECT * FROM job", "the job exists");
  Refused("REPLACE INTO tree SELECT * FROM tree", "error");
  Refused(
      "REPLACE INTO job (id, request_id, request_fingerprint, name, owner, lease_ns, state, "
      "created_ns, ended_ns) SELECT 5, request_id, 0, '', owner, 1, state, 0, NULL FROM job",
      "the job exists");
  EXPECT_EQ(raw_->Run(for_job("1")), "");
}

TEST_F(SqliteRulesTest, AnEndedJobStaysEnded) {
  ASSERT_APPLIED(store_->Apply(EndJob{JobId(1), JobState::kEnded, At(9)}));
  EXPECT_THAT(raw_->Run("UPDATE job SET state = 'active', ended_ns = NULL"),
              HasSubstr("stays ended"));
}

TEST_F(SqliteRulesTest, RawDeleteOfATreeFreesItsEntries) {
  EXPECT_EQ(raw_->Run("DELETE FROM tree WHERE id = 1"), "");
  EXPECT_EQ(store_->Entries()->at(0).entries_taken, 0u);
  EXPECT_EQ(raw_->Run("SELECT count(*) FROM tree_switch"), "0\n");
}

TEST_F(SqliteRulesTest, ATreeWithoutNodesTakesNoEntries) {
  Refused("UPDATE tree SET revision = 3 WHERE id = 1", "rises by one");
  Refused("UPDATE tree SET revision = 1 WHERE id = 1", "rises by one");
  EXPECT_EQ(raw_->Run("UPDATE tree SET nodes = '[]' WHERE id = 1"), "");
  EXPECT_EQ(store_->Entries()->at(0).entries_taken, 0u);
}

TEST_F(SqliteRulesTest, IdsOfAnEarlierRunAreNeverReused) {
  ASSERT_APPLIED(store_->Apply(ReleaseTree{TreeId(2), JobId(1)}));
  Open();
  EXPECT_EQ(store_->Load()->last_tree, TreeId(2));
  EXPECT_STATUS(store_->Apply(GrantTree{Tree(2, 1)}), absl::StatusCode::kAlreadyExists,
                "tree id 2 belongs to an earlier run: grant under ids above 2");
  ASSERT_APPLIED(store_->Apply(GrantTree{Tree(3, 1)}));
}

TEST_F(SqliteRulesTest, ATreeOfAnEarlierRunIsRevisedUnderItsId) {
  Open();
  TreeRecord next = Tree(1, 1, {1}, 3);
  next.revision = 2;
  ASSERT_APPLIED(store_->Apply(ChangeTrees{{}, {std::make_shared<const TreeRecord>(next)}, {}}));
  EXPECT_TRUE(store_->Load()->trees[0] == next);
  EXPECT_EQ(raw_->Run("SELECT entries_taken FROM entries ORDER BY switch"), "0\n1\n");
}

TEST_F(SqliteRulesTest, APatternsDataIsBytesAndGoesWithIt) {
  const std::string data("\0CPP1\xff\0", 7);
  ASSERT_APPLIED(store_->Apply(PutPatternPart{1, 0, data}));
  ASSERT_APPLIED(store_->Apply(PutPatternPart{1, 1, ""}));
  ASSERT_APPLIED(store_->Apply(PutPatternPart{2, 0, "never comes"}));
  const std::string parts =
      "SELECT pattern_id || typeof(data) || length(data) FROM pattern_part ORDER BY 1";
  EXPECT_EQ(raw_->Run(parts), "1blob0\n1blob7\n2blob11\n");
  PatternRecord record;
  record.id = 1;
  record.name = "lammps";
  record.rank_count = 4;
  ASSERT_APPLIED(store_->Apply(PutPattern{record, 2}));
  EXPECT_EQ(*store_->PatternData(1), data);
  ASSERT_APPLIED(store_->Apply(DropPatternParts{2}));
  EXPECT_EQ(raw_->Run(parts), "1blob0\n1blob7\n");
  ASSERT_APPLIED(store_->Apply(DropPattern{"lammps"}));
  EXPECT_EQ(raw_->Run(parts), "");
}

TEST_F(SqliteRulesTest, ShellReadsWhileTheStoreRuns) {
  EXPECT_EQ(raw_->Run("SELECT switch || ' ' || entries_total || ' ' || entries_reserved || ' ' || "
                      "entries_taken || ' ' || entries_free FROM entries ORDER BY switch"),
            "0002c90200400000 2 1 1 0\n0002c90200400001 2 1 0 1\n");
  EXPECT_EQ(raw_->Run("SELECT node || ' ' || name || ' ' || ifnull(parent, 'root') || ' ' || "
                      "links_up || ' ' || ifnull(children, '-') FROM tree_node WHERE tree_id = 1"),
            "0 rank:0 4 2 -\n1 rank:2 4 2 -\n2 rank:4 4 2 -\n3 rank:6 4 2 -\n"
            "4 switch:0002c90200400000 root 0 4\n");
  EXPECT_EQ(raw_->Run("SELECT link_id FROM tree_link WHERE tree_id = 2"), "1\n2\n3\n4\n");
  EXPECT_EQ(raw_->Run("SELECT rank || ' ' || port_guid FROM job_endpoint"),
            "0 0002c9030010a001\n1 fffffffffffffff0\n");
  EXPECT_EQ(raw_->Run("SELECT job_id || ' ' || term_seconds FROM lease"), "1 30.0\n");
  for (const char* view :
       {"link_list", "node_list", "event_list", "placement", "distance", "distance_list",
        "port_counter", "link_load", "job_order_list", "way_time", "way_time_list"}) {
    EXPECT_EQ(raw_->Run(std::string("SELECT * FROM ") + view), "") << view;
  }
}

TEST_F(SqliteRulesTest, InventoryRemembersWhenThingsWereSeen) {
  PutInventory put{1, At(1), {{Switch(5), NodeKind::kSwitch, "S5", "", 1, 2, 36}}, {}, {}};
  ASSERT_APPLIED(store_->Apply(put));
  put.time = At(2);
  put.nodes.push_back({Switch(6), NodeKind::kChannelAdapter, "h HCA-1", "h", 1, 2, 1});
  ASSERT_APPLIED(store_->Apply(put));
  ASSERT_APPLIED(store_->Apply(PutInventory{3, At(3), {put.nodes[1]}, {}, {}}));
  EXPECT_EQ(raw_->Run("SELECT description || ' ' || first_seen || ' ' || last_seen FROM node_list"),
            "S5 2023-11-14 22:13:21 2023-11-14 22:13:22\n"
            "h HCA-1 2023-11-14 22:13:22 2023-11-14 22:13:23\n");
}

}  // namespace
}  // namespace coppice::sqlite_rules_test
