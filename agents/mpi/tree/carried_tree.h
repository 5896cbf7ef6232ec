// A communicator's tree over switches, for whoever speaks MPI: its members come to it together, go
// along it together, and when it breaks give it up in the same collective (switch_tree.h).
//
//   rank 0's answer (terms, addresses, parents)
//        |  broadcast natively
//   Join at all members, or at none ----> Carry ... Carry ----> broken: natively, at all alike
//
// The thread of such a tree, one in each member, is what a switch has entries for: a process has no
// more of them than its leaf switch holds trees.
#ifndef COPPICE_AGENTS_MPI_TREE_CARRIED_TREE_H_
#define COPPICE_AGENTS_MPI_TREE_CARRIED_TREE_H_

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agents/links/frame.h"
#include "agents/mpi/tree/elements.h"

namespace coppice::mpi {

class SwitchTree;

// What one collective asks of switches; the same at all members.
struct SwitchWork {
  ReductionOperation operation = ReductionOperation::kTake;
  ElementType type = ElementType::kBytes;
  uint64_t bytes = 0;  // of the result
};

// The work of a reduction whose elements are laid out so; of a kind that no switch does it has no
// operation.
SwitchWork ReductionWork(MPI_Op op, const TypeLayout& layout, uint64_t bytes);

// How members use the switches: plain bytes, which rank 0 tells as they are.
struct CarriageTerms {
  LinkKey key{};
  uint32_t segment_bytes = 0, window = 0;
  uint64_t operations = 0, types = 0;  // bits by the numbers of ReductionOperation and ElementType
  uint32_t address_bytes = 0;          // of what follows
};

class CarriedTree final {
 public:
  // A longer message is none for switches: each member keeps the last result.
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20U;

  // Collective over `comm`: at all members, or null at all. `parents`: [rank] number of its leaf
  // switch, counted from the number of ranks on. `addresses`: of the switches, a line each; member
  // `from` has them and gives them to the others. *why_not is filled in at those who know.
  static std::unique_ptr<CarriedTree> Join(MPI_Comm comm, int from, const Group& group,
                                           const CarriageTerms& terms,
                                           const std::vector<int32_t>& parents,
                                           std::string* addresses, std::string* why_not);
  // After this member's last Carry. Its part of the tree answers for it until no other needs it.
  ~CarriedTree();
  CarriedTree(const CarriedTree&) = delete;
  CarriedTree& operator=(const CarriedTree&) = delete;

  // Both are the same at all members.
  bool Can(const SwitchWork& work) const;
  bool is_broken() const { return is_broken_; }
  // Since when, as this member has seen it.
  std::chrono::steady_clock::time_point broken_since() const { return broken_since_; }

  // Collective. `data`: this member's part, as long as the result, or empty where another member
  // gives it. `result`: where it goes; null: nobody here wants it. False, at all members: the tree
  // is broken, and this collective and all that follow are to be carried out without it. Where
  // nobody can go on because a member is gone, the job is ended (MPI_Abort).
  bool Carry(const SwitchWork& work, std::string_view data, void* result);

 private:
  friend void StopCarriedTrees();
  CarriedTree(MPI_Comm comm, const CarriageTerms& terms, std::unique_ptr<SwitchTree> tree);

  const MPI_Comm comm_;
  const uint64_t operations_, types_;
  std::unique_ptr<SwitchTree> tree_;  // null: StopCarriedTrees was called
  bool is_joined_ = false;            // by all
  uint64_t carried_ = 0;              // collectives
  bool is_broken_ = false;
  std::chrono::steady_clock::time_point broken_since_;
};

// In MPI_Finalize, when all members are out of their last Carry: also those of communicators that
// the program has not freed.
void StopCarriedTrees();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_TREE_CARRIED_TREE_H_
