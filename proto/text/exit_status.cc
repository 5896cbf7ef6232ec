#include "proto/text/exit_status.h"

#include "absl/strings/str_cat.h"
#include "proto/text/plain_text.h"
#include "proto/text/text_table.h"

namespace coppice {

int ExitStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return kWrongUsage;
    case absl::StatusCode::kNotFound:
      return kNotFound;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kNotAllowed;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kUnreachable;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return kRefused;
    default:
      return kFailed;
  }
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

std::string UsageError(absl::string_view message) {
  return absl::StrCat(ErrorLine(absl::InvalidArgumentError(message)),
                      "\nRun with --help for more information.\n");
}

}  // namespace coppice
