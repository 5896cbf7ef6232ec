#include "agents/mpi/openmpi/engine.h"

#include <bit>
#include <cctype>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "agents/mpi/core/returned_errors.h"
#include "agents/mpi/core/session.h"
#include "agents/mpi/topology/reordering.h"
#include "agents/mpi/tree/kept_trees.h"
#include "agents/mpi/tree/started.h"
#include "agents/mpi/tree/tag_pool.h"
#include "agents/mpi/tree/tree_collectives.h"
#include "agents/mpi/tree/tree_memory.h"
#include "agents/mpi/tree/tree_questions.h"

namespace coppice::mpi {
namespace {

// Where the collective that this thread is in keeps trees. Collectives that the engine calls
// meanwhile come to the module again, and are not for trees.
thread_local coppice_kept* kept_now = nullptr;
coppice_kept nobody;  // while the engine begins, ends or makes a communicator

class Within final {
 public:
  explicit Within(coppice_kept* kept) : outer_(kept_now) { kept_now = kept; }
  ~Within() { kept_now = outer_; }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  coppice_kept* const outer_;
};

std::string TextOfParameter(const std::string& name) {
  const char* const value = coppice_component_setting(name.c_str());
  return value == nullptr ? "" : value;
}

std::string Parameter(const std::string& name) {
  std::string word = "coll_coppice_";
  for (const char letter : name.substr(name.find('_') + 1))
    word += static_cast<char>(std::tolower(letter));
  return word;
}

std::string NoStrangers() { return ""; }

constexpr SettingSource kParameters = {TextOfParameter, Parameter, NoStrangers, "component"};

void (*forget_trees)(CommunicatorTrees*) = nullptr;

std::mutex keeping_mutex;
std::set<coppice_kept*> keeping;  // those with trees

// Its trees, which it does not keep any more.
CommunicatorTrees* TakeOut(coppice_kept* kept) {
  const std::lock_guard lock(keeping_mutex);
  keeping.erase(kept);
  return static_cast<CommunicatorTrees*>(std::exchange(kept->trees, nullptr));
}

template <class Tree>
int Carry(MPI_Comm comm, coppice_kept* kept, const Tree& tree, coppice_measured* measured,
          int* error) {
  if (kept_now != nullptr) return 0;
  const Within within(kept);
  *error = MPI_SUCCESS;
  MeasuredCall call;
  const bool is_taken = GoesAlongTree(
      comm, [&] { return tree(&call); }, &call, error);
  *measured = std::bit_cast<coppice_measured>(call);
  return is_taken ? 1 : 0;
}

template <class Tree>
int Start(MPI_Comm comm, coppice_kept* kept, const Tree& tree, int* error) {
  if (kept_now != nullptr || !UsesTrees() || !MayStart()) return 0;
  const Within within(kept);
  *error = MPI_SUCCESS;
  bool is_started = false;
  const int shortage = WithMemory(comm, [&] { is_started = tree(); });
  if (shortage != MPI_SUCCESS) *error = shortage;
  return is_started || shortage != MPI_SUCCESS ? 1 : 0;
}

bool IsUnderWay(MPI_Request request) { return coppice_component_request_is_pending(request) != 0; }

constexpr StartHooks kStartHooks = {coppice_component_request_make,
                                    coppice_component_request_complete, coppice_component_progress};

// Collective over the world: nonblocking collectives go along trees if all members can do so. Where
// several threads are in MPI, each would have to be kept from the others' progress.
void StartNonblocking() {
  is_under_way = IsUnderWay;
  const bool may_start =
      !Session::Get().has_threads() && coppice_component_has_nonblocking(MPI_COMM_WORLD) != 0;
  if (!UsesTrees() || !AllSay(MPI_COMM_WORLD, may_start)) return;
  SetStartHooks(&kStartHooks);
  coppice_component_progress_begin();
}

}  // namespace

void StartKeepingTrees(void (*forget)(CommunicatorTrees*)) { forget_trees = forget; }

void EndKeepingTrees() {
  for (;;) {
    coppice_kept* kept = nullptr;
    {
      const std::lock_guard lock(keeping_mutex);
      if (keeping.empty()) return;
      kept = *keeping.begin();
    }
    forget_trees(TakeOut(kept));
  }
}

bool FindKeptTrees(MPI_Comm comm, bool* was_kept, CommunicatorTrees** trees) {
  if (comm == MPI_COMM_NULL || kept_now == nullptr || kept_now == &nobody) return false;
  *was_kept = kept_now->was_kept != 0;
  *trees = static_cast<CommunicatorTrees*>(kept_now->trees);
  return true;
}

bool KeepTrees(MPI_Comm /*comm*/, CommunicatorTrees* trees) {
  if (trees != nullptr) {
    const std::lock_guard lock(keeping_mutex);
    keeping.insert(kept_now);
  }
  kept_now->was_kept = 1;
  kept_now->trees = trees;
  return true;
}

}  // namespace coppice::mpi

