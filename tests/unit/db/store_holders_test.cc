// Who holds what: names of requests by owner, the ranks of ended jobs that are kept, quotas, and
// the account of deeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

#include "tests/support/tier.h"
#include "tests/unit/db/raw_database.h"
#include "tests/unit/db/store_records.h"

namespace coppice::store_holders_test {
namespace {

using absl::StatusCode;

JobRecord JobOf(int64_t id, std::string owner, std::string request_id = "", size_t ranks = 2) {
  JobRecord job = Job(id, std::move(request_id));
  job.owner = std::move(owner);
  job.endpoints.assign(ranks, Guid(0x0002c9030010a001));
  return job;
}

DeedRecord Deed(std::string caller, std::string method, DeedShare share = DeedShare::kUser) {
  DeedRecord deed;
  deed.time = deed.first = At(7);
  deed.share = share;
  deed.caller = deed.user = std::move(caller);
  deed.origin = "uid:1000";
  deed.method = std::move(method);
  deed.object = "job:7";
  deed.outcome = "OK";
  return deed;
}

DeedPtr Share(DeedRecord deed) { return std::make_shared<const DeedRecord>(std::move(deed)); }

class StoreHoldersTest : public StoreTest {
 protected:
  void Reopen() { (void)Load(); }
  std::vector<DeedRecord> Deeds(const DeedFilter& filter = {}) { return *store_->Deeds(filter); }
  size_t RanksOf(int64_t id) { return store_->GetJob(JobId(id))->endpoints.size(); }
};

TEST_F(StoreHoldersTest, RequestIdsAreTheirOwners) {
  ASSERT_APPLIED(store_->Apply(PutJob{JobOf(1, "eve", "r")}));
  ASSERT_APPLIED(store_->Apply(PutJob{JobOf(2, "ada", "r")}));
  EXPECT_STATUS(store_->Apply(PutJob{JobOf(3, "eve", "r")}), StatusCode::kAlreadyExists, "job 1");
  PlacementRecord placement = Placement(1, {"n1"}, "r");
  placement.by_administrator = true;
  ASSERT_APPLIED(store_->Apply(PutPlacements{{placement}}));
  PlacementRecord other = Placement(2, {"n2"}, "r");
  other.owner = "eve";
  ASSERT_APPLIED(store_->Apply(PutPlacements{{other}}));
  EXPECT_STATUS(store_->Apply(PutPlacements{{Placement(3, {"n3"}, "r")}}),
                StatusCode::kAlreadyExists, "placement 1");
  const StoredState state = Load();
  EXPECT_EQ(state.jobs.size(), 2u);
  ASSERT_EQ(state.placements.size(), 2u);
  EXPECT_TRUE(state.placements[0].by_administrator);
}

TEST_F(StoreHoldersTest, JobsKeepWhoseTheyAreAndWhatTheyPlaced) {
  JobRecord job = JobOf(1, "ada");
  job.by_administrator = true;
  job.placed_nodes = 17;
  ASSERT_APPLIED(store_->Apply(PutJob{job}));
  EXPECT_EQ(Load().jobs.at(0), job);
}

TEST_F(StoreHoldersTest, RanksOfEndedJobsAreKeptWithinTheirBounds) {
  const KeptRankBytes two_lists{2 * (19 * 10 + 1), INT64_MAX};
  for (int64_t id = 1; id <= 4; ++id) {
    ASSERT_APPLIED(store_->Apply(PutJob{JobOf(id, id == 3 ? "eve" : "ada", "", 10)}));
  }
  const auto end = [&](int64_t id, KeptRankBytes keep) {
    ASSERT_APPLIED(store_->Apply(EndJob{JobId(id), JobState::kEnded, At(10 + id), keep, nullptr}));
  };
  end(1, two_lists);
  end(2, two_lists);
  end(3, two_lists);
  Reopen();
  EXPECT_EQ(RanksOf(1), 10u);
  end(4, two_lists);
  EXPECT_EQ(RanksOf(1), 0u);
  EXPECT_EQ(store_->GetJob(JobId(1))->dropped_ranks, 10u);
  EXPECT_EQ(RanksOf(2), 10u);
  EXPECT_EQ(RanksOf(3), 10u) << "another's";
  EXPECT_EQ(RanksOf(4), 10u);
  // For all: whoever keeps the most loses.
  ASSERT_APPLIED(store_->Apply(PutJob{JobOf(5, "eve", "", 10)}));
  end(5, {INT64_MAX, 3 * (19 * 10 + 1)});
  EXPECT_EQ(RanksOf(2) + RanksOf(3), 10u);
  // A list that is larger than the bound alone is not kept at all.
  ASSERT_APPLIED(store_->Apply(PutJob{JobOf(6, "bob", "", 1000)}));
  end(6, two_lists);
  EXPECT_EQ(RanksOf(6), 0u);
  EXPECT_EQ(store_->GetJob(JobId(6))->dropped_ranks, 1000u);
}

// The sums are of what there is, whatever came in between.
TEST_F(StoreHoldersTest, BoundsHoldAfterAnything) {
  std::mt19937_64 random(TestSeed());
  int64_t next = 1;
  std::map<int64_t, std::string> ended;
  const KeptRankBytes keep{3000, 5000};
  for (int round = 0; round < 300; ++round) {
    const int64_t id = next++;
    const std::string owner = random() % 3 == 0 ? "eve" : "ada";
    ASSERT_APPLIED(store_->Apply(PutJob{JobOf(id, owner, "", 1 + random() % 60)}));
    if (random() % 10 == 0) {  // one that is refused takes its group with it
      EXPECT_FALSE(store_->Apply(PutJob{JobOf(id, owner)}).ok());
    }
    ASSERT_APPLIED(store_->Apply(EndJob{JobId(id), JobState::kEnded, At(id), keep, nullptr}));
    ended[id] = owner;
    if (random() % 20 == 0) ASSERT_APPLIED(store_->Apply(PruneJobs{20, At(0), 5}));
    if (random() % 50 == 0) Reopen();
    std::map<std::string, int64_t> bytes;
    int64_t all = 0;
    for (const auto& [job, of] : ended) {
      const auto record = store_->GetJob(JobId(job));
      if (!record.ok() || record->endpoints.empty()) continue;
      const auto size = static_cast<int64_t>(19 * record->endpoints.size() + 1);
      bytes[of] += size;
      all += size;
    }
    EXPECT_LE(bytes["ada"], keep.per_owner);
    EXPECT_LE(bytes["eve"], keep.per_owner);
    EXPECT_LE(all, keep.all);
    EXPECT_GT(all, 0) << "round " << round;
  }
}

TEST_F(StoreHoldersTest, QuotasArePutReplacedAndDropped) {
  const QuotaRecord trees{QuotaHolder::kUser, "ada", "trees", 7};
  const QuotaRecord tenant{QuotaHolder::kTenant, "physics", "entries", INT64_MAX};
  ASSERT_APPLIED(store_->Apply(PutQuota{{QuotaHolder::kUser, "ada", "trees", 5}}));
  ASSERT_APPLIED(store_->Apply(PutQuota{tenant}));
  ASSERT_APPLIED(store_->Apply(PutQuota{trees}));
  EXPECT_EQ(Load().quotas, (std::vector<QuotaRecord>{trees, tenant}));
  ASSERT_APPLIED(store_->Apply(PutQuota{trees, true}));
  ASSERT_APPLIED(store_->Apply(PutQuota{trees, true}));  // there is none: fine
  EXPECT_EQ(Load().quotas, (std::vector<QuotaRecord>{tenant}));
  EXPECT_STATUS(store_->Apply(PutQuota{{QuotaHolder::kUser, "", "trees", 5}}),
                StatusCode::kInvalidArgument, "holder");
  EXPECT_STATUS(store_->Apply(PutQuota{{QuotaHolder::kUser, "ada", "trees", -1}}),
                StatusCode::kInvalidArgument, "negative");
}

TEST_F(StoreHoldersTest, AccountsAreReplacedWhole) {
  const std::vector<AccountRecord> accounts = {{"atlas", "physics"}, {"physics", "", "science"}};
  const std::vector<AccountUserRecord> users = {{"ada", "atlas", true}, {"ada", "physics"}};
  ASSERT_APPLIED(store_->Apply(PutAccounts{{{"biology"}}, {{"eve", "biology", true}}}));
  ASSERT_APPLIED(store_->Apply(PutAccounts{accounts, users}));
  Reopen();
  EXPECT_EQ(Load().accounts, accounts);
  EXPECT_EQ(Load().account_users, users);
  const auto refuse = [&](const PutAccounts& put, const std::string& why) {
    EXPECT_STATUS(store_->Apply(put), StatusCode::kInvalidArgument, why);
  };
  refuse({{{""}}, {}}, "one has no name");
  refuse({{{"a"}, {"a"}}, {}}, "account a: it is named twice");
  refuse({{{"a", "b"}}, {}}, "account a: no account is named b");
  refuse({{{"a", "b"}, {"b", "a"}}, {}}, "account a: it is within itself");
  refuse({{{"a"}}, {{"ada", "b"}}}, "user ada of account b: there is no such account");
  refuse({{{"a"}}, {{"", "a"}}}, "the user has no name");
  refuse({{{"a"}}, {{"ada", "a"}, {"ada", "a"}}}, "it is there twice");
  refuse({{{"a"}, {"b"}}, {{"ada", "a", true}, {"ada", "b", true}}}, "two default accounts");
  EXPECT_EQ(Load().accounts, accounts);
  ASSERT_APPLIED(store_->Apply(PutAccounts{}));
  EXPECT_TRUE(Load().accounts.empty());
  EXPECT_TRUE(Load().account_users.empty());
}

TEST_F(StoreHoldersTest, ReservationsArePutAndDropped) {
  const ReservationRecord first{
      ReservationId(1), "physics", 2, {Guid(7), Guid(8)}, {"n1"}, true, At(5), At(9), At(4)};
  ReservationRecord second = first;
  second.id = ReservationId(2);
  ASSERT_APPLIED(store_->Apply(PutReservation{first}));
  EXPECT_STATUS(store_->Apply(PutReservation{first}), StatusCode::kAlreadyExists, "reservation 1");
  ASSERT_APPLIED(store_->Apply(PutReservation{second}));
  Reopen();
  EXPECT_EQ(Load().reservations, (std::vector<ReservationRecord>{first, second}));
  ASSERT_APPLIED(store_->Apply(DropReservation{ReservationId(2)}));
  EXPECT_STATUS(store_->Apply(DropReservation{ReservationId(2)}), StatusCode::kNotFound,
                "reservation 2");
  EXPECT_EQ(Load().reservations, (std::vector<ReservationRecord>{first}));
  EXPECT_EQ(Load().last_reservation, ReservationId(2)) << "numbers are not used again";
  const auto refuse = [&](auto change, const std::string& why) {
    ReservationRecord wrong = second;
    change(wrong);
    EXPECT_STATUS(store_->Apply(PutReservation{wrong}), StatusCode::kInvalidArgument, why);
  };
  refuse([](auto& r) { r.id = ReservationId(0); }, "ids start at 1");
  refuse([](auto& r) { r.tenant = ""; }, "it has no tenant");
  refuse([](auto& r) { r.switches = {Guid(7), Guid(7)}; }, "switch 0000000000000007 twice");
  refuse([](auto& r) { r.nodes = {"n1", "n1"}; }, "node n1 twice");
  refuse([](auto& r) { r.until = r.from; }, "it ends before it begins");
  refuse(
      [](auto& r) {
        r.entries = 0;
        r.nodes = {};
      },
      "neither entries of switches nor nodes");
}

TEST_F(StoreHoldersTest, JobsPlacementsAndPatternsKeepTheirAccount) {
  JobRecord job = JobOf(1, "ada");
  PlacementRecord placement = Placement(1, {"n1"}, "r");
  PatternRecord pattern{1, "stencil", "ada", 4, 1, 10, 1, At(3), 0};
  job.account = placement.account = pattern.account = "atlas";
  ASSERT_APPLIED(store_->Apply(PutJob{job}));
  ASSERT_APPLIED(store_->Apply(PutPlacements{{placement}}));
  ASSERT_APPLIED(store_->Apply(PutPattern{pattern, 0}));
  Reopen();
  EXPECT_EQ(Load().jobs.at(0).account, "atlas");
  EXPECT_EQ(Load().placements.at(0).account, "atlas");
  EXPECT_EQ(store_->Patterns()->at(0), pattern);
}

TEST_F(StoreHoldersTest, AChangeAndItsDeedAreOne) {
  ASSERT_APPLIED(store_->Apply(PutJob{JobOf(1, "ada"), Share(Deed("ada", "Jobs.RegisterJob"))}));
  EXPECT_FALSE(store_->Apply(PutJob{JobOf(1, "ada"), Share(Deed("eve", "x"))}).ok());
  ASSERT_APPLIED(store_->Apply(
      EndJob{JobId(1), JobState::kEnded, At(2), {}, Share(Deed("ada", "Jobs.EndJob"))}));
  Reopen();
  const std::vector<DeedRecord> deeds = Deeds();
  ASSERT_EQ(deeds.size(), 2u);
  DeedRecord first = Deed("ada", "Jobs.RegisterJob");
  first.id = 1;
  EXPECT_EQ(deeds[0], first);
  EXPECT_EQ(deeds[1].method, "Jobs.EndJob");
}

TEST_F(StoreHoldersTest, DeedsAreFound) {
  AppendDeeds append;
  for (const char* user : {"ada", "eve", "bob"}) {
    for (const char* method : {"Jobs.EndJob", "Jobs.RegisterJob", "Trees.CreateTree"}) {
      append.deeds.push_back(
          Deed(user, method, user[0] == 'b' ? DeedShare::kDenial : DeedShare::kUser));
      append.deeds.back().time = At(static_cast<int64_t>(append.deeds.size()));
    }
  }
  append.deeds[0].user = "bob";  // ada for bob
  ASSERT_APPLIED(store_->Apply(std::move(append)));
  EXPECT_EQ(Deeds().size(), 9u);
  EXPECT_EQ(Deeds({.user = "bob"}).size(), 4u);
  EXPECT_EQ(Deeds({.user = "ada"}).size(), 3u);
  EXPECT_EQ(Deeds({.method_prefix = "Jobs."}).size(), 6u);
  EXPECT_EQ(Deeds({.start = At(8)}).size(), 2u);
  EXPECT_EQ(Deeds({.only_denials = true}).size(), 3u);
  const auto page = Deeds({.after_id = 3, .limit = 2});
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].id, 4);
  EXPECT_STATUS(store_->Apply(AppendDeeds{{}, {0, 1}}), StatusCode::kInvalidArgument, "kept");
}

