// The trees of a communicator: each is asked for once, agreed on, followed, and given back when the
// communicator is freed. All members agree at all times whether there is one and which. The README
// has the reasons.
//
// Making one: within some call that is collective over the communicator, members find out whether
// there is to be one at all, and rank 0 has it asked for. Within a later one it tells the others by
// native broadcasts what came of it, or that there is no answer yet:
//
//     collective   0 1 2 ...      a                         2a              4a
//     native       native    [are there hosts?        [an answer?     [an answer?
//                             rank 0 asks, nobody      not yet]        the tree] ... along it ...
//                             waits]
//
// Following it: only the tree's root watches what becomes of it. When the tree was planned anew or
// is gone, the root says so along the tree with the next collective whose message goes from the
// root to all (Barrier, Allreduce, Bcast from the root), in how that message is cut, at no cost
// (pipeline.h). The members take the new tree at the beginning of the collective after that one:
//
//     collective n              collective n + 1
//     ... down, "changed" ...   [native broadcast: new parents, or none] ... along the new tree ...
//
// A program that only reduces has no such message: after kMaxUntold collectives along the tree in
// which the root could not say anything, all members hold that native broadcast unasked; and when
// the tree is tried again after a while of native calls. Both conditions are
// functions of the calls that all members make alike and of a word that all got in the same
// collective, so they agree; and as every message of collectives up to n is received within its
// collective, none of the old tree is left when the first of the new one is sent.
#ifndef COPPICE_AGENTS_MPI_TREE_COMMUNICATOR_TREES_H_
#define COPPICE_AGENTS_MPI_TREE_COMMUNICATOR_TREES_H_

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "agents/mpi/tree/carried_tree.h"
#include "agents/mpi/tree/collective_table.h"
#include "agents/mpi/tree/rank_order.h"
#include "agents/mpi/tree/started.h"
#include "agents/mpi/tree/tag_pool.h"
#include "agents/mpi/tree/tree_memory.h"
#include "agents/mpi/tree/tree_news.h"
#include "agents/mpi/tree/tree_questions.h"
#include "agents/mpi/tree/tree_shape.h"
#include "agents/mpi/tree/trial.h"
#include "client/library/coppice.h"

namespace coppice::mpi {

// One tree of a forest: what there is of it beside the forest's first tree.
struct ForestPart {
  TreeShape shape;
  TreeTags tags;
  TreeBuffers pieces;
};

// A tree over the ranks, or one over switches (`carried`). Of the latter rank 0 stands for the
// root: it asked for it, watches it and tells. When such a tree is broken, which all members see in
// the same collective, they hold that native broadcast after 1, 2, 4, ... kMaxUntold more, until
// there is a new revision or no tree.
struct CommunicatorTree {
  static constexpr int kMaxUntold = 64;
  // For the daemon to plan a broken tree anew, which takes it 5 s where a switch may be back. A
  // tree that broke where no switch saw it, say between a member and its leaf switch, is never
  // planned anew: it is given back, and another one is asked for.
  static constexpr std::chrono::seconds kRepairTime{10};

  std::shared_ptr<TreeQuestion> question;  // rank 0's, as long as there may be an answer
  int asked_tags = -1;                     // that are kept for it
  TreeTags tags;                           // for the tree's messages, once there was a tree
  uint64_t id = 0;                         // 0: there is no tree
  uint32_t revision = 0;
  TreeShape shape;  // carried: its ranks are none of the tree's nodes but the root's stand-in
  TreeShape chain, binomial;             // over its ranks
  RankOrder order;                       // of these
  std::unique_ptr<CarriedTree> carried;  // null: over the ranks
  std::vector<ForestPart> forest;        // over the ranks; its first tree is `shape`; empty: none
  TreeBuffers pieces;  // one for each message of a reduction that is on its way here
  TreeBuffers whole;   // one: a broadcast whose type is more than plain bytes, what is exchanged
  // What the members are told of a tree, in up to six broadcasts: the second one if there is a
  // tree, the third one if it has an order, the fourth one if earlier runs' times are known, the
  // last two if it is a forest.
  struct Told {
    uint64_t id = 0;  // 0: none
    uint32_t revision = 0;
    int32_t wasted_ms = 0;
    int32_t tags = -1;
    int32_t trees = 0;  // of a forest
    bool is_kept = false, is_pending = false, is_carried = false, has_order = false;
    CarriageTerms terms;
    int32_t known = 0;  // times
  } told;
  std::vector<int32_t> parents;  // of each rank; there is room before anybody is told
  std::vector<int32_t> near;     // all ranks, the root first, if `has_order`; as much room
  // Of a forest, as in GrantedTree; there is room for kMaxForestTrees where one may be.
  std::vector<double> shares;
  std::vector<int32_t> forest_parents;
  std::vector<int> hosts;    // of each rank
  std::string addresses;     // of switches: the root's stand-in's, until it is told
  bool was_carried = false;  // by switches, once: the same on all members
  bool is_change_told = false;
  int untold = 0;    // collectives since the root could last say something
  int patience = 1;  // carried and broken: of these, before it is asked
  // Of a collective (kCountBcast) of so many bits in its length, with an order that must be the
  // ranks' or not; from when the tree is there.
  std::map<std::tuple<TreeCount, int, bool>, Trial> trials;
  // Of earlier runs of the application, of the first revision: so many; there is room before
  // anybody is told.
  std::vector<KnownTimes> known;
  size_t known_count = 0;

