// What is kept for tenants: never overbooked, never below a reservation, lent and taken back.
#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/support/tier.h"
#include "tests/unit/manager/placement/placements_fixture.h"

namespace coppice::reservations_test {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint32_t kEntries = 3;

class ReservationsTest : public PlacementsTest {
 protected:
  void SetUp() override {
    Boot(Options(kEntries));
    PutAccounts accounts;
    for (const std::string tenant : {"a", "b", "c"}) {
      accounts.accounts.push_back({"of_" + tenant, "", tenant});
      accounts.users.push_back({tenant, "of_" + tenant, true});
    }
    ASSERT_TRUE(manager_->ImportAccounts(accounts, {}).ok());
  }
  JobId JobOf(const std::string& user) {
    RegisterJobArgs args = AllHosts();
    args.owner = args.actor.user = user;
    args.lease = absl::Hours(24);
    const auto job = Register(std::move(args));
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->record->id : JobId();
  }
  CreateReservationArgs For(const std::string& tenant, uint32_t entries) {
    CreateReservationArgs args;
    args.tenant = tenant;
    args.entries = entries;
    args.until = clock_.Now() + absl::Hours(1);
    return args;
  }
  absl::StatusOr<ReservationRecord> Reserve(const CreateReservationArgs& args) {
    return manager_->reservations().Create(args, {});
  }
  // Trees of type II until there is no room for one more.
  std::vector<TreeId> FillWith(JobId job, absl::Status* refusal = nullptr) {
    std::vector<TreeId> trees;
    for (;;) {
      const auto tree = Create(TreeOf(job));
      if (!tree.ok()) {
        EXPECT_EQ(tree.status().code(), StatusCode::kResourceExhausted) << tree.status();
        if (refusal != nullptr) *refusal = tree.status();
        return trees;
      }
      trees.push_back(tree->record->id);
    }
  }
  // By switch and tenant, from the trees that are granted.
  std::map<Guid, std::map<std::string, int64_t>> Held() {
    std::map<Guid, std::map<std::string, int64_t>> held;
    const StoredState state = *store_.Load();
    std::map<JobId, std::string> owners;
    for (const JobRecord& job : state.jobs) owners[job.id] = job.owner;
    for (const TreeRecord& tree : state.trees) {
      for (const TreeSwitchRecord& entry : tree.switches) ++held[entry.guid][owners[tree.job]];
    }
    return held;
  }
  size_t MostOf(const std::string& tenant) {
    int64_t most = 0;
    for (auto& [guid, of] : Held()) most = std::max(most, of[tenant]);
    return static_cast<size_t>(most);
  }
};

TEST_F(ReservationsTest, WhatIsKeptIsItsTenantsAlone) {
  const auto kept = Reserve(For("a", 2));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->switches.size(), 6u);
  const JobId a = JobOf("a"), b = JobOf("b");
  absl::Status refusal;
  const size_t of_b = FillWith(b, &refusal).size();
  EXPECT_EQ(of_b, 6u) << "one entry of each of six switches";
  EXPECT_THAT(
      std::string(refusal.message()),
      AllOf(HasSubstr("all free entries are kept, of the first by reservation 1 of tenant a"),
            HasSubstr("until ")));
  EXPECT_EQ(FillWith(a).size(), 12u);
  // It has no entry beyond what it reserved: the rest is b's. And after a restart:
  Boot(Options(kEntries));
  ASSERT_TRUE(End(a).ok());
  EXPECT_TRUE(FillWith(b).empty());
  ASSERT_TRUE(manager_->reservations().Delete(kept->id, {}).ok());
  EXPECT_EQ(FillWith(b).size(), 12u);
  EXPECT_EQ(manager_->reservations().Delete(kept->id, {}).code(), StatusCode::kNotFound);
}

