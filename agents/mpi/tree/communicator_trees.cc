#include "agents/mpi/tree/communicator_trees.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/tag_pool.h"
#include "agents/mpi/tree/tree_questions.h"
#include "agents/mpi/tree/tree_source.h"

namespace coppice::mpi {
namespace {

// The attribute; null: there are no trees, and none are asked for.
struct CommunicatorTrees {
  // All but `tree` is the same on all members.
  struct OfLength {
    enum Stage { kUnasked, kAsked, kAnswered };

    CommunicatorTree tree;
    Stage stage = kUnasked;
    uint64_t uses = 0;   // collectives
    uint64_t next = 0;   // the number of the one that asks, or looks for the answer
    uint64_t pause = 0;  // collectives from one look to the next, twice as many each time
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

// For who finds no memory where nobody may fail alone.
std::atomic<CommunicatorTrees*> spare{nullptr};

std::mutex freed_mutex;              // nobody is called under it
CommunicatorTrees* freed = nullptr;  // the first

__attribute__((tls_model("initial-exec"))) thread_local EndingCommunicator* ending = nullptr;

// When the communicator's last reference goes. With requests of the program's under way that is
// later than MPI_Comm_free, from within MPI and on some member alone: the rest is left to others.
// MPICH finds the attribute afterwards still, for the functions of others that come after this one.
int ForgetTree(MPI_Comm, int, void* value, void*) {
  auto* const trees = static_cast<CommunicatorTrees*>(value);
  if (trees == nullptr) return MPI_SUCCESS;
  if (!Session::Get().IsUp()) {
    delete trees;
    return MPI_SUCCESS;
  }
  trees->Close();
  trees->ForEach([](CommunicatorTree* tree) {
    const TreeTags& tags = tree->tags;
    if (tags.comm != MPI_COMM_NULL && !tags.is_spoilt) {
      LeaveTags(tags.first_tag, tags.members.World(0), tags.members.size());
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

// When all members see a communicator for the first time.
CommunicatorTrees* Begin(MPI_Comm comm) {
  const Settings& settings = Session::Get().settings();
  CommunicatorTrees* trees = nullptr;
  if (MayHaveTree(comm)) {
    // All members go the same way from here on, so one that finds no memory cannot go another.
    trees = new (std::nothrow) CommunicatorTrees;
    if (trees == nullptr) trees = spare.exchange(nullptr);
    if (trees == nullptr) PMPI_Abort(comm, MPI_ERR_NO_MEM);
  }
  PMPI_Comm_set_attr(comm, key, trees);
  if (trees == nullptr) return nullptr;
  for (auto* const of : {&trees->of_short, &trees->of_long}) {
    of->next = of->pause = static_cast<uint64_t>(settings.trees_after);
  }
  if (settings.trees == TreesWhen::kCreation) trees->of_short.next = 0;
  return trees;
}

bool GoAlongTrees(uint64_t bytes) {
  const int most = Session::Get().settings().trees_max_bytes;
  if (most >= 0) return bytes <= static_cast<uint64_t>(most);
  return bytes < kLong || bytes >= kLongEnough;
}

// Collective, before each collective of that length: it is asked for, or the answer is looked for,
// if this is the one that does so. False, on all members: no tree of the communicator is asked for
// again.
bool Advance(MPI_Comm comm, coppice_operation operation, uint64_t bytes,
             CommunicatorTrees::OfLength* of) {
  using Stage = CommunicatorTrees::OfLength;
  if (of->stage == Stage::kAnswered || of->uses++ != of->next) return true;
  const Waits waits = of->pause == 0 ? Waits::kProgram : Waits::kMeanwhile;
  if (of->stage == Stage::kUnasked) {
    SettleFreedTrees();
    if (!AskForTreeOf(comm, operation, bytes, waits, &of->tree)) return false;
    of->stage = Stage::kAsked;
    of->next += of->pause;
    if (of->pause != 0) return true;
  }
  if (LookForTreeOf(comm, waits, &of->tree)) {
    of->stage = Stage::kAnswered;
  } else {
    of->pause *= 2;
    of->next += of->pause;
  }
  return true;
}

}  // namespace

CommunicatorTree* TreeOf(MPI_Comm comm, coppice_operation operation, uint64_t bytes) {
  if (!GoAlongTrees(bytes)) return nullptr;
  bool was_seen = false;
  CommunicatorTrees* trees = nullptr;
  if (!Find(comm, &was_seen, &trees)) return nullptr;
  if (!was_seen) trees = Begin(comm);
  if (trees == nullptr || trees->is_closed) return nullptr;
  const bool is_long = bytes >= kLong;
  CommunicatorTrees::OfLength* const of = is_long ? &trees->of_long : &trees->of_short;
  const uint64_t asked = is_long ? std::max(bytes, kAskedAtLeast) : bytes;
  if (!Advance(comm, operation, asked, of)) {
    trees->Close();
    return nullptr;
  }
  if (of->tree.id != 0) FollowNewsOf(comm, &of->tree);
  return of->tree.id != 0 ? &of->tree : nullptr;
}

void SpoilTreesOf(MPI_Comm comm) {
  bool was_seen = false;
  CommunicatorTrees* trees = nullptr;
  if (!Find(comm, &was_seen, &trees) || trees == nullptr) return;
  trees->ForEach([](CommunicatorTree* tree) { tree->tags.is_spoilt = true; });
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
  if (TagPoolComm() == MPI_COMM_NULL) return;
  TellWhatIsGivenBack();
  SettleTags();
}

void StartCommunicatorTrees() {
  if (Session::Get().settings().trees == TreesWhen::kNever || Session::Get().Job() == 0) return;
  if (Session::Get().hosts() < 2) {
    Session::Get().Say("no trees: all ranks are on one host, where the MPI library knows better");
    return;
  }
  if (!OpenTagPool()) {
    Session::Get().Say("no trees: the MPI library has no communicator or no tags for them");
    return;
  }
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ForgetTree, &key, nullptr);
  spare = new (std::nothrow) CommunicatorTrees;
}

void EndCommunicatorTrees() {
  if (key == MPI_KEYVAL_INVALID) return;
  void* value = nullptr;
  int is_there = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &is_there);
  if (is_there != 0) PMPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  PMPI_Comm_free_keyval(&key);
  DeleteFreed();
  delete spare.exchange(nullptr);
  StopAskingMeanwhile();
  GiveBackAll(Waits::kProgram);
  CloseTagPool();
}

}  // namespace coppice::mpi
