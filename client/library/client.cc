#include "client/library/client.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr char kDefaultAgent[] = "/run/coppice/agent.sock";
constexpr uint32_t kDefaultTimeoutMs = 30'000;

// Of plain bytes: it needs no destructor in a thread that outlives the library.
thread_local char last_error[1024];

const char* const kNames[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
};
constexpr size_t kNameCount = sizeof kNames / sizeof *kNames;

std::string AgentPath(const char* given) {
  if (given != nullptr && *given != '\0') return given;
  const char* const named = std::getenv("COPPICE_AGENT");
  return named != nullptr && *named != '\0' ? named : kDefaultAgent;
}

}  // namespace

coppice_client::coppice_client(std::string agent, uint32_t timeout)
    : path(std::move(agent)), timeout_ms(timeout), process(getpid()), calls(path) {}

namespace coppice {
coppice_status Tell(const Outcome& outcome) noexcept {
  const char* text = outcome.message.c_str();
  if (!outcome.ok() && *text == '\0') {
    text = outcome.code == COPPICE_RESOURCE_EXHAUSTED ? "out of memory"
                                                      : coppice_status_name(outcome.code);
  }
  const size_t length = outcome.ok() ? 0 : std::min(std::strlen(text), sizeof last_error - 1);
  std::memcpy(last_error, text, length);
  last_error[length] = '\0';
  // google.rpc.Code has two more than coppice.h.
  return static_cast<size_t>(outcome.code) < kNameCount ? outcome.code : COPPICE_UNKNOWN;
}

Outcome Wrong(std::string what) { return {COPPICE_INVALID_ARGUMENT, std::move(what)}; }

Outcome Later(const char* name) {
  return {
      COPPICE_UNIMPLEMENTED,
      std::string(name) + ": fields of a later libcoppice are set; use that one, or leave them 0"};
}

Outcome NotNull(const void* pointer, const char* name) {
  return pointer != nullptr ? Outcome{} : Wrong(std::string(name) + ": a null pointer was given");
}

Outcome Check(const coppice_client* client) {
  if (client == nullptr) return Wrong("client: a null pointer was given; call coppice_open first");
  if (client->process == getpid()) return {};
  return {COPPICE_FAILED_PRECONDITION,
          "client: it was opened before fork(); open another one in the child"};
}

Outcome Ask(coppice_client& client, std::string_view method, const std::string& request,
            bool may_repeat, std::string& answer, uint32_t extra_ms) {
  const SteadyTime deadline = DeadlineOf(client) + std::chrono::milliseconds(extra_ms);
  return Ask(client, deadline, method, request, may_repeat, answer);
}

Outcome Ask(coppice_client& client, SteadyTime deadline, std::string_view method,
            const std::string& request, bool may_repeat, std::string& answer) {
  return client.calls.Make({method, request, may_repeat, deadline}, answer);
}

Outcome Misunderstood(std::string_view method) {
  return {COPPICE_INTERNAL, std::string(method) +
                                ": the answer cannot be read; are the agent and libcoppice of the "
                                "same release?"};
}

std::string RequestId(const char* given) {
  if (given != nullptr) return given;
  unsigned char random[16];
  if (getentropy(random, sizeof random) != 0) return "";
  std::string id = "libcoppice:";
  for (const unsigned char byte : random) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    id += digits;
  }
  return id;
}

