// What a process asks to be held, as it can be judged without a look at anything. Looking at
// processes (process_looks.h) takes time on the loop, so nobody gets it for a job that is
// another's.
#ifndef COPPICE_AGENTS_NODE_HOLD_REQUEST_H_
#define COPPICE_AGENTS_NODE_HOLD_REQUEST_H_

#include "absl/status/status.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

// INVALID_ARGUMENT: `job_id` is not an id as the daemon writes it ("7",
// not "07": one job would be held under many names). RESOURCE_EXHAUSTED: too many processes.
absl::Status CheckHoldRequest(const v1::HoldJobRequest& request);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_HOLD_REQUEST_H_
