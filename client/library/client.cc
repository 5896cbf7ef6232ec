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

// Trees, of coppice.h.

namespace {

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

Outcome Create(coppice_client* client, const coppice_tree_request* given, coppice_tree** tree) {
  coppice_tree_request request;
  Outcome outcome = Check(client);
  if (outcome.ok()) outcome = Take(given, "coppice_tree_request", request);
  if (outcome.ok() && tree == nullptr) outcome = Wrong("tree: a null pointer was given");
  if (outcome.ok()) outcome = CheckRequest(request);
  if (!outcome.ok()) return outcome;
  const bool advise = request.advise != 0;
  const char* const method = advise ? kAdvise : kCreate;
  const std::string id = advise ? "" : RequestId(request.request_id);
  std::string answer;
  outcome = Ask(*client, method, EncodeTreeRequest(request, id), advise || !id.empty(), answer);
  return outcome.ok() ? Receive(method, answer, tree) : outcome;
}

Outcome Get(coppice_client* client, uint64_t id, coppice_tree** tree) {
  Outcome outcome = Check(client);
  if (outcome.ok() && tree == nullptr) outcome = Wrong("tree: a null pointer was given");
  if (!outcome.ok()) return outcome;
  std::string answer;
  outcome = Ask(*client, kGet, EncodeId(id), /*may_repeat=*/true, answer);
  return outcome.ok() ? Receive(kGet, answer, tree) : outcome;
}

Outcome Release(coppice_client* client, uint64_t id) {
  Outcome outcome = Check(client);
  if (!outcome.ok()) return outcome;
  // Sent twice it may be answered with NOT_FOUND after it was carried out.
  std::string answer;
  return Ask(*client, kRelease, EncodeId(id), /*may_repeat=*/false, answer);
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
  return coppice::Run([&]() -> coppice::Outcome {
    static constexpr char kMethod[] = "/coppice.v1.Local/GetAgent";
    coppice_capabilities full;
    coppice::Outcome outcome = coppice::Check(client);
    if (outcome.ok()) outcome = coppice::Take(answer, "coppice_capabilities", full);
    if (!outcome.ok()) return outcome;
    std::string message;
    outcome = coppice::Ask(*client, kMethod, "", /*may_repeat=*/true, message);
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
  return coppice::Run([&] { return coppice::Create(client, request, tree); });
}

coppice_status coppice_tree_get(coppice_client* client, uint64_t id, coppice_tree** tree) {
  return coppice::Run([&] { return coppice::Get(client, id, tree); });
}

coppice_status coppice_tree_release(coppice_client* client, uint64_t id) {
  return coppice::Run([&] { return coppice::Release(client, id); });
}

void coppice_tree_free(coppice_tree* tree) { delete tree; }

uint64_t coppice_tree_id(const coppice_tree* tree) { return tree->answer.id; }
uint32_t coppice_tree_revision(const coppice_tree* tree) { return tree->answer.revision; }
coppice_tree_type coppice_tree_kind(const coppice_tree* tree) {
  return static_cast<coppice_tree_type>(tree->answer.type);
}
uint32_t coppice_tree_width(const coppice_tree* tree) { return tree->answer.width; }
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
