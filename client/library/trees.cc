// Trees, of coppice.h.
#include "client/library/client.h"

namespace coppice {
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