namespace {

// --- Trees ---

constexpr char kAdvise[] = "/coppice.v1.Trees/AdviseTree";
constexpr char kCreate[] = "/coppice.v1.Trees/CreateTree";
constexpr char kGet[] = "/coppice.v1.Trees/GetTree";
constexpr char kRelease[] = "/coppice.v1.Trees/ReleaseTree";

Outcome CheckRequest(const coppice_tree_request& request) {
  if (request.ranks != nullptr && request.rank_count == 0) {
    return Wrong(
        "coppice_tree_request.rank_count: is 0; for all ranks of the job leave ranks "
        "NULL, too");
  }
  if (request.ranks == nullptr && request.rank_count != 0) {
    return Wrong("coppice_tree_request.ranks: is NULL, but rank_count is not 0");
  }
  if (request.operation < COPPICE_OPERATION_ALLREDUCE ||
      request.operation > COPPICE_OPERATION_REDUCE) {
    return Wrong("coppice_tree_request.operation: no such operation");
  }
  if (request.type < COPPICE_TREE_AUTO || request.type > COPPICE_TREE_TYPE_II) {
    return Wrong("coppice_tree_request.type: no such type");
  }
  return {};
}

Outcome Receive(const char* method, const std::string& message, coppice_tree** tree) {
  auto handle = std::make_unique<coppice_tree>();
  if (!DecodeTree(message, handle->answer) || !IsWhole(handle->answer)) {
    return Misunderstood(method);
  }
  *tree = handle.release();
  return {};
}

Outcome Create(coppice_client& client, const coppice_tree_request* given, coppice_tree** tree) {
  coppice_tree_request request;
  Outcome outcome = Take(given, "coppice_tree_request", request);
  if (outcome.ok()) outcome = NotNull(tree, "tree");
  if (outcome.ok()) outcome = CheckRequest(request);
  if (!outcome.ok()) return outcome;
  const bool advise = request.advise != 0;
  const char* const method = advise ? kAdvise : kCreate;
  const std::string id = advise ? "" : RequestId(request.request_id);
  std::string answer;
  outcome = Ask(client, method, EncodeTreeRequest(request, id), advise || !id.empty(), answer,
                request.max_trees > 1 ? COPPICE_FOREST_MS : 0);
  return outcome.ok() ? Receive(method, answer, tree) : outcome;
}

Outcome Get(coppice_client& client, uint64_t id, coppice_tree** tree) {
  Outcome outcome = NotNull(tree, "tree");
  if (!outcome.ok()) return outcome;
  std::string answer;
  outcome = Ask(client, kGet, EncodeId(id), /*may_repeat=*/true, answer);
  return outcome.ok() ? Receive(kGet, answer, tree) : outcome;
}

// --- Jobs ---

constexpr char kEnd[] = "/coppice.v1.Jobs/EndJob";
constexpr char kHold[] = "/coppice.v1.Local/HoldJob";
constexpr char kRegister[] = "/coppice.v1.Jobs/RegisterJob";

// None of them is null.
Outcome CheckTexts(const char* const* texts, uint32_t count, const char* name) {
  Outcome outcome;
  for (uint32_t i = 0; outcome.ok() && i < count; ++i) {
    if (texts[i] != nullptr) continue;
    outcome = Wrong(std::string(name) + "[" + std::to_string(i) + "]: is a null pointer");
  }
  return outcome;
}

Outcome CheckEndpoints(const coppice_job_request& request) {
  if (request.endpoints == nullptr || request.endpoint_count == 0) {
    return Wrong("coppice_job_request.endpoints: one of each rank is needed");
  }
  return CheckTexts(request.endpoints, request.endpoint_count, "coppice_job_request.endpoints");
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

Outcome Register(coppice_client& client, const coppice_job_request* given, uint64_t* job) {
  coppice_job_request request;
  Outcome outcome = Take(given, "coppice_job_request", request);
  if (outcome.ok()) outcome = NotNull(job, "job");
  if (outcome.ok()) outcome = CheckEndpoints(request);
  if (!outcome.ok()) return outcome;
  std::string answer;
  const SteadyTime deadline = DeadlineOf(client);
  const std::string id = RequestId(request.request_id);
  outcome = Ask(client, deadline, kRegister, EncodeRegister(request, id), !id.empty(), answer);
  if (!outcome.ok()) return outcome;
  uint64_t registered = 0;
  if (!DecodeJobId(answer, registered)) return Misunderstood(kRegister);
  if (request.hold != 0) {
    const bool is_ours = request.request_id == nullptr || *request.request_id == '\0';
    outcome = Hold(client, registered, is_ours, deadline);
  }
  if (outcome.ok()) *job = registered;
  return outcome;
}

// --- Rank orders and patterns ---

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
  const uint32_t hosts = request.hosts != nullptr ? request.host_count : 0;
  Outcome outcome = CheckTexts(request.hosts, hosts, "coppice_map_request.hosts");
  if (!outcome.ok()) return outcome;
  return request.pattern_name != nullptr ? Outcome{} : CheckPairs(request, kName);
}

// There may be more positions than ranks, but no two ranks at one.
bool IsOrder(std::vector<uint32_t> positions) {
  std::sort(positions.begin(), positions.end());
  const bool is_distinct =
      std::adjacent_find(positions.begin(), positions.end()) == positions.end();
  return is_distinct && !positions.empty();
}

Outcome Map(coppice_client& client, const coppice_map_request* given, coppice_order** order) {
  coppice_map_request request;
  Outcome outcome = Take(given, "coppice_map_request", request);
  if (outcome.ok()) outcome = NotNull(order, "order");
  if (outcome.ok()) outcome = CheckRequest(request);
  if (!outcome.ok()) return outcome;
  std::string answer;
  const uint32_t budget_ms = request.budget_ms == 0 ? kDefaultBudgetMs : request.budget_ms;
  outcome = Ask(client, kMap, EncodeMap(request), /*may_repeat=*/true, answer, budget_ms);
  if (!outcome.ok()) return outcome;
  auto handle = std::make_unique<coppice_order>();
  if (!DecodeOrder(answer, handle->answer) || !IsOrder(handle->answer.positions)) {
    return Misunderstood(kMap);
  }
  *order = handle.release();
  return outcome;
}

Outcome Put(coppice_client& client, const coppice_pattern* given) {
  constexpr char kName[] = "coppice_pattern";
  coppice_pattern pattern;
  Outcome outcome = Take(given, kName, pattern);
  if (outcome.ok() && pattern.name == nullptr) outcome = Wrong("coppice_pattern.name: is NULL");
  if (outcome.ok()) outcome = CheckPairs(pattern, kName);
  if (!outcome.ok()) return outcome;
  std::string answer;
  return Ask(client, kPut, EncodePattern(pattern), /*may_repeat=*/true, answer);
}

}  // namespace

}  // namespace coppice

