#include "daemon/rpc/calls/error_details.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/log.h"
#include "daemon/manager/placement/placement_view.h"
#include "daemon/manager/requests.h"
#include "google/rpc/error_details.pb.h"
#include "proto/status_conversion.h"

namespace coppice {
namespace {

constexpr int kRetrySeconds = 1;

void AddRetryInfo(absl::Status& status) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(kRetrySeconds);
  SetDetail(status, retry);
}

// Lines "GUID LIMIT USED DESCRIPTION".
void AddQuotaFailure(absl::Status& status) {
  const auto payload = status.GetPayload(kFullSwitchesPayload);
  if (!payload) return;
  google::rpc::QuotaFailure quota;
  const std::string lines(*payload);
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 3));
    if (parts.size() < 3) continue;
    google::rpc::QuotaFailure::Violation& violation = *quota.add_violations();
    violation.set_subject(absl::StrCat("switch:", parts[0]));
    violation.set_description(absl::StrCat(parts.size() > 3 ? parts[3] : parts[0], ": ", parts[2],
                                           " of ", parts[1], " entries are taken"));
  }
  SetDetail(status, quota);
}

// Lines "SUBJECT DESCRIPTION".
void AddHolders(absl::Status& status) {
  const auto payload = status.GetPayload(kHoldersPayload);
  if (!payload) return;
  google::rpc::QuotaFailure quota;
  const std::string lines(*payload);
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    google::rpc::QuotaFailure::Violation& violation = *quota.add_violations();
    violation.set_subject(std::string(parts[0]));
    if (parts.size() > 1) violation.set_description(std::string(parts[1]));
  }
  SetDetail(status, quota);
}

void AddPreconditionFailure(absl::Status& status, absl::string_view object) {
  google::rpc::PreconditionFailure failure;
  google::rpc::PreconditionFailure::Violation& violation = *failure.add_violations();
  violation.set_type("STATE");
  violation.set_subject(std::string(object));
  violation.set_description(std::string(status.message()));
  SetDetail(status, failure);
}

void AddErrorInfo(absl::Status& status, absl::string_view object) {
  google::rpc::ErrorInfo info;
  info.set_reason("FABRIC_MOVED");
  info.set_domain("coppice");
  (*info.mutable_metadata())["object"] = std::string(object);
  SetDetail(status, info);
}

template <class Message>
bool Has(const absl::Status& status) {
  return GetDetail<Message>(status).has_value();
}

}  // namespace

grpc::Status ToWire(absl::Status status, absl::string_view object) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return grpc::Status::OK;
    case absl::StatusCode::kUnavailable:
      if (!Has<google::rpc::RetryInfo>(status)) AddRetryInfo(status);
      break;
    case absl::StatusCode::kResourceExhausted:
      if (!Has<google::rpc::QuotaFailure>(status)) AddQuotaFailure(status);
      if (!Has<google::rpc::QuotaFailure>(status)) AddHolders(status);
      break;
    case absl::StatusCode::kFailedPrecondition:
      if (!Has<google::rpc::PreconditionFailure>(status)) AddPreconditionFailure(status, object);
      break;
    case absl::StatusCode::kAborted:
      if (!Has<google::rpc::ErrorInfo>(status)) AddErrorInfo(status, object);
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

absl::Status NoFabricYet() {
  return absl::UnavailableError(
      "fabric: none is known yet, the first sweep has not succeeded; call again, or see the "
      "daemon's log for why the sweep fails");
}

absl::Status ShuttingDown(absl::string_view how_to_go_on) {
  return absl::UnavailableError(absl::StrCat("daemon: it is shutting down; ", how_to_go_on));
}

}  // namespace coppice