  // kTree, kChain or kBinomial.
  const TreeShape& ShapeOf(Way way) const {
    return way == Way::kChain ? chain : way == Way::kBinomial ? binomial : shape;
  }
  bool IsRoot() const { return shape.parent < 0; }
  // [tree and one more] of so many elements the first that each tree of a forest carries.
  std::vector<int> FirstElements(int count) const {
    return mpi::FirstElements({shares.data(), forest.size()}, count);
  }
  // Of all memory for messages.
  template <class Work>
  void ForEachBuffers(const Work& work) {
    work(&pieces);
    work(&whole);
    for (ForestPart& part : forest) work(&part.pieces);
  }
  bool IsMember(int rank) const { return rank >= 0 && rank < tags.members.size(); }
  // The root's: whether there is something to say.
  bool IsChanged() const;
  // Whether it goes along switches now.
  bool Carries(const SwitchWork& work) const { return carried != nullptr && carried->Can(work); }

  std::shared_ptr<const TreeNews> news;  // of the root only

  StartedCollectives started;  // over the ranks, which are not over
};

// A communicator has a tree for short messages, one for those in the middle and one for long ones,
// because no tree suits all:
//
//     bytes   0 ........ kMiddle ............ kLong ............
//     tree    wide, low                       narrow, pipelined   64 hosts, 8 MiB along a star: 25
//                                                                 times longer
//
// Long Allreduces have trees of their own, forests if those are sooner.
//
// Bytes of a collective are the same on all members, so that they agree which tree it is and count
// alike. Whether it goes along the tree, in another way over its ranks, or natively, is measured
// (trial.h). With COPPICE_TREES_MAX_BYTES it is not: messages of all lengths up to that one go
// along trees, two of them (with COPPICE_TREES_WAY=forest three), and no longer ones.

// From coppice-plan tree over 64 hosts with the preset costs, Allreduce: a star, the best for a
// Barrier (0 bytes), takes at most 3 times as long as the best tree below kMiddle, and 20 times at
// 1 MiB. From kLong on one tree is the best, which takes 1.6 times as long as the best for kMiddle.
constexpr uint64_t kMiddle = uint64_t{8} << 10U;
constexpr uint64_t kLong = uint64_t{256} << 10U;
// From here on a forest pays: one tree leaves the links of its leaves idle half of the time.
constexpr uint64_t kForestFrom = uint64_t{1} << 20U;

// Collective over `comm`, for a collective of so many bytes, once; null on all ranks if there is no
// tree for it. `work`: what it would be for switches: the tree is over switches only if they can do
// it, else over the ranks. The caller may keep it until the collective is over. Throws
// std::bad_alloc (WithMemory of tree_collectives.h).
CommunicatorTree* TreeOf(MPI_Comm comm, coppice_operation operation, uint64_t bytes,
                         const SwitchWork& work);

// Local, for a collective that is only started (started.h), once, by all members alike: a tree over
// the ranks that is there, and due for nothing that members would have to do together; else null,
// on all of them. What it lacked is made up for by the next TreeOf, of whichever length. Such
// collectives count as those of TreeOf do. Throws std::bad_alloc.
CommunicatorTree* PresentTreeOf(MPI_Comm comm, coppice_operation operation, uint64_t bytes);

// This member leaves a collective to the MPI library which others may carry out along a tree: what
// they send nobody receives. Tags of these trees are not handed out again.
void SpoilTreesOf(MPI_Comm comm);

// A communicator that the program frees, for as long as it does. Its trees are given back first, on
// all members: what functions of attributes call meanwhile is left to the MPI library. So is what
// is called later, where that is because of requests under way, or because it could not be freed.
class EndingCommunicator final {
 public:
  // Null is allowed.
  explicit EndingCommunicator(const MPI_Comm* comm);
  ~EndingCommunicator();
  EndingCommunicator(const EndingCommunicator&) = delete;
  EndingCommunicator& operator=(const EndingCommunicator&) = delete;

  // Whether this thread frees it.
  static bool Is(MPI_Comm comm);

 private:
  MPI_Comm comm_;
  EndingCommunicator* const outer_;  // within whose end this one is
};

// After a communicator was freed, by whoever may call MPI: what the attribute's function, which may
// be called from within MPI, leaves to do. Does nothing if there is nothing.
void SettleFreedTrees();

// By the world, in MPI_Init and MPI_Finalize.
void StartCommunicatorTrees();
void EndCommunicatorTrees();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_COMMUNICATOR_TREES_H_
