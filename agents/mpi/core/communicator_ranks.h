// Which process of MPI_COMM_WORLD each rank of a communicator is. Made once for each communicator
// and kept as its attribute, so that it goes when the communicator goes and is never found for
// another one that got the same handle.
#ifndef COPPICE_AGENTS_MPI_CORE_COMMUNICATOR_RANKS_H_
#define COPPICE_AGENTS_MPI_CORE_COMMUNICATOR_RANKS_H_

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

namespace coppice::mpi {

// This process's rank; MPI_UNDEFINED: `comm` is none.
inline int RankIn(MPI_Comm comm) {
  int rank = MPI_UNDEFINED;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}
inline int SizeOf(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size;
}

// Whether MPI can say what a type is made of: not if it is none of the program's, but one that Open
// MPI has made for itself, which its component alone sees and tells. Null: it can of all.
inline bool (*is_described)(MPI_Datatype) = nullptr;
inline bool IsDescribed(MPI_Datatype type) { return is_described == nullptr || is_described(type); }

// Those of MPI_Type_create_f90_*, too: nobody may free them, and Open MPI ends a program that does.
inline bool IsPredefined(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  return IsDescribed(type) &&
         PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
         (combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
          combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER);
}

// Whether `work` found memory for all that it did, and says yes.
template <class Work>
bool HasMemoryFor(const Work& work) {
  try {
    return work();
  } catch (const std::exception&) {
    return false;
  }
}

// Grows whenever a communicator goes, in whichever thread: what was found before of any is void.
extern __attribute__((visibility("hidden"))) std::atomic<uint64_t> communicators_gone;

// One group's ranks of the world. Groups that are the world in its order, as those of duplicates,
// take no memory.
class GroupRanks final {
 public:
  GroupRanks() = default;
  // Of `comm`'s group, or of its remote one by PMPI_Comm_remote_group.
  explicit GroupRanks(MPI_Comm comm, int (*group_of)(MPI_Comm, MPI_Group*) = PMPI_Comm_group);

  int size() const { return size_; }
  // MPI_UNDEFINED: a process of another world, or no rank of the group.
  int World(int rank) const {
    if (rank < 0 || rank >= size_) return MPI_UNDEFINED;
    return world_.empty() ? rank : world_[rank];
  }

 private:
  int size_ = 0;
  std::vector<int> world_;  // empty: rank r is r
};

struct CommunicatorRanks {
  int rank = 0;  // of this process, in the local group
  bool is_inter = false;
  GroupRanks local;
  GroupRanks remote;  // of an intercommunicator
  // Whom a rank given to a send names.
  const GroupRanks& peers() const { return is_inter ? remote : local; }
};

// Lives as long as the communicator; null: `comm` is none. The caller may not hold on to it across
// calls of MPI. From the second call for a communicator on O(1); from the second in a row without
// a call of MPI. Not for several threads at once, but others may free other communicators
// meanwhile.
const CommunicatorRanks* RanksOf(MPI_Comm comm);

// Whether all members are of MPI_COMM_WORLD, which each one can tell alone, and without memory of
// its own. `comm` is no intercommunicator. O(members).
bool IsWithinWorld(MPI_Comm comm);

// Collective: a communicator of the same processes that no attribute or topology comes along with,
// so that no function of the program's is called, and that returns errors (those of requests:
// returned_errors.h). Null, on all of them, if the MPI library has no more communicators to give,
// which is no error of the program's.
MPI_Comm OwnCommunicator(MPI_Comm comm);

// The same of the world, in MPI_Init. The world is afterwards as it was before, which
// MPI_Comm_create does not leave it: Open MPI 4 and 5 make communicators by nonblocking
// collectives, whose tags on the old one count down from -27, and MPI_Dist_graph_create sends its
// edges with -50 and -51 there (its issue 13918). Where a creation of the program's comes to these,
// ranks wait for each other for ever. Which one does, if any, depends on what was made before, so
// that a program that natively goes on may not with one communicator more. MPI_Comm_create_group
// does without these tags. But it copies attributes on Open MPI, which a program has none of in
// MPI_Init.
MPI_Comm FirstOwnCommunicator();

// By the session: make and free the attribute's key.
void StartCommunicatorRanks();
void EndCommunicatorRanks();

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CORE_COMMUNICATOR_RANKS_H_