uint32_t coppice_abi_version(void) { return COPPICE_ABI_VERSION; }
const char* coppice_version(void) { return COPPICE_VERSION; }
const char* coppice_last_error(void) { return last_error; }

const char* coppice_status_name(coppice_status status) {
  const size_t number = static_cast<size_t>(status);
  return number < kNameCount ? kNames[number] : "UNKNOWN";
}

coppice_status coppice_open(const char* agent, uint32_t timeout_ms, coppice_client** client) {
  return coppice::Run([&]() -> coppice::Outcome {
    if (client == nullptr) return coppice::Wrong("client: a null pointer was given");
    *client =
        new coppice_client(AgentPath(agent), timeout_ms == 0 ? kDefaultTimeoutMs : timeout_ms);
    return {};
  });
}

void coppice_close(coppice_client* client) {
  // A child's copy has no threads to end and no descriptors, and its memory goes with the child.
  const coppice::NotCancelled whole;
  if (client != nullptr && client->process == getpid()) delete client;
}

coppice_status coppice_query(coppice_client* client, coppice_capabilities* answer) {
  return coppice::RunOn(client, [&](coppice_client& asked) {
    static constexpr char kMethod[] = "/coppice.v1.Local/GetAgent";
    coppice_capabilities full;
    coppice::Outcome outcome = coppice::Take(answer, "coppice_capabilities", full);
    if (!outcome.ok()) return outcome;
    std::string message;
    outcome = coppice::Ask(asked, kMethod, "", /*may_repeat=*/true, message);
    if (!outcome.ok()) return outcome;
    coppice::AgentFacts facts;
    if (!coppice::DecodeAgent(message, facts)) return coppice::Misunderstood(kMethod);
    full.connected = facts.is_connected ? 1 : 0;
    full.cores = facts.cores;
    std::snprintf(full.host, sizeof full.host, "%s", facts.host.c_str());
    std::snprintf(full.agent_version, sizeof full.agent_version, "%s", facts.version.c_str());
    std::memcpy(answer, &full, std::min(full.size, sizeof full));
    return outcome;
  });
}

coppice_status coppice_tree_create(coppice_client* client, const coppice_tree_request* request,
                                   coppice_tree** tree) {
  return coppice::RunOn(client,
                        [&](coppice_client& of) { return coppice::Create(of, request, tree); });
}

coppice_status coppice_tree_get(coppice_client* client, uint64_t id, coppice_tree** tree) {
  return coppice::RunOn(client, [&](coppice_client& of) { return coppice::Get(of, id, tree); });
}

coppice_status coppice_tree_release(coppice_client* client, uint64_t id) {
  return coppice::RunOn(client, [&](coppice_client& of) {
    // Sent twice it may be answered with NOT_FOUND after it was carried out.
    std::string answer;
    return coppice::Ask(of, coppice::kRelease, coppice::EncodeId(id), /*may_repeat=*/false, answer);
  });
}