TEST_F(ReservationsTest, NoneIsMadeOverWhatOthersHoldOrHaveReserved) {
  ASSERT_TRUE(Reserve(For("a", 2)).ok());
  const absl::Status two = Reserve(For("b", 2)).status();
  EXPECT_EQ(two.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(two.message()),
              AllOf(HasSubstr("of its 3 entries others hold or have reserved 2"),
                    HasSubstr("ask for 1 at most")));
  CreateReservationArgs later = For("b", 3);
  later.from = later.until;
  later.until += absl::Hours(1);
  EXPECT_TRUE(Reserve(later).ok()) << "the first has ended by then";
  FillWith(JobOf("c"));  // one of each
  const absl::Status held = Reserve(For("b", 1)).status();
  EXPECT_EQ(held.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(held.message()), HasSubstr("others hold or have reserved 3"));
}

TEST_F(ReservationsTest, ItEndsWithItsTime) {
  ASSERT_TRUE(Reserve(For("a", 3)).ok());
  const JobId b = JobOf("b");
  EXPECT_TRUE(FillWith(b).empty());
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(manager_->reservations().Expire(), absl::InfiniteDuration());
  EXPECT_TRUE(manager_->reservations().List().empty());
  EXPECT_TRUE(Create(TreeOf(b)).ok());
  EXPECT_TRUE(store_.Load()->reservations.empty());
}

