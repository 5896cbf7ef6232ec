#include "daemon/manager/quota_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/manager/placement/placement_view.h"
#include "tests/support/tier.h"

namespace coppice::quota_ledger_test {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;

QuotaAmounts Amount(Quota quota, int64_t amount) {
  QuotaAmounts amounts;
  amounts[quota] = amount;
  return amounts;
}

std::string HoldersOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kHoldersPayload);
  return payload ? std::string(*payload) : "";
}

QuotaStanding StandingOf(const QuotaLedger& ledger, const std::string& user, Quota quota) {
  return ledger.StandingOf({QuotaHolder::kUser, user})[static_cast<size_t>(quota)];
}

TEST(QuotaLedgerTest, NothingIsLimitedUnlessSaid) {
  QuotaLedger ledger;
  EXPECT_TRUE(ledger.Take({"ada"}, Amount(Quota::kRanks, int64_t{1} << 60)).ok());
  EXPECT_EQ(ledger.LongestLease({"ada"}), absl::InfiniteDuration());
  EXPECT_EQ(ledger.KeptBytes("ada"), QuotaLimit::kNone);
}

TEST(QuotaLedgerTest, ARefusalNamesLimitUseAndHolder) {
  QuotaOptions options;
  options[Quota::kTrees] = {3};
  QuotaLedger ledger;
  ledger.Configure(options);
  ASSERT_TRUE(ledger.Take({"ada"}, Amount(Quota::kTrees, 2)).ok());
  const absl::Status refused = ledger.Take({"ada"}, Amount(Quota::kTrees, 2));
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("ada holds 2 trees of the 3"), HasSubstr("quotas.trees"),
                    HasSubstr("release trees")));
  EXPECT_EQ(HoldersOf(refused), "user:ada 2 of 3 trees (quota trees), 2 more asked for");
  EXPECT_EQ(StandingOf(ledger, "ada", Quota::kTrees).used, 2) << "nothing of it was taken";
  EXPECT_TRUE(ledger.Take({"eve"}, Amount(Quota::kTrees, 3)).ok()) << "each has his own";
  ledger.Give({"ada"}, Amount(Quota::kTrees, 1));
  EXPECT_TRUE(ledger.Check({"ada"}, Amount(Quota::kTrees, 2)).ok());
  EXPECT_EQ(StandingOf(ledger, "ada", Quota::kTrees).used, 1) << "Check takes nothing";
}

TEST(QuotaLedgerTest, SharesAreOfTheWholeAndAtLeastOne) {
  QuotaOptions options;
  options[Quota::kEntries] = {50, true};
  QuotaLedger ledger;
  ledger.Configure(options);
  ledger.SetWhole(Quota::kEntries, 192);
  EXPECT_EQ(StandingOf(ledger, "ada", Quota::kEntries).limit, 96);
  ledger.SetWhole(Quota::kEntries, 1);
  EXPECT_EQ(StandingOf(ledger, "ada", Quota::kEntries).limit, 1);
}

TEST(QuotaLedgerTest, UsersTogetherLeaveTheLastToAdministrators) {
  QuotaOptions options;
  options.left_to_administrators = 10;
  options.all_jobs = 20;
  QuotaLedger ledger;
  ledger.Configure(options);
  ASSERT_TRUE(ledger.Take({"ada"}, Amount(Quota::kJobs, 12)).ok());
  ASSERT_TRUE(ledger.Take({"eve"}, Amount(Quota::kJobs, 6)).ok());
  const absl::Status refused = ledger.Take({"bob"}, Amount(Quota::kJobs, 1));
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("users together hold 18 active jobs of the 18"), HasSubstr("10%")));
  EXPECT_EQ(
      HoldersOf(refused),
      "user:ada 12 active jobs, of 18 for all users\nuser:eve 6 active jobs, of 18 for all users");
  // Administrators are counted and not refused, and what they have is not the users'.
  EXPECT_TRUE(ledger.Take({"root", true}, Amount(Quota::kJobs, 100)).ok());
  EXPECT_EQ(StandingOf(ledger, "root", Quota::kJobs).all_used, 118);
  ledger.Give({"eve"}, Amount(Quota::kJobs, 1));
  EXPECT_TRUE(ledger.Take({"bob"}, Amount(Quota::kJobs, 1)).ok());
}