using namespace coppice::mpi;  // NOLINT: the parts of this very library

void coppice_engine_begin(void) {
  const Within within(&nobody);
  LeaveErrorsToCallers();
  is_described = [](MPI_Datatype type) { return coppice_component_is_described(type) != 0; };
  Session& session = Session::Get();
  session.Start(kParameters);
  if (UsesTrees() && !AllSay(MPI_COMM_WORLD, coppice_component_has_module(MPI_COMM_WORLD) != 0)) {
    session.Say("no trees: another component of coll has a higher priority, or HAN is next below");
    session.LeaveTrees();
  }
  StartTrees();
  StartNonblocking();
  if (UsesTrees()) {
    const Within world(coppice_component_kept(MPI_COMM_WORLD));
    PrepareTreesOf(MPI_COMM_WORLD);
  }
}

void coppice_engine_end(void) {
  const Within within(&nobody);
  if (MayStart()) coppice_component_progress_end();
  SetStartHooks(nullptr);
  EndTrees();
  Session::Get().End();
}

void coppice_engine_ended(const coppice_measured* measured) {
  std::bit_cast<MeasuredCall>(*measured).End();
}

void coppice_engine_forget(coppice_kept* kept) {
  CommunicatorTrees* const trees = TakeOut(kept);
  if (trees == nullptr) return;
  forget_trees(trees);
  if (UsesTrees()) TellWhatIsGivenBack();
}

#define COPPICE_ENGINE_BODY(NAME, FORTRAN, ARGUMENTS, TRACE)                     \
  int coppice_engine_##FORTRAN(ARGUMENTS(COPPICE_PARAMETER), coppice_kept* kept, \
                               coppice_measured* measured, int* error) {         \
    const auto tree = [&](MeasuredCall* call) {                                  \
      return Tree##NAME(ARGUMENTS(COPPICE_ARGUMENT), call, error);               \
    };                                                                           \
    return Carry(comm, kept, tree, measured, error);                             \
  }
COPPICE_TREE_COLLECTIVES(COPPICE_ENGINE_BODY)

#define COPPICE_ENGINE_START_BODY(NAME, FORTRAN, ARGUMENTS, TRACE)                              \
  int coppice_engine_i##FORTRAN(ARGUMENTS(COPPICE_PARAMETER), coppice_kept* kept,               \
                                MPI_Request* request, int* error) {                             \
    const auto tree = [&] { return Start##NAME(ARGUMENTS(COPPICE_ARGUMENT), request, error); }; \
    return Start(comm, kept, tree, error);                                                      \
  }
COPPICE_TREE_COLLECTIVES(COPPICE_ENGINE_START_BODY)

int coppice_engine_may_start(void) { return UsesTrees() && MayStart() ? 1 : 0; }

int coppice_engine_progress(void) { return AdvanceStarted(); }

int coppice_engine_reorders(void) { return Session::Get().settings().reorder ? 1 : 0; }

int coppice_engine_cart_create(MPI_Comm comm, int dimensions, const int* sizes, const int* periods,
                               MPI_Comm* made, int* error) {
  const Within within(&nobody);
  return ReorderGrid(comm, {dimensions, sizes, periods}, made, error) ? 1 : 0;
}

int coppice_engine_dist_graph_create(MPI_Comm comm, int count, const int* sources,
                                     const int* degrees, const int* destinations,
                                     const int* weights, MPI_Info info, MPI_Comm* made,
                                     int* error) {
  const Within within(&nobody);
  const DistGraph graph = {count, sources, degrees, destinations, weights};
  return ReorderDistGraph(comm, graph, info, made, error) ? 1 : 0;
}

int coppice_engine_dist_graph_create_adjacent(MPI_Comm comm, int in_degree, const int* sources,
                                              const int* in_weights, int out_degree,
                                              const int* destinations, const int* out_weights,
                                              MPI_Info info, MPI_Comm* made, int* error) {
  const Within within(&nobody);
  const AdjacentGraph graph = {in_degree,  sources,      in_weights,
                               out_degree, destinations, out_weights};
  return ReorderAdjacentGraph(comm, graph, info, made, error) ? 1 : 0;
}