// What could not be written is not kept.
TEST_F(ReservationsTest, AFailedWriteKeepsNothing) {
  store_.Refuse<PutReservation>(absl::UnavailableError("the disk is full"));
  EXPECT_EQ(Reserve(For("a", 3)).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(manager_->reservations().List().empty());
  EXPECT_EQ(FillWith(JobOf("b")).size(), 18u);
}

TEST_F(ReservationsTest, ErrorsNameWhatIsWrong) {
  const auto refuse = [&](const CreateReservationArgs& args, const std::string& why) {
    const absl::Status status = Reserve(args).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  refuse(For("", 1), "tenant: empty");
  refuse(For("a", 0), "entries: 0, and no nodes");
  CreateReservationArgs args = For("a", 1);
  args.switches = {Guid(7)};
  refuse(args, "0000000000000007 is no switch");
  args.entries = 0;
  refuse(args, "entries: 0; say how many");
  args = For("a", 1);
  args.until = clock_.Now();
  refuse(args, "until: ");
  args = For("a", 0);
  args.nodes = {"n99"};
  refuse(args, "n99");
}

// Before it begins others have what it will keep; then the newest of them do without.
TEST_F(ReservationsTest, WhatIsLentUntilItBeginsIsTakenBack) {
  const JobId b = JobOf("b");
  CreateTreeArgs first = TreeOf(b);
  ASSERT_TRUE(Create(first).ok());  // held before: never taken
  clock_.Advance(absl::Seconds(1));
  CreateReservationArgs args = For("a", 2);
  args.from = clock_.Now() + absl::Minutes(10);
  ASSERT_TRUE(Reserve(args).ok());
  clock_.Advance(absl::Seconds(1));
  const size_t lent = FillWith(b).size();
  EXPECT_EQ(lent, 17u) << "all entries of six switches";
  clock_.Advance(absl::Minutes(10));
  manager_->reservations().Expire();
  ManagerPeer::RepairTrees(*manager_);
  EXPECT_EQ(MostOf("b"), 1u);
  EXPECT_TRUE(FillWith(b).empty());
  EXPECT_EQ(FillWith(JobOf("a")).size(), 12u);
  EXPECT_THAT(store_.Load()->trees.front().id, TreeId(1)) << "the first stays";
  const auto revoked = EventsOf("trees.revoked");
  ASSERT_FALSE(revoked.empty());
  EXPECT_THAT(revoked.back().message, HasSubstr("lent by reservation 1 of tenant a"));
}

// A tree that accepts type I is planned anew as one.
TEST_F(ReservationsTest, BorrowersAreRevisedToDoWithout) {
  CreateReservationArgs args = For("a", 3);
  args.from = clock_.Now() + absl::Minutes(10);
  ASSERT_TRUE(Reserve(args).ok());
  clock_.Advance(absl::Seconds(1));
  const JobId b = JobOf("b");
  CreateTreeArgs either = TreeOf(b);
  either.type.reset();
  const auto tree = Create(either);
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_FALSE(tree->record->switches.empty()) << "of type II";
  clock_.Advance(absl::Minutes(10));
  manager_->reservations().Expire();
  ManagerPeer::RepairTrees(*manager_);
  const StoredState state = *store_.Load();
  ASSERT_EQ(state.trees.size(), 1u);
  EXPECT_TRUE(state.trees[0].switches.empty());
  EXPECT_EQ(state.trees[0].revision, 2u);
}

// In its time a reservation that lends gives what it does not use, until its tenant asks.
TEST_F(ReservationsTest, WhatAReservationLendsIsTakenBackWhenItsTenantAsks) {
  manager_->Start();
  CreateReservationArgs args = For("a", 3);
  args.lends = true;
  ASSERT_TRUE(Reserve(args).ok());
  clock_.Advance(absl::Seconds(1));
  const JobId a = JobOf("a"), b = JobOf("b");
  EXPECT_EQ(FillWith(b).size(), 18u);
  const auto tree = Create(TreeOf(a));
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(FillWith(a).size(), 17u);
  EXPECT_EQ(MostOf("b"), 0u);
  EXPECT_TRUE(FillWith(b).empty()) << "others cannot take from the tenant";
}

// What is within its own reservation nobody has lent it, however new it is.
TEST_F(ReservationsTest, OnlyBorrowersGiveWay) {
  manager_->Start();
  CreateReservationArgs of_a = For("a", 1), of_b = For("b", 1);
  of_a.lends = true;
  of_a.switches = of_b.switches = {SpineGuid(0)};
  ASSERT_TRUE(Reserve(of_a).ok());
  ASSERT_TRUE(Reserve(of_b).ok());
  clock_.Advance(absl::Seconds(1));
  const JobId a = JobOf("a"), b = JobOf("b"), c = JobOf("c");
  const auto on_spine = [&](JobId job) {
    CreateTreeArgs args = TreeOf(job);
    args.root_switch = SpineGuid(0);
    return Create(args);
  };
  const auto borrowed = on_spine(c), anybodys = on_spine(c), own = on_spine(b);
  ASSERT_TRUE(borrowed.ok() && anybodys.ok() && own.ok());
  ASSERT_TRUE(on_spine(a).ok());
  std::set<TreeId> left;
  const StoredState state = *store_.Load();
  for (const TreeRecord& tree : state.trees) left.insert(tree.id);
  EXPECT_TRUE(left.contains(own->record->id)) << "the newest, but b's own";
  EXPECT_TRUE(left.contains(borrowed->record->id)) << "one of c's two is enough, the newer";
  EXPECT_FALSE(left.contains(anybodys->record->id));
  EXPECT_FALSE(on_spine(a).ok()) << "nobody gives way beyond what a reserved";
  EXPECT_EQ(store_.Load()->trees.size(), 3u);
}

// Who may not have it for lack of quota takes it from nobody.
TEST_F(ReservationsTest, NobodyGivesWayToWhatIsRefused) {
  manager_->Start();
  CreateReservationArgs args = For("a", 3);
  args.lends = true;
  ASSERT_TRUE(Reserve(args).ok());
  clock_.Advance(absl::Seconds(1));
  const JobId a = JobOf("a"), b = JobOf("b");
  ASSERT_EQ(FillWith(b).size(), 18u);
  manager_->quotas().SetRow({QuotaHolder::kUser, "a", "trees", 0}, /*drop=*/false);
  const absl::Status refused = Create(TreeOf(a)).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("a holds 0 trees of the 0"));
  EXPECT_EQ(store_.Load()->trees.size(), 18u);
}

// A clock that is set back makes nobody one who was there before.
TEST_F(ReservationsTest, BorrowersAreKnownWhateverTheClockSays) {
  CreateReservationArgs args = For("a", 3);
  args.from = clock_.Now() + absl::Minutes(10);
  args.until = *args.from + absl::Hours(2);
  ASSERT_TRUE(Reserve(args).ok());
  clock_.StepWallClock(-absl::Hours(1));
  ASSERT_EQ(FillWith(JobOf("b")).size(), 18u);
  clock_.StepWallClock(absl::Minutes(71));
  manager_->reservations().Expire();
  ManagerPeer::RepairTrees(*manager_);
  EXPECT_EQ(MostOf("b"), 0u);
  const auto begun = EventsOf("reservation.begun");
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].object, "reservation:1");
}

