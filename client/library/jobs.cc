// Jobs, their layouts on hosts and their stored orders, of coppice.h.
#include <algorithm>
#include <cstddef>

#include "client/library/client.h"
#include "client/library/coppice.h"

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

// Rank orders and patterns, of coppice.h.

namespace {

constexpr char kMap[] = "/coppice.v1.Mapping/MapRanks";
constexpr char kPut[] = "/coppice.v1.Mapping/PutPattern";
constexpr uint32_t kDefaultBudgetMs = 1000;

template <class Pattern>
Outcome CheckPairs(const Pattern& pattern, const char* name) {
  if (pattern.rank_count == 0) return Wrong(std::string(name) + ".rank_count: is 0");
  const bool has_lists =
      pattern.from != nullptr && pattern.to != nullptr && pattern.bytes != nullptr;
  if (pattern.pair_count == 0 || has_lists) return {};
  return Wrong(std::string(name) + ": from, to and bytes go together, pair_count of each");
}

Outcome CheckRequest(const coppice_map_request& request) {
  constexpr char kName[] = "coppice_map_request";
  if (request.hosts != nullptr && request.host_count == 0) {
    return Wrong("coppice_map_request.host_count: is 0; for the job's hosts leave hosts NULL");
  }
  for (uint32_t i = 0; request.hosts != nullptr && i < request.host_count; ++i) {
    if (request.hosts[i] != nullptr) continue;
    return Wrong("coppice_map_request.hosts[" + std::to_string(i) + "]: is a null pointer");
  }
  return request.pattern_name != nullptr ? Outcome{} : CheckPairs(request, kName);
}

// There may be more positions than ranks, but no two ranks at one.
bool IsOrder(std::vector<uint32_t> positions) {
  std::sort(positions.begin(), positions.end());
  const bool is_distinct =
      std::adjacent_find(positions.begin(), positions.end()) == positions.end();
  return is_distinct && !positions.empty();
}

Outcome Map(coppice_client* client, const coppice_map_request* given, coppice_order** order) {
  coppice_map_request request;
  Outcome outcome = Check(client);
  if (outcome.ok()) outcome = Take(given, "coppice_map_request", request);
  if (outcome.ok() && order == nullptr) outcome = Wrong("order: a null pointer was given");
  if (outcome.ok()) outcome = CheckRequest(request);
  if (!outcome.ok()) return outcome;
  std::string answer;
  const uint32_t budget_ms = request.budget_ms == 0 ? kDefaultBudgetMs : request.budget_ms;
  outcome = Ask(*client, kMap, EncodeMap(request), /*may_repeat=*/true, answer, budget_ms);
  if (!outcome.ok()) return outcome;
  auto handle = std::make_unique<coppice_order>();
  if (!DecodeOrder(answer, handle->answer) || !IsOrder(handle->answer.positions)) {
    return Misunderstood(kMap);
  }
  *order = handle.release();
  return outcome;
}

Outcome Put(coppice_client* client, const coppice_pattern* given) {
  constexpr char kName[] = "coppice_pattern";
  coppice_pattern pattern;
  Outcome outcome = Check(client);
  if (outcome.ok()) outcome = Take(given, kName, pattern);
  if (outcome.ok() && pattern.name == nullptr) outcome = Wrong("coppice_pattern.name: is NULL");
  if (outcome.ok()) outcome = CheckPairs(pattern, kName);
  if (!outcome.ok()) return outcome;
  std::string answer;
  return Ask(*client, kPut, EncodePattern(pattern), /*may_repeat=*/true, answer);
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

coppice_status coppice_map(coppice_client* client, const coppice_map_request* request,
                           coppice_order** order) {
  return coppice::Run([&] { return coppice::Map(client, request, order); });
}

void coppice_order_free(coppice_order* order) { delete order; }

uint32_t coppice_order_ranks(const coppice_order* order) {
  return static_cast<uint32_t>(order->answer.positions.size());
}
const uint32_t* coppice_order_positions(const coppice_order* order) {
  return order->answer.positions.data();
}
double coppice_order_score(const coppice_order* order) { return order->answer.score; }
const char* coppice_order_reason(const coppice_order* order) {
  return order->answer.reason.c_str();
}

coppice_status coppice_pattern_put(coppice_client* client, const coppice_pattern* pattern) {
  return coppice::Run([&] { return coppice::Put(client, pattern); });
}
