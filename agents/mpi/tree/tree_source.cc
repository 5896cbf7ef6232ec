#include "agents/mpi/tree/tree_source.h"

#include <exception>
#include <mutex>

#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/tree_counts.h"
#include "agents/mpi/tree/tree_shape.h"

namespace coppice::mpi {
namespace {

std::mutex unused_mutex;  // nobody is called under it
std::vector<uint64_t> unused;

template <class Question>
Session::Answer Ask(Waits waits, const Question& question) {
  Session& session = Session::Get();
  return waits == Waits::kProgram ? session.Ask(question) : session.AskMeanwhile(question);
}

// Reads and frees it. None if it is no type I tree over `ranks` ranks.
GrantedTree Take(coppice_tree* tree, size_t ranks) {
  GrantedTree granted;
  granted.revision = coppice_tree_revision(tree);
  const int32_t* const parents = coppice_tree_parents(tree);
  TreeShape shape;
  if (coppice_tree_nodes(tree) == ranks && coppice_tree_ranks(tree) == ranks &&
      parents != nullptr) {
    granted.parents.assign(parents, parents + ranks);
    if (MakeTreeShape(granted.parents, 0, &shape)) granted.id = coppice_tree_id(tree);
  }
  coppice_tree_free(tree);
  return granted;
}

}  // namespace

GrantedTree AskForTree(const std::vector<int>& world_ranks, coppice_operation operation,
                       uint64_t bytes, Waits waits, std::string* why_not) {
  CountTree(kCountAsked);
  const std::vector<uint32_t> ranks(world_ranks.begin(), world_ranks.end());
  coppice_tree_request request = {};
  request.size = sizeof(request);
  request.job = Session::Get().Job();
  request.ranks = ranks.data();
  request.rank_count = static_cast<uint32_t>(ranks.size());
  request.operation = operation;
  request.bytes = bytes;
  request.type = COPPICE_TREE_TYPE_I;
  coppice_tree* tree = nullptr;
  const Session::Answer answer = Ask(
      waits, [&](coppice_client* client) { return coppice_tree_create(client, &request, &tree); });
  if (answer.status != COPPICE_OK) {
    *why_not = answer.why_not;
    GrantedTree none;
    none.wasted_ms = answer.wasted_ms;
    return none;
  }
  const uint64_t id = coppice_tree_id(tree);
  GrantedTree granted = Take(tree, ranks.size());
  if (granted.id == 0) {
    *why_not = "tree " + std::to_string(id) + " is none over the communicator's ranks";
    GiveBack(id);
  } else {
    CountTree(kCountGranted);
  }
  return granted;
}

GrantedTree AskAgain(uint64_t id, size_t ranks) {
  coppice_tree* tree = nullptr;
  const Session::Answer answer = Session::Get().Ask(
      [&](coppice_client* client) { return coppice_tree_get(client, id, &tree); });
  GrantedTree granted;
  if (answer.status == COPPICE_OK) granted = Take(tree, ranks);
  granted.wasted_ms = answer.wasted_ms;
  return granted;
}

void GiveBack(uint64_t id) {
  const std::lock_guard<std::mutex> lock(unused_mutex);
  try {
    unused.push_back(id);
  } catch (const std::exception&) {  // no memory: it is given back with the job
  }
}

bool IsAnyGivenBack() {
  const std::lock_guard<std::mutex> lock(unused_mutex);
  return !unused.empty();
}

void GiveBackAll(Waits waits) {
  std::vector<uint64_t> now;
  {
    const std::lock_guard<std::mutex> lock(unused_mutex);
    now.swap(unused);
  }
  for (const uint64_t id : now) {
    const Session::Answer answer =
        Ask(waits, [&](coppice_client* client) { return coppice_tree_release(client, id); });
    const bool is_answered =
        answer.status != COPPICE_UNAVAILABLE && answer.status != COPPICE_DEADLINE_EXCEEDED;
    if (!is_answered) GiveBack(id);
  }
}

}  // namespace coppice::mpi
