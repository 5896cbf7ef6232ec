#include "proto/text/text_table.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coppice::text_table_test {
namespace {

using ::testing::ElementsAre;

TEST(Wrapped, BreaksAtBlanksAndBehindCommas) {
  EXPECT_EQ(Wrapped("short", 4), "short");
  EXPECT_EQ(Wrapped("twenty letters and a few more of them", 2, 24),
            "twenty letters and a\n  few more of them");
  EXPECT_EQ(Wrapped("n[0001-0002],n[0004-0005],n0007", 2, 27),
            "n[0001-0002],\n  n[0004-0005],n0007");
  // What has no place to break stays whole, and columns are letters, not bytes.
  const std::string whole(50, 'x');
  EXPECT_EQ(Wrapped(whole, 2, 24), whole);
  EXPECT_EQ(Wrapped("ääääääääää ääääääääää", 0, 21), "ääääääääää ääääääääää");
}

TEST(TextTable, NumbersAreToTheRightAndLinesEndWithoutBlanks) {
  TextTable table({"NAME", "COUNT", "NOTE"});
  table.Add({"a", "7", "fine"});
  table.Add({"longer", "-", ""});
  EXPECT_THAT(table.Lines(false),
              ElementsAre("NAME    COUNT  NOTE", "a           7  fine", "longer      -"));
}

TEST(TextTable, LeavesOutWhatOnlyWideShows) {
  const auto lines = [](bool is_wide) {
    TextTable table({"A", "B", "C"}, {1}, is_wide);
    table.Add({"1", "2", "3"});
    return table.Lines(false);
  };
  EXPECT_THAT(lines(false), ElementsAre("A  C", "1  3"));
  EXPECT_THAT(lines(true), ElementsAre("A  B  C", "1  2  3"));
}

TEST(TextTable, GoesOnBelowForPeopleOnly) {
  const std::string note = "a note that has more letters than there are columns on most terminals";
  const auto lines = [&note](bool is_wide, bool is_for_people) {
    TextTable table({"NAME", "NOTE"}, {}, is_wide);
    table.Add({"a name of some letters", note});
    return table.Lines(is_for_people);
  };
  const std::string whole = "a name of some letters  " + note;
  EXPECT_EQ(lines(false, false)[1], whole);
  EXPECT_EQ(lines(true, true)[1], whole);
  EXPECT_EQ(lines(false, true)[1],
            "a name of some letters  a note that has more letters than there are columns on\n"
            "                        most terminals");
}

}  // namespace
}  // namespace coppice::text_table_test