TEST(QuotaLedgerTest, AUserMayHaveLimitsOfHisOwn) {
  QuotaOptions options;
  options[Quota::kTrees] = {3};
  options[Quota::kLeaseSeconds] = {60};
  QuotaLedger ledger;
  ledger.Configure(options);
  ledger.SetRows({{QuotaHolder::kUser, "ada", "trees", 5},
                  {QuotaHolder::kUser, "ada", "lease_seconds", QuotaLimit::kNone},
                  {QuotaHolder::kUser, "ada", "of a later release", 1},
                  {QuotaHolder::kTenant, "ada", "jobs", 0}});  // not the user of that name
  EXPECT_TRUE(ledger.Take({"ada"}, Amount(Quota::kTrees, 5)).ok());
  EXPECT_TRUE(ledger.Take({"ada"}, Amount(Quota::kJobs, 5)).ok()) << "a tenant of the same name";
  EXPECT_TRUE(ledger.CheckLease({"ada"}, absl::Hours(9), "lease").ok());
  const absl::Status refused = ledger.CheckLease({"eve"}, absl::Hours(9), "term");
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("term: 9h is longer than the 1m that eve"));
  EXPECT_EQ(HoldersOf(refused), "user:eve 9h of 1m (quota lease_seconds)");
  EXPECT_TRUE(ledger.CheckLease({"eve", true}, absl::Hours(9), "lease").ok());
  ledger.SetRow({QuotaHolder::kUser, "ada", "trees", 0}, /*drop=*/true);
  EXPECT_EQ(StandingOf(ledger, "ada", Quota::kTrees).limit, 3);
  EXPECT_FALSE(ledger.Take({"ada"}, Amount(Quota::kTrees, 1)).ok());
  EXPECT_THAT(ledger.Holders(),
              ::testing::ElementsAre(QuotaHolderName{QuotaHolder::kUser, "ada"},
                                     QuotaHolderName{QuotaHolder::kTenant, "ada"}));
}

// Whatever comes and goes, what is told is what is held, and no limit is passed by who is limited.
TEST(QuotaLedgerTest, ModelOfTakesAndGives) {
  std::mt19937_64 random(TestSeed());
  QuotaOptions options;
  options[Quota::kTrees] = {40};
  options[Quota::kNodes] = {30, true};
  options.left_to_administrators = 10;
  QuotaLedger ledger;
  ledger.Configure(options);
  ledger.SetWhole(Quota::kNodes, 100);
  struct Held {
    Payer payer;
    QuotaAmounts amounts;
  };
  std::vector<Held> held;
  const auto sum = [&](const std::string& user, Quota quota, bool ordinary_only) {
    int64_t total = 0;
    for (const Held& one : held) {
      if (!user.empty() && one.payer.user != user) continue;
      if (!ordinary_only || !one.payer.is_exempt) total += one.amounts[quota];
    }
    return total;
  };
  for (int round = 0; round < 20'000; ++round) {
    if (!held.empty() && random() % 2 == 0) {
      const size_t i = random() % held.size();
      ledger.Give(held[i].payer, held[i].amounts);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      Held one{{std::string(1, static_cast<char>('a' + random() % 6)), random() % 5 == 0}, {}};
      one.amounts[Quota::kTrees] = static_cast<int64_t>(random() % 12);
      one.amounts[Quota::kNodes] = static_cast<int64_t>(random() % 12);
      if (ledger.Take(one.payer, one.amounts).ok()) {
        held.push_back(one);
      } else {
        EXPECT_FALSE(one.payer.is_exempt);
        const auto over = [&](Quota quota, int64_t limit, int64_t all) {
          const std::string& user = one.payer.user;
          int64_t own = 0;
          for (const Held& h : held) {
            if (h.payer.user == user && !h.payer.is_exempt) own += h.amounts[quota];
          }
          const int64_t more = one.amounts[quota];
          return more > 0 && (own + more > limit || sum("", quota, true) + more > all);
        };
        EXPECT_TRUE(over(Quota::kTrees, 40, QuotaLimit::kNone) || over(Quota::kNodes, 30, 90));
      }
    }
    EXPECT_LE(sum("", Quota::kNodes, true), 90);
    if (round % 500 != 0) continue;
    for (const std::string user : {"a", "b", "c", "d", "e", "f"}) {
      for (const Quota quota : {Quota::kTrees, Quota::kNodes}) {
        const QuotaStanding standing = StandingOf(ledger, user, quota);
        EXPECT_EQ(standing.used, sum(user, quota, false));
        EXPECT_EQ(standing.all_used, sum("", quota, false));
      }
    }
  }
}