// One who does much, or is denied much, has his own older rows made one, and nobody else's.
TEST_F(StoreHoldersTest, NobodyWashesOutOthersDeeds) {
  const auto append = [&](DeedRecord deed, int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_APPLIED(store_->Apply(AppendDeeds{{deed}, {20, 50}}));
    }
  };
  append(Deed("root", "Admin.Reload", DeedShare::kAdministrator), 3);
  append(Deed("ada", "Jobs.EndJob"), 5);
  append(Deed("eve", "Jobs.EndJob"), 2);
  append(Deed("eve", "Trees.CreateTree"), 200);
  append(Deed("eve", "Trees.ReleaseTree"), 200);
  Reopen();
  append(Deed("eve", "Jobs.EndJob", DeedShare::kDenial), 200);
  append(Deed("eve", "Trees.CreateTree"), 200);
  std::map<std::string, std::pair<uint32_t, uint32_t>> left;  // rows, deeds
  for (const DeedRecord& deed : Deeds()) {
    const std::string denied = deed.share == DeedShare::kDenial ? " denied" : "";
    auto& [rows, deeds] = left[deed.caller + " " + deed.method + denied];
    ++rows;
    deeds += deed.count;
  }
  using Left = std::pair<uint32_t, uint32_t>;
  EXPECT_EQ(left["root Admin.Reload"], (Left{3, 3}));
  EXPECT_EQ(left["ada Jobs.EndJob"], (Left{5, 5}));
  EXPECT_EQ(left["eve Jobs.EndJob"], (Left{2, 2}));
  EXPECT_EQ(left["eve Trees.CreateTree"], (Left{20, 400}));
  EXPECT_EQ(left["eve Trees.ReleaseTree"], (Left{20, 200}));
  EXPECT_EQ(left["eve Jobs.EndJob denied"], (Left{20, 200}));
  for (int user = 0; user < 20; ++user) append(Deed("u" + std::to_string(user), "Jobs.EndJob"), 1);
  EXPECT_EQ(Deeds({.user = "ada"}).size(), 5u) << "of a full share, who has the most loses";
  EXPECT_EQ(Deeds({.user = "u0"}).size(), 1u);
  uint32_t of_eve = 0;
  for (const DeedRecord& deed : Deeds({.user = "eve"})) of_eve += deed.count;
  EXPECT_EQ(of_eve, 2u + 400 + 200 + 200);
  EXPECT_LE(Deeds().size(), 50u + 3 + 20);
}