coppice_status coppice_tree_release_measured(coppice_client* client, uint64_t id,
                                             const char* application, const coppice_way_time* times,
                                             uint32_t count) {
  return coppice::RunOn(client, [&](coppice_client& of) {
    coppice::Outcome outcome = coppice::NotNull(application, "application");
    if (outcome.ok() && count > 0) outcome = coppice::NotNull(times, "times");
    if (!outcome.ok()) return outcome;
    std::string answer;
    return coppice::Ask(of, coppice::kRelease,
                        coppice::EncodeRelease(id, application, times, count),
                        /*may_repeat=*/false, answer);
  });
}

uint32_t coppice_tree_known_count(const coppice_tree* tree) {
  return static_cast<uint32_t>(tree->answer.known.size());
}
const coppice_way_time* coppice_tree_known(const coppice_tree* tree) {
  return tree->answer.known.data();
}

void coppice_tree_free(coppice_tree* tree) { delete tree; }

uint64_t coppice_tree_id(const coppice_tree* tree) { return tree->answer.id; }
uint32_t coppice_tree_revision(const coppice_tree* tree) { return tree->answer.revision; }
coppice_tree_type coppice_tree_kind(const coppice_tree* tree) {
  return static_cast<coppice_tree_type>(tree->answer.type);
}
uint32_t coppice_tree_width(const coppice_tree* tree) { return tree->answer.width; }
uint32_t coppice_tree_partition(const coppice_tree* tree) { return tree->answer.partition; }
double coppice_tree_predicted_us(const coppice_tree* tree) { return tree->answer.predicted_us; }
const char* coppice_tree_reason(const coppice_tree* tree) { return tree->answer.reason.c_str(); }
uint32_t coppice_tree_ranks(const coppice_tree* tree) { return tree->answer.ranks; }
uint32_t coppice_tree_nodes(const coppice_tree* tree) {
  return static_cast<uint32_t>(tree->answer.parents.size());
}
uint32_t coppice_tree_root(const coppice_tree* tree) { return tree->answer.root; }
const int32_t* coppice_tree_parents(const coppice_tree* tree) {
  return tree->answer.parents.data();
}
const int32_t* coppice_tree_order(const coppice_tree* tree) {
  return tree->answer.order.empty() ? nullptr : tree->answer.order.data();
}

uint32_t coppice_forest_trees(const coppice_tree* tree) {
  return static_cast<uint32_t>(tree->answer.forest.size());
}
double coppice_forest_share(const coppice_tree* tree, uint32_t number) {
  return number < tree->answer.forest.size() ? tree->answer.forest[number].share : 0;
}
const int32_t* coppice_forest_parents(const coppice_tree* tree, uint32_t number) {
  const auto& forest = tree->answer.forest;
  return number < forest.size() ? forest[number].parents.data() : nullptr;
}

coppice_status coppice_tree_carriage(const coppice_tree* tree, coppice_carriage* carriage) {
  const coppice::TreeAnswer& answer = tree->answer;
  if (carriage == nullptr || carriage->size < sizeof *carriage) {
    return coppice::Tell(coppice::Wrong("carriage: give one that COPPICE_INIT has made"));
  }
  if (answer.key.empty()) return coppice::Tell({COPPICE_NOT_FOUND, "no switch carries the tree"});
  carriage->key = reinterpret_cast<const unsigned char*>(answer.key.data());
  carriage->segment_bytes = answer.segment_bytes;
  carriage->window = answer.window;
  carriage->operations = answer.operations;
  carriage->types = answer.types;
  return coppice::Tell({});
}

const char* coppice_tree_switch_address(const coppice_tree* tree, uint32_t node) {
  const coppice::TreeAnswer& answer = tree->answer;
  const size_t number = node - size_t{answer.ranks};
  const bool is_there = node >= answer.ranks && number < answer.switch_addresses.size();
  return is_there ? answer.switch_addresses[number].c_str() : "";
}

coppice_status coppice_job_register(coppice_client* client, const coppice_job_request* request,
                                    uint64_t* job) {
  return coppice::RunOn(client,
                        [&](coppice_client& of) { return coppice::Register(of, request, job); });
}

coppice_status coppice_job_end(coppice_client* client, uint64_t job) {
  return coppice::RunOn(client, [&](coppice_client& of) {
    std::string answer;
    return coppice::Ask(of, coppice::kEnd, coppice::EncodeId(job), /*may_repeat=*/true, answer);
  });
}

coppice_status coppice_map(coppice_client* client, const coppice_map_request* request,
                           coppice_order** order) {
  return coppice::RunOn(client,
                        [&](coppice_client& of) { return coppice::Map(of, request, order); });
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
  return coppice::RunOn(client, [&](coppice_client& of) { return coppice::Put(of, pattern); });
}
