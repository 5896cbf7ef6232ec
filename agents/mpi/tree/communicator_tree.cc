#include "agents/mpi/tree/communicator_tree.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/pipeline.h"
#include "agents/mpi/tree/tree_counts.h"
#include "agents/mpi/tree/tree_memory.h"
#include "agents/mpi/tree/tree_source.h"

namespace coppice::mpi {
namespace {

// What is broadcast before the parents.
enum Header { kId, kIdHigh, kRevision, kKeep, kTags, kWasted, kIsPending, kHeaderLength };
using Message = std::vector<int32_t>;

// `message` has room for the parents.
void Pack(const GrantedTree& tree, Message* message) {
  (*message)[kId] = static_cast<int32_t>(tree.id);
  (*message)[kIdHigh] = static_cast<int32_t>(tree.id >> 32U);
  (*message)[kRevision] = static_cast<int32_t>(tree.revision);
  (*message)[kWasted] = tree.wasted_ms;
  (*message)[kIsPending] = 0;
  std::copy(tree.parents.begin(), tree.parents.end(), message->begin() + kHeaderLength);
}

uint64_t IdOf(const Message& message) {
  return static_cast<uint32_t>(message[kId]) |
         static_cast<uint64_t>(static_cast<uint32_t>(message[kIdHigh])) << 32U;
}

int RankIn(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

void Tell(Message* message, int from, MPI_Comm comm) {
  PMPI_Bcast(message->data(), static_cast<int>(message->size()), MPI_INT32_T, from, comm);
  if (RankIn(comm) != from) Session::Get().WaitedForOthers((*message)[kWasted]);
}

// This member's part: its place, its memory, and whom it follows, which may take *wasted_ms. May
// throw for want of memory.
bool Install(int rank, CommunicatorTree* tree, int* wasted_ms) {
  const Message& message = tree->message;
  const std::vector<int32_t> parents(message.begin() + kHeaderLength, message.end());
  if (!MakeTreeShape(parents, rank, &tree->shape)) return false;
  if (!tree->memory.Start(Pipeline::Pieces(tree->shape))) return false;
  tree->revision = static_cast<uint32_t>(message[kRevision]);
  if (!tree->IsRoot()) return true;
  Session& session = Session::Get();
  TreeFollower& follower = TreeFollower::Get();
  const auto follow = [&](coppice_client* client) {
    coppice_status asked = COPPICE_OK;
    tree->news = follower.Follow(client, session.Job(), IdOf(message), tree->revision, &asked);
    return asked;
  };
  *wasted_ms = session.Ask(follow).wasted_ms;
  if (tree->news == nullptr) follow(nullptr);
  return true;
}

void GiveUp(uint64_t id) {
  GiveBack(id);
  CountTree(kCountGone);
}

// The tree that there was is no more.
void Uninstall(bool is_replaced, CommunicatorTree* tree) {
  const uint64_t id = std::exchange(tree->id, 0);
  if (id == 0 || !tree->IsRoot()) return;
  TreeFollower::Get().Unfollow(id);
  tree->news.reset();
  if (is_replaced) {
    CountTree(kCountRevised);
  } else {
    // It may be there still: one that nobody could ask about, or that is none for ranks any more.
    GiveUp(id);
  }
}

// Collective: all members take the tree that `from` has told of, or none of them does.
void Take(MPI_Comm comm, int from, CommunicatorTree* tree) {
  const int rank = RankIn(comm);
  const uint64_t id = IdOf(tree->message);
  int wasted_ms = 0;
  const bool is_ready = HasMemoryFor([&] { return Install(rank, tree, &wasted_ms); });
  const bool are_all_ready = AllSay(comm, is_ready, &wasted_ms);
  if (tree->news == nullptr) Session::Get().WaitedForOthers(wasted_ms);
  if (are_all_ready) {
    tree->id = id;
    return;
  }
  if (tree->news != nullptr) TreeFollower::Get().Unfollow(id);
  tree->news.reset();
  if (rank == from) GiveUp(id);
}

// By rank 0, of its question, which is answered. None: there are no tags.
void TakeAnswer(CommunicatorTree* tree) {
  std::string why_not = "all tags of trees are in use, or the process can have no thread";
  GrantedTree granted;
  if (tree->question != nullptr) granted = tree->question->Take(&why_not);
  tree->question.reset();
  Pack(granted, &tree->message);
  tree->message[kTags] = tree->asked_tags;
  const int tags = std::exchange(tree->asked_tags, -1);
  if (granted.id != 0) return;
  if (tags >= 0) LeaveTags(tags, Session::Get().world_rank(), 1);
  Session::Get().Say("no tree for a communicator of " + std::to_string(tree->tags.members.size()) +
                     " ranks: " + why_not);
}

// This member's part before anybody is asked. May throw for want of memory.
void MakeRoom(MPI_Comm comm, CommunicatorTree* tree) {
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  tree->tags.members = GroupRanks(group);
  PMPI_Group_free(&group);
  tree->message.assign(kHeaderLength + tree->tags.members.size(), 0);
}

// All members take the root's word for what the tree is now.
void Renew(MPI_Comm comm, CommunicatorTree* tree) {
  const int root = tree->shape.root;
  GrantedTree present;
  const bool is_changed = tree->IsRoot() && tree->IsChanged();
  if (is_changed && !tree->news->is_gone) {
    HasMemoryFor([&] {
      present = AskAgain(tree->id, tree->message.size() - kHeaderLength);
      return true;
    });
  }
  Pack(present, &tree->message);
  tree->message[kKeep] = is_changed ? 0 : 1;
  Tell(&tree->message, root, comm);
  tree->is_change_told = false;
  tree->untold = 0;
  if (tree->message[kKeep] != 0) return;
  const bool is_replaced = IdOf(tree->message) != 0;
  Uninstall(is_replaced, tree);
  if (is_replaced) Take(comm, root, tree);
}

}  // namespace

bool CommunicatorTree::IsChanged() const {
  return news->is_gone.load(std::memory_order_relaxed) ||
         news->revision.load(std::memory_order_relaxed) > revision;
}

bool MayHaveTree(MPI_Comm comm) {
  int is_inter = 0;
  int size = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  PMPI_Comm_size(comm, &size);
  return is_inter == 0 && size >= 2 && Session::Get().Job() != 0 && IsWithinWorld(comm);
}

bool AskForTreeOf(MPI_Comm comm, coppice_operation operation, uint64_t bytes, Waits waits,
                  CommunicatorTree* tree) {
  const bool is_leader = RankIn(comm) == 0;
  const bool is_ready = HasMemoryFor([&] {
    MakeRoom(comm, tree);
    if (!is_leader) return true;
    tree->question = std::make_shared<TreeQuestion>(WorldRanks(comm), operation, bytes);
    return true;
  });
  int first_host = Session::Get().host_number();
  int last_host = first_host;
  const bool are_ready = AllSay(comm, is_ready, &first_host, &last_host);
  if (!are_ready || first_host == last_host) {
    tree->question.reset();
    return false;
  }
  if (!is_leader) return true;
  tree->asked_tags = TakeTags();
  const bool is_asked =
      tree->asked_tags >= 0 &&
      (waits == Waits::kProgram || HasMemoryFor([&] { return AskMeanwhile(tree->question); }));
  if (!is_asked) tree->question.reset();
  return true;
}

bool LookForTreeOf(MPI_Comm comm, Waits waits, CommunicatorTree* tree) {
  if (RankIn(comm) == 0) {
    if (tree->question != nullptr && waits == Waits::kProgram) tree->question->Ask(waits);
    if (tree->question == nullptr || tree->question->IsAnswered()) {
      TakeAnswer(tree);
    } else {
      tree->message[kIsPending] = 1;
    }
  }
  Tell(&tree->message, 0, comm);
  if (tree->message[kIsPending] != 0) return false;
  if (IdOf(tree->message) == 0) return true;
  tree->tags.comm = TagPoolComm();
  tree->tags.first_tag = tree->message[kTags];
  tree->tags.segment_bytes = TreeSegmentBytes();
  Take(comm, 0, tree);
  return true;
}

void FollowNewsOf(MPI_Comm comm, CommunicatorTree* tree) {
  if (tree->is_change_told || tree->untold >= CommunicatorTree::kMaxUntold) Renew(comm, tree);
}

void LetGo(CommunicatorTree* tree) {
  if (tree->question != nullptr) {
    tree->question->Drop();
    tree->question.reset();
    LeaveTags(std::exchange(tree->asked_tags, -1), Session::Get().world_rank(), 1);
  }
  const uint64_t id = std::exchange(tree->id, 0);
  if (id == 0 || !tree->IsRoot()) return;
  TreeFollower::Get().Unfollow(id);
  tree->news.reset();
  GiveBack(id);
  CountTree(kCountReleased);
}

}  // namespace coppice::mpi