// So does one that a repair has moved there, whenever it was granted.
TEST_F(ReservationsTest, WhoMovesToASwitchIsTheNewestThere) {
  const JobId b = JobOf("b");
  const auto old = Create(TreeOf(b));
  ASSERT_TRUE(old.ok()) << old.status();
  ASSERT_EQ(old->record->switches.front().guid, SpineGuid(0));
  CreateReservationArgs args = For("a", 3);
  args.switches = {SpineGuid(1)};
  args.from = clock_.Now() + absl::Minutes(10);
  ASSERT_TRUE(Reserve(args).ok());
  FabricShape shape;
  shape.missing_spines = {0};
  port_.Set(SmallFabric(shape));
  ASSERT_TRUE(manager_->Sweep().ok());
  ManagerPeer::RepairTrees(*manager_);
  CreateTreeArgs there = TreeOf(b);
  there.root_switch = SpineGuid(1);
  while (Create(there).ok()) {
  }
  ASSERT_EQ(Held()[SpineGuid(1)]["b"], 3);
  clock_.Advance(absl::Minutes(10));
  manager_->reservations().Expire();
  ManagerPeer::RepairTrees(*manager_);
  EXPECT_EQ(Held()[SpineGuid(1)]["b"], 0);
}

// Two that follow each other take no more than one.
TEST_F(ReservationsTest, RoomIsLookedForAtEachTime) {
  const auto between = [&](const std::string& tenant, int from, int until) {
    CreateReservationArgs args = For(tenant, 2);
    args.from = clock_.Now() + absl::Minutes(from);
    args.until = clock_.Now() + absl::Minutes(until);
    return Reserve(args);
  };
  ASSERT_TRUE(between("a", 10, 20).ok());
  ASSERT_TRUE(between("b", 20, 30).ok());
  CreateReservationArgs one = For("c", 1);
  EXPECT_TRUE(Reserve(one).ok()) << "beside either there is one";
  EXPECT_FALSE(Reserve(one).ok());
}

// What stayed with others when a switch got smaller is nobody's to call back: plans go round it.
TEST_F(ReservationsTest, AGrantGoesRoundWhereNobodyCanGiveWay) {
  const JobId a = JobOf("a");
  CreateTreeArgs on_spine = TreeOf(JobOf("b"));
  on_spine.root_switch = SpineGuid(0);
  ASSERT_TRUE(Create(on_spine).ok());
  CreateReservationArgs args = For("a", 2);
  args.lends = true;
  ASSERT_TRUE(Reserve(args).ok());
  Boot(Options(2));
  manager_->Start();
  absl::Status refusal;
  EXPECT_EQ(FillWith(a, &refusal).size(), 11u) << "two of five switches, one of the first";
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted) << refusal;
  EXPECT_EQ(Held()[SpineGuid(0)]["b"], 1);
}

