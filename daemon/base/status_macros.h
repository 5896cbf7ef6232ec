// The two macros that pass an error on, and a builder for messages that gain context on the way up.
// Strings are absl::string_view throughout: Debian builds Abseil with its own type, to which
// std::string_view does not convert.
#ifndef COPPICE_DAEMON_BASE_STATUS_MACROS_H_
#define COPPICE_DAEMON_BASE_STATUS_MACROS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#define COPPICE_CONCAT_INNER_(a, b) a##b
#define COPPICE_CONCAT_(a, b) COPPICE_CONCAT_INNER_(a, b)

// Returns from the enclosing function if `expression` is an error.
#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (absl::Status coppice_status_ = (expression); !coppice_status_.ok()) \
      return coppice_status_;                                               \
  } while (false)

// Binds the value of a StatusOr to `lhs`, or returns its error.
#define ASSIGN_OR_RETURN(lhs, expression) \
  ASSIGN_OR_RETURN_IMPL_(COPPICE_CONCAT_(coppice_status_or_, __LINE__), lhs, expression)
#define ASSIGN_OR_RETURN_IMPL_(temporary, lhs, expression)   \
  auto temporary = (expression);                             \
  if (!temporary.ok()) return std::move(temporary).status(); \
  lhs = std::move(temporary).value()

namespace coppice {

// `status` with "context: " before its message; payloads are kept. OK stays OK.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_STATUS_MACROS_H_
