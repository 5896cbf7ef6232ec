// Looks at many processes of the node, in turns of the loop (event_loop.h).
#ifndef COPPICE_AGENTS_NODE_PROCESS_LOOKS_H_
#define COPPICE_AGENTS_NODE_PROCESS_LOOKS_H_

#include <functional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/node/event_loop.h"
#include "agents/node/hold_file.h"
#include "agents/node/local_limits.h"
#include "agents/node/process_identity.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

// Which of them have gone. Each is looked at once, however often it is named. `done` is called
// once, in the last step, unless `turns` goes first. `is_gone` is asked of each.
void FindGone(std::vector<ProcessIdentity> processes,
              std::function<void(const std::set<ProcessIdentity>& gone)> done, LoopTurns& turns,
              std::function<bool(const ProcessIdentity&)> is_gone = IsGone);

// The job of a checked request (hold_file.h) with the processes as they are now, each once; the
// caller's own if it names none. `done` as above; INVALID_ARGUMENT: a process is not there, or not
// the caller's. UNAVAILABLE: one cannot be looked at.
void FindHeldJob(const LocalCaller& caller, const v1::HoldJobRequest& request,
                 std::function<void(absl::StatusOr<HeldJob>)> done, LoopTurns& turns);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PROCESS_LOOKS_H_