// A kill between the beginning of a reservation and the repair changes nothing.
TEST_F(ReservationsTest, WhatHasToGiveWayIsFoundAfterARestart) {
  CreateReservationArgs args = For("a", 2);
  args.from = clock_.Now() + absl::Minutes(10);
  ASSERT_TRUE(Reserve(args).ok());
  clock_.Advance(absl::Seconds(1));
  ASSERT_EQ(FillWith(JobOf("b")).size(), 18u);
  clock_.Advance(absl::Minutes(10));
  Boot(Options(kEntries));
  ManagerPeer::RepairTrees(*manager_);
  EXPECT_EQ(MostOf("b"), 1u);
}

TEST_F(ReservationsTest, ATenantHasOneNameHoweverItIsSpelt) {
  ASSERT_TRUE(manager_->SetTenant("of_a", "0x8001", {}).ok());
  const auto kept = Reserve(For("0x1", 3));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->tenant, "0x0001");
  EXPECT_EQ(FillWith(JobOf("a")).size(), 18u);
}

// A tree that borrows and loses a cable may borrow again: nobody has asked.
TEST_F(ReservationsTest, ABorrowerIsMendedAsOthers) {
  CreateReservationArgs args = For("a", 3);
  args.lends = true;
  ASSERT_TRUE(Reserve(args).ok());
  clock_.Advance(absl::Seconds(1));
  const auto tree = Create(TreeOf(JobOf("b")));
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_EQ(tree->record->switches.front().guid, SpineGuid(0));
  FabricShape shape;
  shape.missing_spines = {0};
  port_.Set(SmallFabric(shape));
  ASSERT_TRUE(manager_->Sweep().ok());
  ManagerPeer::RepairTrees(*manager_);
  const StoredState state = *store_.Load();
  ASSERT_EQ(state.trees.size(), 1u);
  EXPECT_EQ(state.trees[0].revision, 2u);
  EXPECT_FALSE(state.trees[0].switches.empty()) << "another switch serves";
}

TEST_F(ReservationsTest, NodesAreKeptForPlacementsOfTheTenant) {
  CreateReservationArgs args = For("a", 0);
  args.nodes = {"n[0-13]"};
  ASSERT_TRUE(Reserve(args).ok());
  args.tenant = "b";
  const absl::Status twice = Reserve(args).status();
  EXPECT_EQ(twice.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(twice.message()), HasSubstr("node n0 is kept by reservation 1"));
  const auto place = [&](const std::string& user, uint32_t nodes) {
    CreatePlacementArgs placement = Nodes(nodes);
    placement.owner = placement.actor.user = user;
    return Place(placement);
  };
  const absl::Status refused = place("b", 3).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("14 nodes are kept for other tenants, the first by reservation 1"));
  const auto two = place("b", 2);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_THAT(two->record->nodes, testing::UnorderedElementsAre("n14", "n15"));
  EXPECT_TRUE(place("a", 14).ok());
}

