#include "agents/mpi/tree/communicator_trees.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/tree_lines.h"
#include "agents/mpi/tree/tree_source.h"

namespace coppice::mpi {
namespace {

// The attribute; null: there are no trees, and none are asked for.
struct CommunicatorTrees {
  struct OfLength {
    CommunicatorTree tree;
    bool was_asked = false;
  };
  OfLength of_short, of_long;
  bool is_closed = false;  // no trees any more; the same on all members
  CommunicatorTrees* next_freed = nullptr;

  template <class Work>
  void ForEach(const Work& work) {
    for (OfLength* const of : {&of_short, &of_long}) work(&of->tree);
  }
  // Gives them back.
  void Close() {
    ForEach(LetGo);
    is_closed = true;
  }
};

int key = MPI_KEYVAL_INVALID;

std::mutex freed_mutex;              // nobody is called under it
CommunicatorTrees* freed = nullptr;  // the first

__attribute__((tls_model("initial-exec"))) thread_local EndingCommunicator* ending = nullptr;

// When the communicator's last reference goes. With requests of the program's under way that is
// later than MPI_Comm_free, from within MPI and on some member alone: the rest is left to others.
// MPICH finds the attribute afterwards still, for the functions of others that come after this one.
int Forget(MPI_Comm, int, void* value, void*) {
  auto* const trees = static_cast<CommunicatorTrees*>(value);
  if (trees == nullptr) return MPI_SUCCESS;
  if (!Session::Get().IsUp()) {
    delete trees;
    return MPI_SUCCESS;
  }
  trees->Close();
  trees->ForEach([](CommunicatorTree* tree) {
    const TreeLines& lines = tree->lines;
    if (lines.comm != MPI_COMM_NULL && !lines.is_spoilt) {
      LeaveTags(lines.tags, lines.members.World(0), lines.members.size());
    }
  });
  const std::lock_guard<std::mutex> lock(freed_mutex);
  trees->next_freed = std::exchange(freed, trees);
  return MPI_SUCCESS;
}

void DeleteFreed() {
  CommunicatorTrees* now = nullptr;
  {
    const std::lock_guard<std::mutex> lock(freed_mutex);
    now = std::exchange(freed, nullptr);
  }
  while (now != nullptr) delete std::exchange(now, now->next_freed);
}

// False: `comm` is none, or there are no trees. *trees may be null even if it was seen before.
bool Find(MPI_Comm comm, bool* was_seen, CommunicatorTrees** trees) {
  if (comm == MPI_COMM_NULL || key == MPI_KEYVAL_INVALID) return false;
  if (EndingCommunicator::Is(comm)) return false;
  void* value = nullptr;
  int is_there = 0;
  if (PMPI_Comm_get_attr(comm, key, &value, &is_there) != MPI_SUCCESS) return false;
  *was_seen = is_there != 0;
  *trees = *was_seen ? static_cast<CommunicatorTrees*>(value) : nullptr;
  return true;
}

// Collective, as all members see a communicator for the first time together. Without memory here
// this member says so in the others' first question; null then.
CommunicatorTrees* Begin(MPI_Comm comm) {
  const bool may_have_trees = MayHaveTree(comm);
  auto* const trees = may_have_trees ? new (std::nothrow) CommunicatorTrees : nullptr;
  PMPI_Comm_set_attr(comm, key, trees);
  if (may_have_trees && trees == nullptr) {
    AskForTreeOf(comm, COPPICE_OPERATION_BARRIER, 0, nullptr);
  }
  return trees;
}

}  // namespace

CommunicatorTree* TreeOf(MPI_Comm comm, coppice_operation operation, uint64_t bytes) {
  bool was_seen = false;
  CommunicatorTrees* trees = nullptr;
  if (!Find(comm, &was_seen, &trees)) return nullptr;
  if (!was_seen) trees = Begin(comm);
  if (trees == nullptr || trees->is_closed) return nullptr;
  const bool is_long = bytes >= kLong;
  CommunicatorTrees::OfLength* const of = is_long ? &trees->of_long : &trees->of_short;
  if (!std::exchange(of->was_asked, true)) {
    SettleFreedTrees();
    const uint64_t asked = is_long ? std::max(bytes, kAskedAtLeast) : bytes;
    if (!AskForTreeOf(comm, operation, asked, &of->tree)) trees->Close();
  }
  if (of->tree.id != 0) FollowNewsOf(comm, &of->tree);
  return of->tree.id != 0 ? &of->tree : nullptr;
}

void SpoilTreesOf(MPI_Comm comm) {
  bool was_seen = false;
  CommunicatorTrees* trees = nullptr;
  if (!Find(comm, &was_seen, &trees) || trees == nullptr) return;
  trees->ForEach([](CommunicatorTree* tree) { tree->lines.is_spoilt = true; });
}

EndingCommunicator::EndingCommunicator(const MPI_Comm* comm)
    : comm_(comm == nullptr ? MPI_COMM_NULL : *comm), outer_(ending) {
  bool was_seen = false;
  CommunicatorTrees* trees = nullptr;
  // Which MPI does not free.
  const bool is_predefined = comm_ == MPI_COMM_WORLD || comm_ == MPI_COMM_SELF;
  if (!is_predefined && Find(comm_, &was_seen, &trees)) {
    if (!was_seen) PMPI_Comm_set_attr(comm_, key, nullptr);
    if (trees != nullptr) trees->Close();
  }
  ending = this;
}

EndingCommunicator::~EndingCommunicator() { ending = outer_; }

bool EndingCommunicator::Is(MPI_Comm comm) {
  const EndingCommunicator* one = ending;
  while (one != nullptr && one->comm_ != comm) one = one->outer_;
  return one != nullptr;
}

void SettleFreedTrees() {
  DeleteFreed();
  if (TreeLinesComm() == MPI_COMM_NULL) return;
  GiveBackAll();
  SettleTags();
}

void StartCommunicatorTrees() {
  if (Session::Get().settings().trees == TreesWhen::kNever || Session::Get().Job() == 0) return;
  if (!OpenTreeLines()) {
    Session::Get().Say("no trees: the MPI library has no communicator or no tags for them");
    return;
  }
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, Forget, &key, nullptr);
}

void EndCommunicatorTrees() {
  if (key == MPI_KEYVAL_INVALID) return;
  void* value = nullptr;
  int is_there = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &is_there);
  if (is_there != 0) PMPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  PMPI_Comm_free_keyval(&key);
  SettleFreedTrees();
  CloseTreeLines();
}

}  // namespace coppice::mpi