std::shared_ptr<const Accounts> Physics() {
  return std::make_shared<const Accounts>(
      std::vector<AccountRecord>{{"atlas", "physics"}, {"physics", "", "science"}, {"lab"}},
      std::vector<AccountUserRecord>{{"ada", "atlas", true},
                                     {"eve", "atlas", true},
                                     {"eve", "lab"},
                                     {"bob", "physics", true}});
}

TEST(QuotaLedgerTest, EachLevelHasItsLimit) {
  QuotaLedger ledger;
  ledger.SetAccounts(Physics());
  ledger.SetRows({{QuotaHolder::kAccount, "atlas", "trees", 3},
                  {QuotaHolder::kAccount, "physics", "trees", 5},
                  {QuotaHolder::kTenant, "science", "trees", 6}});
  const Payer ada{"ada", false, "atlas"}, eve{"eve", false, "atlas"}, bob{"bob", false, "physics"};
  ASSERT_TRUE(ledger.Take(ada, Amount(Quota::kTrees, 1)).ok());
  ASSERT_TRUE(ledger.Take(eve, Amount(Quota::kTrees, 2)).ok());
  const absl::Status atlas = ledger.Take(ada, Amount(Quota::kTrees, 1));
  EXPECT_EQ(atlas.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(atlas.message()), AllOf(HasSubstr("account:atlas holds 3 trees of the 3"),
                                                  HasSubstr("ada asks for 1 more")));
  EXPECT_EQ(HoldersOf(atlas),
            "account:atlas 3 of 3 trees (quota trees), 1 more asked for\n"
            "user:eve 2 trees, of 3 of account:atlas\nuser:ada 1 trees, of 3 of account:atlas");
  EXPECT_EQ(ledger.Left(bob)[Quota::kTrees], 2) << "of physics, which atlas is within";
  ASSERT_TRUE(ledger.Take(bob, Amount(Quota::kTrees, 2)).ok());
  EXPECT_THAT(std::string(ledger.Take(bob, Amount(Quota::kTrees, 1)).message()),
              HasSubstr("account:physics holds 5"));
  ledger.SetRow({QuotaHolder::kAccount, "physics", "trees", 0}, /*drop=*/true);
  ASSERT_TRUE(ledger.Take(bob, Amount(Quota::kTrees, 1)).ok());
  EXPECT_THAT(std::string(ledger.Take(bob, Amount(Quota::kTrees, 1)).message()),
              HasSubstr("tenant:science holds 6"));
  EXPECT_TRUE(ledger.Take({"eve", false, "lab"}, Amount(Quota::kTrees, 9)).ok())
      << "lab is nobody's";
  EXPECT_TRUE(ledger.Take({"ada", true, "atlas"}, Amount(Quota::kTrees, 9)).ok());
}

