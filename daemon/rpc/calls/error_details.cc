#include "daemon/rpc/calls/error_details.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/manager/placement/placement_view.h"
#include "daemon/manager/requests.h"
#include "google/rpc/error_details.pb.h"
#include "proto/status_conversion.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

constexpr int kRetrySeconds = 1;

template <class Message>
void AddUnlessThere(absl::Status& status, const Message& message) {
  if (!GetDetail<Message>(status).has_value()) SetDetail(status, message);
}

// Of each line of the payload `tell` makes a violation: of its parts, which blanks end, but for the
// last, of which there are so many at most.
template <class Tell>
void AddQuotaFailure(absl::Status& status, absl::string_view key, int most_parts, Tell tell) {
  const auto payload = status.GetPayload(key);
  if (!payload) return;
  google::rpc::QuotaFailure quota;
  const std::string lines(*payload);
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', most_parts - 1));
    parts.resize(static_cast<size_t>(most_parts));
    tell(parts, *quota.add_violations());
  }
  AddUnlessThere(status, quota);
}

void AddQuotaFailures(absl::Status& status) {
  using Violation = google::rpc::QuotaFailure::Violation;
  using Parts = std::vector<std::string>;
  // GUID LIMIT USED DESCRIPTION
  AddQuotaFailure(status, kFullSwitchesPayload, 4, [](const Parts& parts, Violation& violation) {
    violation.set_subject(absl::StrCat("switch:", parts[0]));
    violation.set_description(absl::StrCat(parts[3].empty() ? parts[0] : parts[3], ": ", parts[2],
                                           " of ", parts[1], " entries are taken"));
  });
  // SUBJECT DESCRIPTION
  AddQuotaFailure(status, kHoldersPayload, 2, [](const Parts& parts, Violation& violation) {
    violation.set_subject(parts[0]);
    violation.set_description(parts[1]);
  });
}

void AddPreconditionFailure(absl::Status& status, absl::string_view object) {
  google::rpc::PreconditionFailure failure;
  google::rpc::PreconditionFailure::Violation& violation = *failure.add_violations();
  violation.set_type("STATE");
  violation.set_subject(std::string(object));
  violation.set_description(std::string(status.message()));
  AddUnlessThere(status, failure);
}

void AddErrorInfo(absl::Status& status, absl::string_view object) {
  google::rpc::ErrorInfo info;
  info.set_reason("FABRIC_MOVED");
  info.set_domain("coppice");
  (*info.mutable_metadata())["object"] = std::string(object);
  AddUnlessThere(status, info);
}

}  // namespace

absl::Status WithRetry(absl::Status status) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(kRetrySeconds);
  if (!status.ok()) AddUnlessThere(status, retry);
  return status;
}

grpc::Status ToWire(absl::Status status, absl::string_view object) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return grpc::Status::OK;
    case absl::StatusCode::kUnavailable:
      status = WithRetry(std::move(status));
      break;
    case absl::StatusCode::kResourceExhausted:
      AddQuotaFailures(status);
      break;
    case absl::StatusCode::kFailedPrecondition:
      AddPreconditionFailure(status, object);
      break;
    case absl::StatusCode::kAborted:
      AddErrorInfo(status, object);
      break;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      spdlog::error("call about {}: {}", std::string(object), status.ToString());
      break;
    default:
      break;
  }
  return ToGrpcStatus(status);
}

}  // namespace coppice
