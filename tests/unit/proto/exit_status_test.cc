#include "proto/text/exit_status.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace coppice::exit_status_test {
namespace {

TEST(ExitStatus, TellsTheKindOfError) {
  using enum absl::StatusCode;
  const std::map<int, std::vector<absl::StatusCode>> codes = {
      {1, {kUnknown, kInternal, kUnimplemented, kDataLoss}},
      {2, {kInvalidArgument, kOutOfRange}},
      {3, {kNotFound}},
      {4, {kPermissionDenied, kUnauthenticated}},
      {5, {kCancelled, kUnavailable, kDeadlineExceeded}},
      {6, {kResourceExhausted, kFailedPrecondition, kAlreadyExists, kAborted}}};
  EXPECT_EQ(ExitStatusOf(absl::OkStatus()), 0);
  size_t told = 1;
  for (const auto& [status, alike] : codes) {
    for (const absl::StatusCode code : alike) {
      EXPECT_EQ(ExitStatusOf(absl::Status(code, "")), status) << absl::StatusCodeToString(code);
    }
    told += alike.size();
  }
  EXPECT_EQ(told, 17u) << "all that there are";
}

TEST(ExitStatus, HelpAndGuideHaveTheTable) {
  std::ifstream file(COPPICE_CLIENT_README);
  std::stringstream guide;
  guide << file.rdbuf();
  std::string rows = "| exit status | |\n|---|---|\n";
  int next = 0;
  for (const ExitStatus& one : kExitStatuses) {
    EXPECT_EQ(one.status, next++);
    absl::StrAppend(&rows, "| ", one.status, " | ", one.meaning, " |\n");
    EXPECT_NE(ExitStatusHelp().find(absl::StrCat("\n  ", one.status, "  ")), std::string::npos);
  }
  EXPECT_NE(guide.str().find(rows), std::string::npos) << "client/README.md lacks\n" << rows;
}

TEST(ExitStatus, AnErrorIsShownAsItMayBe) {
  EXPECT_EQ(ErrorLine(absl::NotFoundError("job 7")), "error: job 7 [NOT_FOUND]");
  EXPECT_EQ(ErrorLine(absl::NotFoundError("\033[2J")).find('\033'), std::string::npos);
  EXPECT_EQ(ErrorLine(absl::AbortedError("a\nb")), "error: a\nb [ABORTED]");
}

}  // namespace
}  // namespace coppice::exit_status_test
