#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "daemon/manager/ledgers.h"
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
  return ledger.StandingOf(user)[static_cast<size_t>(quota)];
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
                  {QuotaHolder::kTenant, "ada", "jobs", 0}});
  EXPECT_TRUE(ledger.Take({"ada"}, Amount(Quota::kTrees, 5)).ok());
  EXPECT_TRUE(ledger.Take({"ada"}, Amount(Quota::kJobs, 5)).ok()) << "tenants are none yet";
  EXPECT_TRUE(ledger.CheckLease({"ada"}, absl::Hours(9), "lease").ok());
  const absl::Status refused = ledger.CheckLease({"eve"}, absl::Hours(9), "term");
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("term: 9h is longer than the 1m that eve"));
  EXPECT_EQ(HoldersOf(refused), "user:eve 9h of 1m (quota lease_seconds)");
  EXPECT_TRUE(ledger.CheckLease({"eve", true}, absl::Hours(9), "lease").ok());
  ledger.SetRow({QuotaHolder::kUser, "ada", "trees", 0}, /*drop=*/true);
  EXPECT_EQ(StandingOf(ledger, "ada", Quota::kTrees).limit, 3);
  EXPECT_FALSE(ledger.Take({"ada"}, Amount(Quota::kTrees, 1)).ok());
  EXPECT_THAT(ledger.Users(), ::testing::ElementsAre("ada"));
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
    QuotaAccount account;
    QuotaAmounts amounts;
  };
  std::vector<Held> held;
  const auto sum = [&](const std::string& user, Quota quota, bool ordinary_only) {
    int64_t total = 0;
    for (const Held& one : held) {
      if (!user.empty() && one.account.user != user) continue;
      if (!ordinary_only || !one.account.is_exempt) total += one.amounts[quota];
    }
    return total;
  };
  for (int round = 0; round < 20'000; ++round) {
    if (!held.empty() && random() % 2 == 0) {
      const size_t i = random() % held.size();
      ledger.Give(held[i].account, held[i].amounts);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      Held one{{std::string(1, static_cast<char>('a' + random() % 6)), random() % 5 == 0}, {}};
      one.amounts[Quota::kTrees] = static_cast<int64_t>(random() % 12);
      one.amounts[Quota::kNodes] = static_cast<int64_t>(random() % 12);
      if (ledger.Take(one.account, one.amounts).ok()) {
        held.push_back(one);
      } else {
        EXPECT_FALSE(one.account.is_exempt);
        const auto over = [&](Quota quota, int64_t limit, int64_t all) {
          const std::string& user = one.account.user;
          int64_t own = 0;
          for (const Held& h : held) {
            if (h.account.user == user && !h.account.is_exempt) own += h.amounts[quota];
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

}  // namespace
}  // namespace coppice::quota_ledger_test
