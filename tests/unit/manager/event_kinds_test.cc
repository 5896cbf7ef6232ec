#include "daemon/manager/event_kinds.h"

#include <fstream>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coppice::event_kinds_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST(EventKindsTest, AreInOrderAndComplete) {
  absl::string_view before;
  for (const EventKind& kind : EventKinds()) {
    EXPECT_LT(before, kind.name);
    before = kind.name;
    EXPECT_NE(kind.name.find('.'), absl::string_view::npos) << kind.name;
    EXPECT_THAT(kind.severity, AnyOf("info", "warning", "error")) << kind.name;
    EXPECT_FALSE(kind.object.empty()) << kind.name;
    EXPECT_FALSE(kind.meaning.empty()) << kind.name;
    EXPECT_EQ(&EventKindOf(kind.name), &kind);
  }
}

TEST(EventKindsTest, AnEventHasItsKindsSeverity) {
  const EventRecord event = EventOf("link.down", absl::FromUnixSeconds(7), "link:1/1-2/1", "words");
  EXPECT_EQ(event.kind, "link.down");
  EXPECT_EQ(event.severity, "warning");
  EXPECT_EQ(event.object, "link:1/1-2/1");
  EXPECT_EQ(event.message, "words");
  EXPECT_EQ(event.time, absl::FromUnixSeconds(7));
}

TEST(EventKindsTest, APrefixThatNoneHasIsRefused) {
  EXPECT_TRUE(CheckKindPrefix("").ok());
  EXPECT_TRUE(CheckKindPrefix("job.").ok());
  EXPECT_TRUE(CheckKindPrefix("trees.rerouted").ok());
  for (const char* const wrong : {"jobs", "tree.", "link.down ", "*"}) {
    const absl::Status status = CheckKindPrefix(wrong);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("\"", wrong, "\"")));
    EXPECT_THAT(std::string(status.message()), HasSubstr("link, node, partitions, placement"));
  }
}

// Copy the rows from here when the table has changed.
TEST(EventKindsTest, TheGuideHasTheTable) {
  std::string table =
      "| kind | severity | object | what happened, and what to do |\n|---|---|---|---|\n";
  for (const EventKind& kind : EventKinds()) {
    absl::StrAppend(&table, "| `", kind.name, "` | ", kind.severity, " | `", kind.object, "` | ",
                    kind.meaning, " |\n");
  }
  absl::StrAppend(&table, "\n");  // no row beyond
  std::ostringstream guide;
  guide << std::ifstream(COPPICE_GUIDE).rdbuf();
  EXPECT_NE(guide.str().find(table), std::string::npos) << "deploy/README.md lacks\n" << table;
}

}  // namespace
}  // namespace coppice::event_kinds_test
