#include "daemon/manager/mapping/pattern_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/manual_clock.h"
#include "tests/support/passing_store.h"
#include "tests/support/scratch_store.h"

namespace coppice::pattern_store_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

Actor User(std::string name, bool is_administrator = false) {
  Actor actor;
  actor.user = std::move(name);
  actor.is_administrator = is_administrator;
  return actor;
}
const Actor kMpi = User("mpi");

absl::Status Anybody(const PatternRecord&) { return absl::OkStatus(); }

std::shared_ptr<const Pattern> Ring(uint32_t ranks) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t rank = 0; rank < ranks; ++rank) entries.push_back({rank, (rank + 1) % ranks, 0.5});
  return Pattern::Make(ranks, std::move(entries)).value();
}

// Refuses what makes a pattern visible, as a disk does that has just become full. Remembers of
// which patterns there are parts that do not belong to any.
class FullStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  void Submit(Mutation mutation, Done done) override {
    const auto* const drop = std::get_if<DropPatternParts>(&mutation);
    const auto* const whole = std::get_if<PutPattern>(&mutation);
    if ((full && whole != nullptr) || (stuck && drop != nullptr)) {
      if (late) PassingStore::Submit(std::move(mutation), [](const absl::Status&) {});
      return done(absl::ResourceExhaustedError("disk full"));
    }
    if (const auto* const part = std::get_if<PutPatternPart>(&mutation)) {
      unfinished.insert(part->pattern);
    }
    if (drop != nullptr) unfinished.erase(drop->pattern);
    if (whole != nullptr) unfinished.erase(whole->pattern.id);
    PassingStore::Submit(std::move(mutation), std::move(done));
  }
  bool full = false;
  bool stuck = false;  // nothing is dropped, either
  bool late = false;   // what is told as failed has been done
  std::set<int64_t> unfinished;
};

class PatternStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<PatternStore> Open(uint64_t bytes = 1 << 20) {
    return PatternStore::Create(&store_, &clock_, bytes, &quotas_).value();
  }
  MemoryBudget budget_{1 << 30};
  ScratchStore kept_;
  FullStore store_{&kept_};
  ManualClock clock_;
  QuotaLedger quotas_;
};