TEST(QuotaLedgerTest, APartitionIsATenantWhereNoAccountSays) {
  QuotaLedger ledger;
  ledger.SetRows({{QuotaHolder::kTenant, "0x0001", "jobs", 1}});
  const Payer in{"ada", false, "", PartitionNum(1)}, other{"ada", false, "", PartitionNum(2)};
  ASSERT_TRUE(ledger.Take(in, Amount(Quota::kJobs, 1)).ok());
  EXPECT_FALSE(ledger.Take(in, Amount(Quota::kJobs, 1)).ok());
  EXPECT_TRUE(ledger.Take(other, Amount(Quota::kJobs, 1)).ok());
  EXPECT_TRUE(ledger.Take({"ada", false, "", kDefaultPartition}, Amount(Quota::kJobs, 1)).ok());
  // An account's tenant goes before the partition's.
  ledger.SetAccounts(Physics());
  EXPECT_TRUE(ledger.Take({"ada", false, "atlas", PartitionNum(1)}, Amount(Quota::kJobs, 1)).ok());
  EXPECT_EQ(ledger.StandingOf({QuotaHolder::kTenant, "science"})[3].used, 1);
}

TEST(QuotaLedgerTest, ThePlannersTimeIsForgottenWithTheHour) {
  QuotaLedger ledger;
  ledger.SetAccounts(Physics());
  ledger.SetRows({{QuotaHolder::kAccount, "physics", "planner_seconds", 100}});
  const Payer ada{"ada", false, "atlas"};
  const absl::Duration begin = absl::Hours(7);
  ledger.SpendPlanner(ada, absl::Seconds(60), begin);
  EXPECT_TRUE(ledger.CheckPlanner(ada, begin).ok());
  ledger.SpendPlanner({"bob", true, "physics"}, absl::Seconds(60), begin);
  const absl::Status refused = ledger.CheckPlanner(ada, begin + absl::Minutes(1));
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("account:physics has spent 118 seconds of the planner"),
                    HasSubstr("of the 100"), HasSubstr("ada asks for more")));
  EXPECT_THAT(HoldersOf(refused), HasSubstr("account:physics 118 of 100"));
  EXPECT_TRUE(ledger.CheckPlanner({"bob", true, "physics"}, begin).ok()) << "an administrator's";
  EXPECT_TRUE(ledger.CheckPlanner({"eve", false, "lab"}, begin).ok());
  // 120 s by 1/e an hour are below 100 after 11 minutes.
  EXPECT_FALSE(ledger.CheckPlanner(ada, begin + absl::Minutes(10)).ok());
  EXPECT_TRUE(ledger.CheckPlanner(ada, begin + absl::Minutes(11)).ok());
  const std::vector<QuotaStanding> standing = ledger.StandingOf({QuotaHolder::kUser, "ada"});
  EXPECT_EQ(standing[static_cast<size_t>(Quota::kPlannerSeconds)].used, 49)
      << "of 60, after 11 minutes";
}

TEST(QuotaLedgerTest, WhoChoosesAnAccountIsInIt) {
  const auto accounts = Physics();
  EXPECT_EQ(*accounts->Choose("ada", "", false), "atlas");
  EXPECT_EQ(*accounts->Choose("eve", "lab", false), "lab");
  EXPECT_EQ(*accounts->Choose("zoe", "", false), "");
  EXPECT_EQ(*accounts->Choose("root", "unheard-of", true), "unheard-of");
  EXPECT_EQ(*Accounts().Choose("ada", "whatever", false), "whatever") << "none is known";
  const absl::Status no_member = accounts->Choose("ada", "lab", false).status();
  EXPECT_EQ(no_member.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(no_member.message()),
              HasSubstr("ada is not in account lab but in atlas"));
  const absl::Status unknown = accounts->Choose("ada", "Lab", false).status();
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("no account is named Lab"));
}

