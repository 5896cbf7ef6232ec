#include "daemon/manager/mapping/pattern_shelf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// Refuses what makes a pattern visible, as a disk does that has just become full.
class FullStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  void Submit(Mutation mutation, Done done) override {
    if (!full || !std::holds_alternative<PutPattern>(mutation)) {
      return PassingStore::Submit(std::move(mutation), std::move(done));
    }
    done(absl::ResourceExhaustedError("disk full"));
  }
  bool full = false;
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
  const auto shelf = Open(2000);
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