// Random grants, releases, reservations, ends and restarts: no switch has more trees than entries,
// and what others hold of it leaves what is kept.
TEST_F(ReservationsTest, NeverBelowAReservation) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  const std::string tenants[] = {"a", "b", "c"};
  std::map<std::string, JobId> jobs;
  for (const std::string& tenant : tenants) jobs[tenant] = JobOf(tenant);
  std::vector<TreeId> trees;
  size_t granted = 0, refused = 0, reserved = 0;
  const int rounds = FullTier() ? 10'000 : 600;
  for (int round = 0; round < rounds; ++round) {
    clock_.Advance(absl::Seconds(1));
    const size_t what = below(100);
    if (what < 50) {
      const auto tree = Create(TreeOf(jobs[tenants[below(3)]]));
      tree.ok() ? ++granted : ++refused;
      if (tree.ok()) trees.push_back(tree->record->id);
    } else if (what < 80 && !trees.empty()) {
      const size_t i = below(trees.size());
      (void)Release(trees[i]);
      trees.erase(trees.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (what < 90) {
      CreateReservationArgs args = For(tenants[below(3)], static_cast<uint32_t>(1 + below(2)));
      for (uint32_t leaf = 0; leaf < 4; ++leaf) {
        if (below(2) == 0) args.switches.push_back(LeafGuid(leaf));
      }
      args.until = clock_.Now() + absl::Seconds(static_cast<int64_t>(10 + below(60)));
      if (below(2) == 0) args.from = clock_.Now() + absl::Seconds(5);
      if (Reserve(args).ok()) ++reserved;
    } else if (what < 95) {
      const auto list = manager_->reservations().List();
      if (!list.empty()) (void)manager_->reservations().Delete(list[below(list.size())].id, {});
    } else if (what < 96) {
      Boot(Options(kEntries));
    }
    manager_->reservations().Expire();
    ManagerPeer::RepairTrees(*manager_);
    const auto reservations = manager_->reservations().List();
    for (auto& [guid, held] : Held()) {
      int64_t all = 0;
      for (const auto& [tenant, entries] : held) all += entries;
      ASSERT_LE(all, int64_t{kEntries}) << "in round " << round;
      std::map<std::string, int64_t> kept;
      for (const ReservationRecord& one : reservations) {
        const bool is_now = one.from <= clock_.Now() && clock_.Now() < one.until;
        const bool is_there =
            std::find(one.switches.begin(), one.switches.end(), guid) != one.switches.end();
        if (is_now && is_there) kept[one.tenant] += one.entries;
      }
      int64_t unused = 0;
      for (const auto& [tenant, entries] : kept) {
        unused += std::max<int64_t>(0, entries - held[tenant]);
      }
      ASSERT_LE(all + unused, int64_t{kEntries})
          << "switch " << ToString(guid) << " in round " << round;
    }
  }
  EXPECT_GT(granted, 100u);
  EXPECT_GT(refused, 20u);
  EXPECT_GT(reserved, 10u);
}

// Who has reserved an entry gets it, whatever others were lent of it meanwhile; batches, switches
// that get smaller and restarts change nothing.
TEST_F(ReservationsTest, WhatIsLentComesBack) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  const std::string tenants[] = {"a", "b", "c"};
  std::map<std::string, JobId> jobs;
  for (const std::string& tenant : tenants) jobs[tenant] = JobOf(tenant);
  manager_->Start();
  const std::vector<Guid> guids = {SpineGuid(0), SpineGuid(1), LeafGuid(0), LeafGuid(1)};
  size_t owed = 0, called_back = 0, batches = 0;
  const int rounds = FullTier() ? 10'000 : 1'000;
  for (int round = 0; round < rounds; ++round) {
    clock_.Advance(absl::Seconds(1));
    manager_->reservations().Expire();
    const size_t what = below(100);
    const std::string& tenant = tenants[below(3)];
    const Guid guid = guids[below(guids.size())];
    if (what < 60) {
      int64_t reserved = 0;
      for (const ReservationRecord& one : manager_->reservations().List()) {
        const bool is_now = one.from <= clock_.Now() && clock_.Now() < one.until;
        if (is_now && one.tenant == tenant && one.switches.front() == guid) reserved += one.entries;
      }
      auto held = Held();
      int64_t all = 0;
      for (const auto& [of, entries] : held[guid]) all += entries;
      CreateTreeArgs args = TreeOf(jobs[tenant]);
      args.root_switch = guid;
      const auto tree = Create(args);
      if (held[guid][tenant] < reserved) {
        ++owed;
        if (all == kEntries) ++called_back;
        ASSERT_TRUE(tree.ok()) << tree.status() << " in round " << round;
      }
    } else if (what < 65) {
      CreateBatchArgs batch;
      batch.job = jobs[tenant];
      batch.communicators = {{0, 1, 4, 5}, {8, 9, 12, 13}};
      batch.largest_part = true;
      batch.actor.user = tenant;
      Answer<std::shared_ptr<const BatchView>> answer;
      manager_->BatchCreateTrees(std::move(batch), {}, answer.Callback());
      const auto granted = answer.Get();
      if (granted.ok() && !(*granted)->trees.empty()) ++batches;
    } else if (what < 80) {
      const StoredState state = *store_.Load();
      if (!state.trees.empty()) (void)Release(state.trees[below(state.trees.size())].id);
    } else if (what < 95) {
      CreateReservationArgs args = For(tenant, static_cast<uint32_t>(1 + below(2)));
      args.switches = {guid};
      args.lends = below(4) > 0;
      args.until = clock_.Now() + absl::Seconds(static_cast<int64_t>(30 + below(200)));
      if (below(2) == 0) args.from = clock_.Now() + absl::Seconds(5);
      (void)Reserve(args);
    } else if (what < 98) {
      const auto list = manager_->reservations().List();
      if (!list.empty()) (void)manager_->reservations().Delete(list[below(list.size())].id, {});
    } else if (below(4) == 0) {
      Boot(Options(kEntries));
      manager_->Start();
    }
    for (const auto& [at, of] : Held()) {
      int64_t all = 0;
      for (const auto& [who, entries] : of) all += entries;
      ASSERT_LE(all, int64_t{kEntries}) << "in round " << round;
    }
  }
  EXPECT_GT(owed, 20u);
  EXPECT_GT(called_back, 3u);
  EXPECT_GT(batches, 3u);
}

