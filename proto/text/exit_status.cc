#include "proto/text/exit_status.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/text/plain_text.h"
#include "proto/text/text_table.h"

namespace coppice {

int ExitStatusOf(const absl::Status& status) {
  using Code = absl::StatusCode;
  static constexpr std::pair<Code, int> kStatuses[] = {{Code::kOk, kDone},
                                                       {Code::kInvalidArgument, kWrongUsage},
                                                       {Code::kOutOfRange, kWrongUsage},
                                                       {Code::kNotFound, kNotFound},
                                                       {Code::kPermissionDenied, kNotAllowed},
                                                       {Code::kUnauthenticated, kNotAllowed},
                                                       {Code::kCancelled, kUnreachable},
                                                       {Code::kUnavailable, kUnreachable},
                                                       {Code::kDeadlineExceeded, kUnreachable},
                                                       {Code::kResourceExhausted, kRefused},
                                                       {Code::kFailedPrecondition, kRefused},
                                                       {Code::kAlreadyExists, kRefused},
                                                       {Code::kAborted, kRefused}};
  for (const auto& [code, exit] : kStatuses) {
    if (code == status.code()) return exit;
  }
  return kFailed;
}

std::string ExitStatusHelp() {
  std::string text = "Exit status:";
  for (const ExitStatus& one : kExitStatuses) {
    absl::StrAppend(&text, "\n  ", one.status, "  ", Wrapped(one.meaning, 5));
  }
  return text;
}

std::string ErrorLine(const absl::Status& status) {
  return ShownText(
      absl::StrCat("error: ", status.message(), " [", absl::StatusCodeToString(status.code()), "]"),
      TextLines::kMany);
}

int FailProgram(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", ErrorLine(status).c_str());
  return ExitStatusOf(status) == kWrongUsage ? kWrongUsage : kFailed;
}

std::string UsageError(absl::string_view message) {
  return absl::StrCat(ErrorLine(absl::InvalidArgumentError(message)),
                      "\nRun with --help for more information.\n");
}

}  // namespace coppice
