// Communication patterns in the store: parts first, then the whole in one step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/db/store_records.h"

namespace coppice::store_patterns_test {
namespace {

using absl::StatusCode;
using testing::ElementsAre;

PatternRecord Record(int64_t id, std::string name) {
  PatternRecord record;
  record.id = id;
  record.name = std::move(name);
  record.owner = "mpi";
  record.rank_count = 4;
  record.pair_count = 3;
  record.total_bytes = 1e12;
  record.total_messages = 2.5;
  record.created = At(17);
  record.stored_bytes = 6;
  return record;
}

class StorePatternsTest : public StoreTest {
 protected:
  void PutWhole(const PatternRecord& record, const std::string& data) {
    ASSERT_APPLIED(store_->Apply(PutPatternPart{record.id, 0, data}));
    ASSERT_APPLIED(store_->Apply(PutPattern{record, 1}));
  }
};

TEST_F(StorePatternsTest, AreThereWithTheirPartsInOrder) {
  Store& store = *store_;
  const std::string zeros(3, '\0');
  ASSERT_APPLIED(store.Apply(PutPatternPart{1, 1, "def"}));
  ASSERT_APPLIED(store.Apply(PutPatternPart{1, 0, zeros}));
  EXPECT_TRUE(store.Patterns()->empty());
  EXPECT_EQ(store.PatternData(1).status().code(), StatusCode::kNotFound);
  const PatternRecord record = Record(1, "lammps");
  ASSERT_APPLIED(store.Apply(PutPattern{record, 2}));
  EXPECT_THAT(*store.Patterns(), ElementsAre(record));
  EXPECT_EQ(*store.PatternData(1), zeros + "def");
  ASSERT_APPLIED(store.Apply(DropPattern{"lammps", "mpi"}));
  EXPECT_TRUE(store.Patterns()->empty());
  EXPECT_EQ(store.PatternData(1).status().code(), StatusCode::kNotFound);
  EXPECT_STATUS(store.Apply(DropPattern{"lammps", "mpi"}), StatusCode::kNotFound, "lammps");
}

TEST_F(StorePatternsTest, TakeThePlaceOfThatName) {
  Store& store = *store_;
  PutWhole(Record(1, "lammps"), "old");
  PutWhole(Record(2, "foam"), "other");
  PutWhole(Record(3, "lammps"), "new");
  EXPECT_THAT(*store.Patterns(), ElementsAre(Record(2, "foam"), Record(3, "lammps")));
  EXPECT_EQ(*store.PatternData(3), "new");
  EXPECT_EQ(*store.PatternData(2), "other");
  EXPECT_EQ(store.PatternData(1).status().code(), StatusCode::kNotFound);
}

TEST_F(StorePatternsTest, RefuseWhatIsNotWhole) {
  Store& store = *store_;
  EXPECT_STATUS(store.Apply(PutPattern{Record(1, "a"), 1}), StatusCode::kFailedPrecondition,
                "parts");
  ASSERT_APPLIED(store.Apply(PutPatternPart{1, 1, "x"}));
  EXPECT_STATUS(store.Apply(PutPattern{Record(1, "a"), 1}), StatusCode::kFailedPrecondition,
                "parts");
  EXPECT_STATUS(store.Apply(PutPatternPart{1, 1, "y"}), StatusCode::kAlreadyExists, "part 1");
  ASSERT_APPLIED(store.Apply(PutPatternPart{1, 0, "w"}));
  ASSERT_APPLIED(store.Apply(PutPattern{Record(1, "a"), 2}));
  EXPECT_STATUS(store.Apply(PutPatternPart{1, 2, "z"}), StatusCode::kAlreadyExists, "pattern 1");
  EXPECT_STATUS(store.Apply(PutPattern{Record(1, "b"), 2}), StatusCode::kAlreadyExists,
                "pattern 1");
  EXPECT_EQ(*store.PatternData(1), "wx");
}

TEST_F(StorePatternsTest, LeaveNoPartsIfTheyDoNotCome) {
  Store& store = *store_;
  PutWhole(Record(1, "a"), "first");
  ASSERT_APPLIED(store.Apply(PutPatternPart{2, 0, "x"}));
  ASSERT_APPLIED(store.Apply(PutPatternPart{3, 0, "y"}));
  ASSERT_APPLIED(store.Apply(DropPatternParts{2}));
  EXPECT_STATUS(store.Apply(PutPattern{Record(2, "b"), 1}), StatusCode::kFailedPrecondition,
                "parts");
  ASSERT_APPLIED(store.Apply(PutPattern{Record(3, "c"), 1}));
  EXPECT_STATUS(store.Apply(DropPatternParts{3}), StatusCode::kAlreadyExists, "pattern 3");
  EXPECT_EQ(*store.PatternData(3), "y");
  EXPECT_EQ(*store.PatternData(1), "first");
  ASSERT_APPLIED(store.Apply(DropPatternParts{77}));  // none
}

TEST_F(StorePatternsTest, RefuseRecordsThatNobodyCanKeep) {
  Store& store = *store_;
  EXPECT_STATUS(store.Apply(PutPatternPart{0, 0, "x"}), StatusCode::kInvalidArgument, "pattern 0");
  EXPECT_STATUS(store.Apply(PutPattern{Record(0, "a"), 0}), StatusCode::kInvalidArgument, "ids");
  EXPECT_STATUS(store.Apply(PutPattern{Record(1, ""), 0}), StatusCode::kInvalidArgument, "name");
  PatternRecord negative = Record(1, "a");
  negative.total_bytes = -1;
  EXPECT_STATUS(store.Apply(PutPattern{negative, 0}), StatusCode::kInvalidArgument, "total");
}

}  // namespace
}  // namespace coppice::store_patterns_test
