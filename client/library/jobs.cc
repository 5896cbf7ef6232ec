// Jobs, of coppice.h.
#include "client/library/client.h"

namespace coppice {
namespace {

constexpr char kEnd[] = "/coppice.v1.Jobs/EndJob";
constexpr char kHold[] = "/coppice.v1.Local/HoldJob";
constexpr char kRegister[] = "/coppice.v1.Jobs/RegisterJob";

Outcome CheckEndpoints(const coppice_job_request& request) {
  if (request.endpoints == nullptr || request.endpoint_count == 0) {
    return Wrong("coppice_job_request.endpoints: one of each rank is needed");
  }
  for (uint32_t i = 0; i < request.endpoint_count; ++i) {
    if (request.endpoints[i] != nullptr) continue;
    return Wrong("coppice_job_request.endpoints[" + std::to_string(i) + "]: is a null pointer");
  }
  return {};
}

// The agent keeps the job for this process. One that cannot be held is of no use to whoever asked
// for it: `is_ours` says that it may be ended, since nobody else can know it.
Outcome Hold(coppice_client& client, uint64_t job, bool is_ours, SteadyTime deadline) {
  // A part is left for ending it: an agent that is late may hold it yet.
  const SteadyTime now = std::chrono::steady_clock::now();
  const SteadyTime hold_deadline = now + (deadline - now) / 4 * 3;
  std::string answer;
  Outcome outcome = Ask(client, hold_deadline, kHold, EncodeHold(job), /*may_repeat=*/true, answer);
  if (outcome.ok()) return outcome;
  if (is_ours) {
    Ask(client, deadline, kEnd, EncodeId(job), /*may_repeat=*/true, answer);
  } else {
    outcome.message += "; job " + std::to_string(job) +
                       " is registered but not held: register again with its request_id, or end it";
  }
  return outcome;
}

Outcome Register(coppice_client* client, const coppice_job_request* given, uint64_t* job) {
  coppice_job_request request;
  Outcome outcome = Check(client);
  if (outcome.ok()) outcome = Take(given, "coppice_job_request", request);
  if (outcome.ok() && job == nullptr) outcome = Wrong("job: a null pointer was given");
  if (outcome.ok()) outcome = CheckEndpoints(request);
  if (!outcome.ok()) return outcome;
  std::string answer;
  const SteadyTime deadline = DeadlineOf(*client);
  const std::string id = RequestId(request.request_id);
  outcome = Ask(*client, deadline, kRegister, EncodeRegister(request, id), !id.empty(), answer);
  if (!outcome.ok()) return outcome;
  uint64_t registered = 0;
  if (!DecodeJobId(answer, registered)) return Misunderstood(kRegister);
  if (request.hold != 0) {
    const bool is_ours = request.request_id == nullptr || *request.request_id == '\0';
    outcome = Hold(*client, registered, is_ours, deadline);
  }
  if (outcome.ok()) *job = registered;
  return outcome;
}

}  // namespace
}  // namespace coppice

coppice_status coppice_job_register(coppice_client* client, const coppice_job_request* request,
                                    uint64_t* job) {
  return coppice::Run([&] { return coppice::Register(client, request, job); });
}

coppice_status coppice_job_end(coppice_client* client, uint64_t job) {
  return coppice::Run([&]() -> coppice::Outcome {
    coppice::Outcome outcome = coppice::Check(client);
    std::string answer;
    if (!outcome.ok()) return outcome;
    return coppice::Ask(*client, coppice::kEnd, coppice::EncodeId(job), /*may_repeat=*/true,
                        answer);
  });
}