// All users of a login node come through one agent, all jobs through one scheduler.
TEST_F(StoreHoldersTest, AnothersDeedsStayThoughBothComeThroughOneCaller) {
  const auto append = [&](const char* user, const char* object, int times) {
    DeedRecord deed = Deed("tls:agent-login1", "Jobs.RegisterJob");
    deed.user = user;
    deed.object = object;
    for (int i = 0; i < times; ++i) {
      ASSERT_APPLIED(store_->Apply(AppendDeeds{{deed}, {20, 100}}));
    }
  };
  append("ada", "job:1", 1);
  append("eve", "job:2", 1);
  append("eve", "job:3", 500);
  const auto of_ada = Deeds({.user = "ada"});
  ASSERT_EQ(of_ada.size(), 1u);
  EXPECT_EQ(of_ada[0].object, "job:1");
  Reopen();
  append("eve", "job:4", 500);
  EXPECT_EQ(Deeds({.user = "ada"}), of_ada);
}

// Who repeats what he did hides which it was, and not that it was.
TEST_F(StoreHoldersTest, OlderDeedsOfAKindAreOneWithTheirNumber) {
  for (int i = 1; i <= 10; ++i) {
    DeedRecord deed = Deed("eve", "Jobs.EndJob");
    deed.time = deed.first = At(i);
    deed.object = "job:" + std::to_string(i);
    ASSERT_APPLIED(store_->Apply(AppendDeeds{{deed}, {4, 100}}));
    if (i == 6) Reopen();
  }
  const auto deeds = Deeds();
  ASSERT_EQ(deeds.size(), 4u);
  EXPECT_EQ(deeds[0].count, 7u);
  EXPECT_EQ(deeds[0].first, At(1));
  EXPECT_EQ(deeds[0].time, At(7));
  EXPECT_EQ(deeds[0].object, "job:7");
  EXPECT_EQ(deeds[1].count, 1u);
  EXPECT_EQ(deeds[1].object, "job:8");
}