// Users, accounts and tenants come, go and move while things are taken and given: no level is above
// its limit by what it took under that limit, and each refusal has a level that is full.
TEST(QuotaLedgerTest, ModelOfAccountsAndTenants) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  const size_t tenants = FullTier() ? 100 : 5, names = 4 * tenants;
  QuotaLedger ledger;
  std::vector<AccountRecord> accounts;
  std::map<std::pair<QuotaHolder, std::string>, int64_t> limits;
  struct Held {
    Payer payer;
    int64_t trees = 0;
  };
  std::vector<Held> held;
  const auto account_of = [&](const std::string& name) -> const AccountRecord* {
    for (const AccountRecord& account : accounts) {
      if (account.name == name) return &account;
    }
    return nullptr;
  };
  const auto move_accounts = [&] {
    accounts.clear();
    for (size_t i = 0; i < names; ++i) {
      if (below(8) == 0) continue;
      AccountRecord account{absl::StrCat("a", i)};
      if (!accounts.empty() && below(3) > 0) account.parent = accounts[below(accounts.size())].name;
      size_t depth = 0;
      for (const auto* at = account_of(account.parent); at; at = account_of(at->parent)) ++depth;
      if (depth > 8) account.parent = "";
      if (below(3) == 0) account.tenant = absl::StrCat("t", below(tenants));
      accounts.push_back(std::move(account));
    }
    ledger.SetAccounts(
        std::make_shared<const Accounts>(accounts, std::vector<AccountUserRecord>()));
  };
  // The levels that pay, found from the records.
  const auto pays = [&](const Payer& payer) {
    std::set<std::pair<QuotaHolder, std::string>> levels = {{QuotaHolder::kUser, payer.user}};
    std::string tenant;
    if (!payer.account.empty()) levels.insert({QuotaHolder::kAccount, payer.account});
    for (const auto* at = account_of(payer.account); at; at = account_of(at->parent)) {
      levels.insert({QuotaHolder::kAccount, at->name});
      if (tenant.empty()) tenant = at->tenant;
    }
    if (tenant.empty() && payer.partition.value() != 0) tenant = ToString(payer.partition);
    if (!tenant.empty()) levels.insert({QuotaHolder::kTenant, tenant});
    return levels;
  };
  const auto used = [&](const std::pair<QuotaHolder, std::string>& level) {
    int64_t sum = 0;
    for (const Held& one : held) sum += pays(one.payer).contains(level) ? one.trees : 0;
    return sum;
  };
  move_accounts();
  for (int round = 0; round < 10'000; ++round) {
    const size_t what = below(200);
    if (what == 0) move_accounts();
    if (what < 4) {
      const QuotaHolder kind = static_cast<QuotaHolder>(1 + below(3));
      const char* const letters[] = {"", "u", "a", "t"};
      const std::string name = absl::StrCat(letters[static_cast<size_t>(kind)], below(names));
      const bool drop = below(4) == 0;
      const auto limit = static_cast<int64_t>(below(40));
      ledger.SetRow({kind, name, "trees", limit}, drop);
      limits.erase({kind, name});
      if (!drop) limits[{kind, name}] = limit;
    }
    if (held.size() > 60 || (!held.empty() && below(2) == 0)) {
      const size_t i = below(held.size());
      ledger.Give(held[i].payer, Amount(Quota::kTrees, held[i].trees));
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    Held one{{absl::StrCat("u", below(names)), false,
              below(5) == 0 ? "" : absl::StrCat("a", below(names)),
              PartitionNum(static_cast<uint16_t>(below(3)))},
             static_cast<int64_t>(1 + below(9))};
    std::set<std::pair<QuotaHolder, std::string>> full;
    for (const auto& level : pays(one.payer)) {
      const auto limit = limits.find(level);
      if (limit != limits.end() && used(level) + one.trees > limit->second) full.insert(level);
    }
    const absl::Status taken = ledger.Take(one.payer, Amount(Quota::kTrees, one.trees));
    ASSERT_EQ(taken.ok(), full.empty()) << taken;
    if (taken.ok()) held.push_back(one);
    for (const auto& level : pays(one.payer)) {
      ASSERT_EQ(ledger.StandingOf({level.first, level.second})[1].used, used(level))
          << level.second << " in round " << round;
    }
  }
  for (const Held& one : held) ledger.Give(one.payer, Amount(Quota::kTrees, one.trees));
  for (const QuotaHolderName& holder : ledger.Holders()) {
    EXPECT_EQ(ledger.StandingOf(holder)[1].used, 0) << ToString(holder);
  }
}

}  // namespace
}  // namespace coppice::quota_ledger_test