TEST_F(PatternStoreTest, KeepsPatternsOverARestart) {
  const auto big = Ring(100'000);  // several parts
  {
    const auto pattern_store = Open(10 << 20);
    const auto record = pattern_store->Put("lammps/melt", kMpi, *big);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_GT(record->stored_bytes, 512u << 10);
    ASSERT_TRUE(pattern_store->Put("foam", kMpi, *Ring(3)).ok());
  }
  const auto pattern_store = Open();
  EXPECT_EQ(pattern_store->List("", 10).size(), 2u);
  EXPECT_EQ(pattern_store->List("foam", 10).size(), 1u);
  EXPECT_EQ(pattern_store->Get("lammps/melt", "mpi")->rank_count, 100'000u);
  EXPECT_EQ((*pattern_store->Load("lammps/melt", "mpi", budget_))->total_bytes(), 50'000);
  ASSERT_TRUE(pattern_store->Delete("foam", kMpi, Anybody).ok());
  EXPECT_EQ(pattern_store->Load("foam", "mpi", budget_).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(pattern_store->Delete("foam", kMpi, Anybody).code(), StatusCode::kNotFound);
}

TEST_F(PatternStoreTest, ReplacesItsOwnersOfThatName) {
  const auto pattern_store = Open();
  ASSERT_TRUE(pattern_store->Put("a", kMpi, *Ring(3)).ok());
  const auto nobody = [](const PatternRecord& record) {
    return absl::PermissionDeniedError(record.owner);
  };
  EXPECT_EQ(pattern_store->Delete("a", kMpi, nobody).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(pattern_store->Get("a", "mpi")->rank_count, 3u);
  ASSERT_TRUE(pattern_store->Put("a", kMpi, *Ring(5)).ok());
  EXPECT_EQ((*pattern_store->Load("a", "mpi", budget_))->rank_count(), 5u);
  EXPECT_EQ(pattern_store->List("", 10).size(), 1u);
}

// A stranger who takes a name first steers nobody else's placements.
TEST_F(PatternStoreTest, NamesAreTheirOwnersAndAdministratorsAreEverybodys) {
  const Actor eve = User("eve"), ops = User("ops", true), root = User("root", true);
  for (const bool again : {false, true}) {
    const auto pattern_store = Open();
    if (!again) {
      ASSERT_TRUE(pattern_store->Put("lammps/melt", eve, *Ring(3)).ok());
    }
    EXPECT_EQ(pattern_store->Get("lammps/melt", "ada").status().code(),
              again ? StatusCode::kOk : StatusCode::kNotFound);
    EXPECT_EQ(pattern_store->Get("eve:lammps/melt", "ada")->rank_count, 3u);
    if (!again) {
      ASSERT_TRUE(pattern_store->Put("lammps/melt", ops, *Ring(4)).ok());
    }
    EXPECT_EQ(pattern_store->Get("lammps/melt", "eve")->rank_count, 3u);
    EXPECT_EQ(pattern_store->Get("lammps/melt", "ada")->rank_count, again ? 5u : 4u);
    // Administrators share their names, and replace each other's.
    if (!again) {
      ASSERT_TRUE(pattern_store->Put("lammps/melt", root, *Ring(5)).ok());
    }
    EXPECT_EQ(pattern_store->Get("root:lammps/melt", "eve")->rank_count, 5u);
    EXPECT_EQ(pattern_store->Get("ops:lammps/melt", "eve").status().code(), StatusCode::kNotFound);
    const auto page = pattern_store->List("", 1);
    ASSERT_EQ(page.size(), 1u);
    EXPECT_EQ(page[0].owner, "eve");
    const auto rest = pattern_store->List(PatternStore::TokenOf(page[0]), 10);
    ASSERT_EQ(rest.size(), 1u);
    EXPECT_EQ(rest[0].owner, "root");
    EXPECT_TRUE(pattern_store->List(PatternStore::TokenOf(rest[0]), 10).empty());
  }
  const auto pattern_store = Open();
  ASSERT_TRUE(pattern_store->Delete("eve:lammps/melt", root, Anybody).ok());
  EXPECT_EQ(pattern_store->Get("lammps/melt", "eve")->rank_count, 5u);
  EXPECT_EQ(
      quotas_.StandingOf({QuotaHolder::kUser, "eve"})[static_cast<size_t>(Quota::kPatternBytes)]
          .used,
      2 * 4096)
      << "of two shelves that were opened and are gone";
}

TEST_F(PatternStoreTest, QuotaOfOneUserAndWhatIsLeftToAdministrators) {
  QuotaOptions options;
  options[Quota::kPatternBytes] = {40, true};
  options.left_to_administrators = 20;
  quotas_.Configure(options);
  const auto pattern_store = Open(10 * 4096);
  const auto put = [&](const char* name, const Actor& actor) {
    return pattern_store->Put(name, actor, *Ring(3)).status();
  };
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(put(name, kMpi).ok());
  const absl::Status over = put("e", kMpi);
  EXPECT_EQ(over.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(over.message()), HasSubstr("mpi holds 16384 bytes of patterns of the "
                                                     "16384 that one user may have"));
  EXPECT_TRUE(put("d", kMpi).ok()) << "in place of one of the same size";
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(put(name, User("ada")).ok());
  const absl::Status left = put("a", User("bob"));
  EXPECT_EQ(left.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(left.message()), HasSubstr("20% are left to administrators"));
  EXPECT_TRUE(put("x", User("root", true)).ok());
  ASSERT_TRUE(pattern_store->Delete("a", kMpi, Anybody).ok());
  EXPECT_TRUE(put("a", User("bob")).ok());
}

TEST_F(PatternStoreTest, RefusesNamesAndSizes) {
  const auto pattern_store = Open(6000);
  for (const char* name : {"", "a b", "\xff", "a;b", "../a", "a/../b", "..", ".", "-rf", "/etc/x",
                           "a/", "a//b", "a/-b", "a\x1b[2J"}) {
    EXPECT_EQ(pattern_store->Put(name, kMpi, *Ring(3)).status().code(),
              StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(CheckPatternName(std::string(129, 'a')).ok());
  for (const char* name : {"lammps/melt", "a..b", "run-1", ".hidden", "a@b/c+d_e"}) {
    EXPECT_TRUE(CheckPatternName(name).ok()) << name;
  }
  ASSERT_TRUE(pattern_store->Put("a", kMpi, *Ring(100)).ok());
  const absl::Status full = pattern_store->Put("b", kMpi, *Ring(100)).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("pattern b"));
  // What takes the place of a pattern needs no room beside it.
  EXPECT_TRUE(pattern_store->Put("a", kMpi, *Ring(120)).ok());
}

TEST_F(PatternStoreTest, CountsSmallPatternsAsWhatTheyTakeInTheDatabase) {
  const auto pattern_store = Open(5 * 4096);
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    ASSERT_TRUE(pattern_store->Put(name, kMpi, *Ring(2)).ok());
  }
  EXPECT_EQ(pattern_store->Put("f", kMpi, *Ring(2)).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(pattern_store->Put("e", kMpi, *Ring(3)).ok());
  ASSERT_TRUE(pattern_store->Delete("a", kMpi, Anybody).ok());
  EXPECT_TRUE(pattern_store->Put("f", kMpi, *Ring(2)).ok());
}

TEST_F(PatternStoreTest, LeavesNoPartsOfWhatFailed) {
  const auto pattern_store = Open(4 << 20);
  store_.full = true;
  EXPECT_FALSE(pattern_store->Put("a", kMpi, *Ring(100'000)).ok());
  EXPECT_TRUE(store_.unfinished.empty());
  // A store that takes nothing drops nothing: before the next pattern then.
  store_.stuck = true;
  EXPECT_FALSE(pattern_store->Put("a", kMpi, *Ring(3)).ok());
  EXPECT_EQ(store_.unfinished.size(), 1u);
  EXPECT_FALSE(pattern_store->Put("b", kMpi, *Ring(3)).ok());
  EXPECT_EQ(store_.unfinished.size(), 1u);
  store_.full = store_.stuck = false;
  EXPECT_TRUE(pattern_store->Put("c", kMpi, *Ring(3)).ok());
  EXPECT_TRUE(store_.unfinished.empty());
  EXPECT_EQ(pattern_store->List("", 10).size(), 1u);
}

// A small request may name a pattern of any size.
TEST_F(PatternStoreTest, WhatIsLoadedCountsAsLongAsSomebodyHasIt) {
  const auto pattern_store = Open();
  ASSERT_TRUE(pattern_store->Put("a", kMpi, *Ring(1000)).ok());
  std::shared_ptr<const Pattern> loaded = *pattern_store->Load("a", "mpi", budget_);
  EXPECT_EQ(budget_.taken(), loaded->MemoryBytes());
  const std::shared_ptr<const Pattern> copy = loaded;
  loaded.reset();
  EXPECT_GT(budget_.taken(), 0u);
  loaded = *pattern_store->Load("a", "mpi", budget_);
  EXPECT_EQ(budget_.taken(), 2 * copy->MemoryBytes());
  MemoryBudget small(copy->MemoryBytes());  // not enough to make it
  EXPECT_EQ(pattern_store->Load("a", "mpi", small).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(small.taken(), 0u);
}

TEST_F(PatternStoreTest, KeepsWhatCameAlthoughItWasToldAsFailed) {
  const auto pattern_store = Open();
  store_.full = store_.late = true;
  EXPECT_FALSE(pattern_store->Put("a", kMpi, *Ring(3)).ok());
  store_.full = false;
  EXPECT_EQ((*pattern_store->Load("a", "mpi", budget_))->rank_count(), 3u);
  ASSERT_TRUE(pattern_store->Put("a", kMpi, *Ring(4)).ok());
  EXPECT_EQ((*pattern_store->Load("a", "mpi", budget_))->rank_count(), 4u);
}

TEST_F(PatternStoreTest, LosesNothingToAFullDisk) {
  const auto pattern_store = Open();
  ASSERT_TRUE(pattern_store->Put("a", kMpi, *Ring(3)).ok());
  store_.full = true;
  EXPECT_EQ(pattern_store->Put("a", kMpi, *Ring(4)).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ((*pattern_store->Load("a", "mpi", budget_))->rank_count(), 3u);
  store_.full = false;
  ASSERT_TRUE(pattern_store->Put("a", kMpi, *Ring(4)).ok());
  EXPECT_EQ((*pattern_store->Load("a", "mpi", budget_))->rank_count(), 4u);
}

}  // namespace
}  // namespace coppice::pattern_store_test
