// What a process asks to be held, before and after the daemon has said that the job is its user's.
// Looking at processes takes time on the loop, so nobody gets it for a job that is another's.
#ifndef COPPICE_AGENTS_NODE_HOLD_REQUEST_H_
#define COPPICE_AGENTS_NODE_HOLD_REQUEST_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "agents/node/hold_file.h"
#include "agents/node/local_caller.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

// That one request may name, and that one job may have.
inline constexpr size_t kMostHeldProcesses = 4096;

// Without a look at anything. INVALID_ARGUMENT: `job_id` is not an id as the daemon writes it ("7",
// not "07": one job would be held under many names). RESOURCE_EXHAUSTED: too many processes.
absl::Status CheckHoldRequest(const v1::HoldJobRequest& request);

// The processes as they are now, each once. A checked request. INVALID_ARGUMENT: one is not there,
// or not the caller's. UNAVAILABLE: one cannot be looked at.
absl::StatusOr<HeldJob> MakeHeldJob(const LocalCaller& caller, const v1::HoldJobRequest& request);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_HOLD_REQUEST_H_