// An idle fabric is all of who asks; when another asks, nothing more beyond one's share.
TEST_F(ReservationsTest, TenantsShareByWeightWhileOthersAsk) {
  const JobId a = JobOf("a"), b = JobOf("b");
  std::vector<TreeId> of_a = FillWith(a);
  ASSERT_EQ(of_a.size(), 18u) << "nobody else asks";
  EXPECT_TRUE(FillWith(b).empty());
  const auto release = [&](size_t trees) {
    for (; trees > 0; --trees) {
      ASSERT_TRUE(Release(of_a.back()).ok());
      of_a.pop_back();
    }
  };
  release(2);
  absl::Status refusal;
  EXPECT_TRUE(FillWith(a, &refusal).empty());
  EXPECT_THAT(std::string(refusal.message()),
              AllOf(HasSubstr("tenant:a holds 16 entries of switches"),
                    HasSubstr("its share is 9 while tenant:b asks, which has 0 of its 9")));
  EXPECT_EQ(FillWith(b).size(), 2u);
  release(8);
  EXPECT_EQ(FillWith(a).size(), 1u) << "up to its share";
  EXPECT_EQ(FillWith(b).size(), 7u);
  // By weight: b's share is 4, of which it has 9.
  Answer<QuotaRecord> answer;
  manager_->SetQuota({{QuotaHolder::kTenant, "a", "weight", 3}}, {}, answer.Callback());
  ASSERT_TRUE(answer.Get().ok());
  release(1);
  EXPECT_EQ(FillWith(a).size(), 1u);
  EXPECT_TRUE(FillWith(a, &refusal).empty());
  EXPECT_THAT(std::string(refusal.message()), HasSubstr("no free entry"));
  release(1);
  EXPECT_TRUE(FillWith(b, &refusal).empty());
  EXPECT_THAT(std::string(refusal.message()),
              HasSubstr("its share is 4 while tenant:a asks, which has 8 of its 13"));
  clock_.Advance(absl::Minutes(2));
  EXPECT_EQ(FillWith(b).size(), 1u) << "nobody asks any more";
}