TEST_F(StoreHoldersTest, OfAFullShareTheOldGoFirst) {
  const DeedLimits limits{10, 4, absl::Seconds(100)};
  const auto append = [&](const std::string& user, int64_t time) {
    DeedRecord deed = Deed(user, "Jobs.EndJob");
    deed.time = deed.first = At(time);
    ASSERT_APPLIED(store_->Apply(AppendDeeds{{deed}, limits}));
  };
  append("ada", 1);
  append("bob", 5000);
  append("eve", 5001);
  append("eve", 5002);
  EXPECT_EQ(Deeds({.user = "ada"}).size(), 1u) << "of any age, while there is room";
  append("eve", 5003);
  EXPECT_TRUE(Deeds({.user = "ada"}).empty());
  EXPECT_EQ(Deeds({.user = "eve"}).size(), 3u) << "that was enough";
  append("eve", 5004);
  EXPECT_EQ(Deeds({.user = "bob"}).size(), 1u);
  EXPECT_EQ(Deeds({.user = "eve"}).size(), 3u);
}

// An agent may name users that there are not.
TEST_F(StoreHoldersTest, WhoInventsUsersLosesHisOwn) {
  const auto append = [&](const char* caller, const std::string& user) {
    DeedRecord deed = Deed(caller, "Jobs.EndJob", DeedShare::kDenial);
    deed.user = user;
    ASSERT_APPLIED(store_->Apply(AppendDeeds{{deed}, {10, 20}}));
  };
  append("tls:agent-n1", "ada");
  for (int i = 0; i < 200; ++i) append("tls:agent-n2", "invented" + std::to_string(i));
  EXPECT_EQ(Deeds({.user = "tls:agent-n1"}).size(), 1u);
  EXPECT_EQ(Deeds({.user = "invented199"}).size(), 1u);
  EXPECT_EQ(Deeds().size(), 20u);
}

TEST(SqliteDeedsTest, AreNeverChanged) {
  StoreDirectory directory;
  const std::string path = directory.File("coppice.db");
  auto store = *SqliteStore::Open(path);
  ASSERT_APPLIED(store->Apply(AppendDeeds{{Deed("eve", "Jobs.EndJob")}}));
  RawDatabase raw(path);
  EXPECT_THAT(raw.Run("UPDATE deed SET caller = 'ada'"),
              testing::HasSubstr("stays as it was told"));
  EXPECT_THAT(raw.Run("UPDATE deed SET first_ns = first_ns + 1"),
              testing::HasSubstr("stays as it was told"));
  EXPECT_THAT(raw.Run("SELECT caller || '|' || share || '|' || method FROM deed_list"),
              testing::HasSubstr("eve|user|Jobs.EndJob"));
}

}  // namespace
}  // namespace coppice::store_holders_test
