// Asks the node's agent for trees, in this process's name and as often as the session's patience
// allows. Thread-safe.
#ifndef COPPICE_AGENTS_MPI_TREE_TREE_QUESTIONS_H_
#define COPPICE_AGENTS_MPI_TREE_TREE_QUESTIONS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agents/mpi/core/session.h"
#include "agents/mpi/tree/carried_tree.h"
#include "agents/mpi/tree/trial.h"
#include "client/library/coppice.h"

namespace coppice::mpi {

struct GrantedTree {
  uint64_t id = 0;  // 0: none
  uint32_t revision = 0;
  std::vector<int32_t> parents;  // of each rank of the communicator; -1 of the root
  std::vector<int32_t> order;    // of ranks (coppice_tree_order); empty: nobody knows
  // Of a forest: of each tree, and its ranks' parents, tree after tree. Empty: one tree.
  std::vector<double> shares;
  std::vector<int32_t> forest_parents;
  int wasted_ms = 0;  // that were waited for no answer
  // Over switches: parents are numbered from the number of ranks on (CarriedTree::Join).
  bool is_carried = false;
  CarriageTerms terms;
  std::string addresses;
  std::string reason;             // in the daemon's words
  std::vector<KnownTimes> known;  // by earlier runs of the application
};

// The tree as it is now; none if it is gone or nobody can say. The program waits.
GrantedTree AskAgain(uint64_t id, size_t ranks);

// Calls nobody: GiveBackAll, when it suits, tells the agent, again and again while that is away.
// `measured`: how soon its collectives went, for the next run of the application.
void GiveBack(uint64_t id, std::vector<coppice_way_time> measured = {});
void GiveBackAll(Waits waits);

// A tree is asked for, or a forest of at most so many trees, for the communicator of these ranks of
// the world. One that its ranks cannot use is given back, and is none.
//
//   Ask, or AskMeanwhile --> IsAnswered --> Take
//         \--- Drop, at any time: it is not asked, or what was granted is given back
class TreeQuestion final {
 public:
  TreeQuestion(std::vector<uint32_t> world_ranks, TreesType type, coppice_operation operation,
               uint64_t bytes, uint32_t max_trees)
      : world_ranks_(std::move(world_ranks)),
        type_(type),
        operation_(operation),
        bytes_(bytes),
        max_trees_(max_trees) {}

  // Asks, once.
  void Ask(Waits waits);
  // False: it was not asked yet, or there is no answer yet.
  bool IsAnswered() const;
  // Of one that is answered. None: *why_not says why.
  GrantedTree Take(std::string* why_not);
  // Nobody wants the answer any more. Calls nobody.
  void Drop();

 private:
  // None: *why_not says why.
  GrantedTree AskForTree(Waits waits, std::string* why_not) const;

  const std::vector<uint32_t> world_ranks_;
  const TreesType type_;
  const coppice_operation operation_;
  const uint64_t bytes_;
  const uint32_t max_trees_;

  mutable std::mutex mutex_;  // of the rest; nobody is called under it but GiveBack
  bool is_answered_ = false, is_dropped_ = false;
  GrantedTree granted_;
  std::string why_not_;
};

// While the program goes on with the MPI library's own collectives, one thread of this process asks
// the agent for trees and gives trees back. It is there from the first question on, never calls
// MPI, and gets no signals. False: there is no thread to ask it.
bool AskMeanwhile(std::shared_ptr<TreeQuestion> question);

// What was given back is told to the agent soon.
void TellWhatIsGivenBack();

// Waits for the answer that is under way, if one is; asks nothing more.
void StopAskingMeanwhile();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_TREE_QUESTIONS_H_