// What another asks for is not to be had beyond one's share; the rest is.
TEST_F(ReservationsTest, SharesBindWhereOthersAsk) {
  const JobId a = JobOf("a"), b = JobOf("b");
  std::vector<TreeId> on_first;
  CreateTreeArgs there = TreeOf(a);
  there.root_switch = SpineGuid(0);
  for (int i = 0; i < 3; ++i) on_first.push_back(Create(there)->record->id);
  CreateTreeArgs elsewhere = there;
  elsewhere.root_switch = SpineGuid(1);
  Answer<QuotaRecord> answer;
  manager_->SetQuota({{QuotaHolder::kTenant, "b", "weight", 8}}, {}, answer.Callback());
  ASSERT_TRUE(answer.Get().ok());
  CreateTreeArgs asked = TreeOf(b);
  asked.root_switch = SpineGuid(0);
  EXPECT_FALSE(Create(asked).ok());
  ASSERT_TRUE(Release(on_first.back()).ok());
  const absl::Status refusal = Create(there).status();
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted) << refusal;
  EXPECT_THAT(std::string(refusal.message()),
              HasSubstr("its share is 2 while tenant:b asks, which has 0 of its 16"));
  EXPECT_TRUE(refusal.GetPayload(kHoldersPayload).has_value());
  const auto other = Create(elsewhere);
  EXPECT_TRUE(other.ok()) << other.status() << ": nobody asks for that one";
  const auto free = Create(TreeOf(a));
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_NE(free->record->switches.front().guid, SpineGuid(0));
  EXPECT_TRUE(Create(asked).ok());
}

// Who gets type I for want of entries asks for them, too.
TEST_F(ReservationsTest, WhoDoesWithoutAsksAsWell) {
  const JobId a = JobOf("a"), b = JobOf("b");
  std::vector<TreeId> of_a = FillWith(a);
  CreateTreeArgs either = TreeOf(b);
  either.type.reset();
  const auto tree = Create(either);
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_TRUE(tree->record->switches.empty()) << "all are full";
  ASSERT_TRUE(Release(of_a.back()).ok());
  EXPECT_FALSE(Create(TreeOf(a)).ok()) << "beyond its share";
  const auto second = Create(either);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(second->record->switches.empty());
}

// Whoever keeps asking comes to its share, however often the others ask, as soon as entries are
// given back, and is never below it again.
TEST_F(ReservationsTest, NobodyStarves) {
  const std::string tenants[] = {"a", "b", "c"};
  std::map<std::string, JobId> jobs;
  std::map<std::string, std::vector<TreeId>> trees;
  for (const std::string& tenant : tenants) jobs[tenant] = JobOf(tenant);
  trees["a"] = FillWith(jobs["a"]);
  ASSERT_EQ(trees["a"].size(), 18u);
  std::mt19937_64 random(TestSeed());
  const auto ask = [&](const std::string& tenant) {
    const auto tree = Create(TreeOf(jobs[tenant]));
    if (tree.ok()) trees[tenant].push_back(tree->record->id);
  };
  for (const std::string& tenant : tenants) ask(tenant);
  const int rounds = FullTier() ? 10'000 : 500;
  for (int round = 0; round < rounds; ++round) {
    clock_.Advance(absl::Seconds(1));
    // Whoever has most gives one back, as jobs end.
    std::vector<TreeId>& most =
        std::max_element(trees.begin(), trees.end(), [](const auto& one, const auto& other) {
          return one.second.size() < other.second.size();
        })->second;
    const size_t i = static_cast<size_t>(random() % most.size());
    ASSERT_TRUE(Release(most[i]).ok());
    most.erase(most.begin() + static_cast<std::ptrdiff_t>(i));
    for (int impatient = static_cast<int>(random() % 10); impatient > 0; --impatient) ask("a");
    std::vector<std::string> order(std::begin(tenants), std::end(tenants));
    std::shuffle(order.begin(), order.end(), random);
    for (const std::string& tenant : order) ask(tenant);
    if (round < 18) continue;
    for (const std::string& tenant : tenants) {
      ASSERT_GE(trees[tenant].size(), 5u) << tenant << " in round " << round;
    }
  }
}

}  // namespace
}  // namespace coppice::reservations_test
