#include "daemon/manager/mapping/pattern_shelf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "db/memory_store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/passing_store.h"

namespace coppice {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

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

class PatternShelfTest : public ::testing::Test {
 protected:
  std::unique_ptr<PatternShelf> Open(uint64_t bytes = 1 << 20) {
    return PatternShelf::Create(&store_, &clock_, bytes).value();
  }
  MemoryStore memory_;
  FullStore store_{&memory_};
  ManualClock clock_;
};

TEST_F(PatternShelfTest, KeepsPatternsOverARestart) {
  const auto big = Ring(100'000);  // several parts
  {
    const auto shelf = Open(10 << 20);
    const auto record = shelf->Put("lammps/melt", "mpi", *big, Anybody);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_GT(record->stored_bytes, 512u << 10);
    ASSERT_TRUE(shelf->Put("foam", "mpi", *Ring(3), Anybody).ok());
  }
  const auto shelf = Open();
  EXPECT_EQ(shelf->List("", 10).size(), 2u);
  EXPECT_EQ(shelf->List("foam", 10).size(), 1u);
  EXPECT_EQ(shelf->Get("lammps/melt")->rank_count, 100'000u);
  EXPECT_EQ((*shelf->Load("lammps/melt"))->total_bytes(), 50'000);
  ASSERT_TRUE(shelf->Delete("foam", Anybody).ok());
  EXPECT_EQ(shelf->Load("foam").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(shelf->Delete("foam", Anybody).code(), StatusCode::kNotFound);
}

TEST_F(PatternShelfTest, ReplacesByNameIfAllowed) {
  const auto shelf = Open();
  ASSERT_TRUE(shelf->Put("a", "mpi", *Ring(3), Anybody).ok());
  const auto nobody = [](const PatternRecord& record) {
    return absl::PermissionDeniedError(record.owner);
  };
  EXPECT_EQ(shelf->Put("a", "eve", *Ring(4), nobody).status().code(),
            StatusCode::kPermissionDenied);
  EXPECT_EQ(shelf->Delete("a", nobody).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(shelf->Get("a")->rank_count, 3u);
  ASSERT_TRUE(shelf->Put("a", "mpi", *Ring(5), Anybody).ok());
  EXPECT_EQ((*shelf->Load("a"))->rank_count(), 5u);
  EXPECT_EQ(shelf->List("", 10).size(), 1u);
}

TEST_F(PatternShelfTest, RefusesNamesAndSizes) {
  const auto shelf = Open(6000);
  for (const char* name : {"", "a b", "\xff", "a;b"}) {
    EXPECT_EQ(shelf->Put(name, "mpi", *Ring(3), Anybody).status().code(),
              StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(CheckPatternName(std::string(129, 'a')).ok());
  ASSERT_TRUE(shelf->Put("a", "mpi", *Ring(100), Anybody).ok());
  const absl::Status full = shelf->Put("b", "mpi", *Ring(100), Anybody).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("pattern b"));
  // What takes the place of a pattern needs no room beside it.
  EXPECT_TRUE(shelf->Put("a", "mpi", *Ring(120), Anybody).ok());
}

TEST_F(PatternShelfTest, CountsSmallPatternsAsWhatTheyTakeInTheDatabase) {
  const auto shelf = Open(5 * 4096);
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    ASSERT_TRUE(shelf->Put(name, "mpi", *Ring(2), Anybody).ok());
  }
  EXPECT_EQ(shelf->Put("f", "mpi", *Ring(2), Anybody).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(shelf->Put("e", "mpi", *Ring(3), Anybody).ok());
  ASSERT_TRUE(shelf->Delete("a", Anybody).ok());
  EXPECT_TRUE(shelf->Put("f", "mpi", *Ring(2), Anybody).ok());
}

TEST_F(PatternShelfTest, LeavesNoPartsOfWhatFailed) {
  const auto shelf = Open(4 << 20);
  store_.full = true;
  EXPECT_FALSE(shelf->Put("a", "mpi", *Ring(100'000), Anybody).ok());
  EXPECT_TRUE(store_.unfinished.empty());
  // A store that takes nothing drops nothing: before the next pattern then.
  store_.stuck = true;
  EXPECT_FALSE(shelf->Put("a", "mpi", *Ring(3), Anybody).ok());
  EXPECT_EQ(store_.unfinished.size(), 1u);
  EXPECT_FALSE(shelf->Put("b", "mpi", *Ring(3), Anybody).ok());
  EXPECT_EQ(store_.unfinished.size(), 1u);
  store_.full = store_.stuck = false;
  EXPECT_TRUE(shelf->Put("c", "mpi", *Ring(3), Anybody).ok());
  EXPECT_TRUE(store_.unfinished.empty());
  EXPECT_EQ(shelf->List("", 10).size(), 1u);
}

TEST_F(PatternShelfTest, KeepsWhatCameAlthoughItWasToldAsFailed) {
  const auto shelf = Open();
  store_.full = store_.late = true;
  EXPECT_FALSE(shelf->Put("a", "mpi", *Ring(3), Anybody).ok());
  store_.full = false;
  EXPECT_EQ((*shelf->Load("a"))->rank_count(), 3u);
  ASSERT_TRUE(shelf->Put("a", "mpi", *Ring(4), Anybody).ok());
  EXPECT_EQ((*shelf->Load("a"))->rank_count(), 4u);
}

TEST_F(PatternShelfTest, LosesNothingToAFullDisk) {
  const auto shelf = Open();
  ASSERT_TRUE(shelf->Put("a", "mpi", *Ring(3), Anybody).ok());
  store_.full = true;
  EXPECT_EQ(shelf->Put("a", "mpi", *Ring(4), Anybody).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ((*shelf->Load("a"))->rank_count(), 3u);
  store_.full = false;
  ASSERT_TRUE(shelf->Put("a", "mpi", *Ring(4), Anybody).ok());
  EXPECT_EQ((*shelf->Load("a"))->rank_count(), 4u);
}

}  // namespace
}  // namespace coppice
