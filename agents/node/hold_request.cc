#include "agents/node/hold_request.h"

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agents/node/hold_limits.h"

namespace coppice {
namespace {

constexpr size_t kQuotedBytes = 64;  // of a bad id, in a message

}  // namespace

absl::Status CheckHoldRequest(const v1::HoldJobRequest& request) {
  const std::string& id = request.job_id();
  int64_t number = 0;
  if (!absl::SimpleAtoi(id, &number) || number < 1 || absl::StrCat(number) != id) {
    return absl::InvalidArgumentError(absl::StrCat("job_id: \"", id.substr(0, kQuotedBytes),
                                                   "\" is no id of a job; give it as the daemon "
                                                   "answered it"));
  }
  if (static_cast<size_t>(request.processes_size()) > kMostHeldProcesses) {
    return absl::ResourceExhaustedError(
        absl::StrCat("job ", id, ": names more than ", kMostHeldProcesses, " processes"));
  }
  return absl::OkStatus();
}

}  // namespace coppice
